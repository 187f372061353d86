// The names of all entries of the driver table (table.pxd), in its order.
//
// Code that fills or wraps a whole table does so through this list, so that no entry can be left
// unset: a new entry of struct Driver is added here, and DRIVER_ENTRY_COUNT is compared with the
// size of the struct at compile time.
#pragma once

#include <cstddef>
#include <cstdint>

#define GPUTENSOR_DRIVER_ENTRIES(X)                                                             \
    X(mem_alloc) X(mem_free) X(mem_info)                                                        \
    X(pinned_alloc) X(pinned_free) X(pinned_register) X(pinned_unregister)                      \
    X(async_alloc) X(async_free) X(async_trim)                                                  \
    X(va_reserve) X(va_release) X(page_create) X(page_destroy) X(page_map) X(page_unmap)        \
    X(stream_create) X(stream_destroy) X(stream_query) X(stream_synchronize)                    \
    X(stream_wait_event) X(stream_priority_range)                                               \
    X(event_create) X(event_destroy) X(event_record) X(event_query) X(event_synchronize)        \
    X(event_elapsed) X(synchronize)                                                             \
    X(capture_begin) X(capture_end) X(capture_info)                                             \
    X(graph_instantiate) X(graph_launch) X(graph_destroy) X(graph_executable_destroy)           \
    X(copy_async) X(fill_async) X(host_launch) X(kernel_launch)                                 \
    X(capture_nodes) X(capture_follows)                                                         \
    X(wait_for_peer) X(copy_to_peer)                                                            \
    X(device_attribute) X(context_enter) X(context_leave)                                       \
    X(module_load) X(module_unload) X(module_function)                                          \
    X(function_allow_shared) X(function_occupancy)                                              \
    X(function_attribute) X(function_attribute_set)                                             \
    X(graph_nodes) X(graph_node_get) X(graph_node_set) X(graph_update)                          \
    X(graph_dump) X(event_record_external) X(stream_wait_external)                              \
    X(event_export) X(event_import) X(page_create_shared) X(page_import) X(call_apart)             \
    X(condition_create) X(condition_add) X(capture_begin_body)

namespace gputensor {

enum Entry : int {
#define X(name) ENTRY_##name,
    GPUTENSOR_DRIVER_ENTRIES(X)
#undef X
    DRIVER_ENTRY_COUNT
};

inline const char* entry_name(int entry) {
    static const char* const names[] = {
#define X(name) #name,
        GPUTENSOR_DRIVER_ENTRIES(X)
#undef X
    };
    return entry >= 0 && entry < DRIVER_ENTRY_COUNT ? names[entry] : "";
}

// The statuses of table.pxd that C++ code returns, and further CUDA statuses that only the host
// device's captures and pinned memory need.
constexpr int
    OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101,
    INVALID_HANDLE = 400, ILLEGAL_STATE = 401, NOT_READY = 600,
    ILLEGAL_ADDRESS = 700, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713, NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801, CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901,
    CAPTURE_MERGE = 902, CAPTURE_UNMATCHED = 903, CAPTURE_UNJOINED = 904,
    CAPTURE_ISOLATION = 905, CAPTURED_EVENT = 907, CAPTURE_WRONG_THREAD = 908,
    GRAPH_UPDATE_FAILED = 910;

// Turns a method of a class into the C function that a table holds; `self` is the object.
template <auto Method> struct Bound;
template <class Class, class... Args, int (Class::*Method)(Args...)> struct Bound<Method> {
    static int call(void* self, Args... args) {
        return (static_cast<Class*>(self)->*Method)(args...);
    }
};

// Sets every entry of `table` to the method of `Class` that has its name.
template <class Class, class Table> void bind_entries(Table* table, Class* self) {
    table->self = self;
#define X(name) table->name = &Bound<&Class::name>::call;
    GPUTENSOR_DRIVER_ENTRIES(X)
#undef X
    static_assert(sizeof(Table) == (4 + DRIVER_ENTRY_COUNT) * sizeof(void*),
                  "entries.h and struct Driver name different entries");
}

// An entry that does nothing and returns that the device cannot be used.
template <class Entry> struct Refused;
template <class... Args> struct Refused<int (*)(void*, Args...)> {
    static int call(void*, Args...) { return NOT_INITIALIZED; }
};

// Sets every entry of `table` to a refusing one: all later calls through the table fail.
template <class Table> void refuse_entries(Table* table) {
#define X(name) table->name = &Refused<decltype(Table::name)>::call;
    GPUTENSOR_DRIVER_ENTRIES(X)
#undef X
}

}  // namespace gputensor
