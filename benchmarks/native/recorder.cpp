// An allocator for torch's CUDAPluggableAllocator that forwards and records each request.
//
// `recorder_open(library)` names the library whose `gputensor_malloc` and `gputensor_free` serve
// the requests. Events are kept in order, with the thread of each, because torch frees blocks of
// other threads on autograd's thread. `recorder_take` copies the events out.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

typedef void* (*malloc_function)(size_t, int, void*);
typedef void (*free_function)(void*, size_t, int, void*);

struct Event {
    int64_t size;       // bytes; below 0 for a free
    int32_t id;
    int16_t stream, thread;
};

static std::mutex lock;
static std::vector<Event> events;
static std::unordered_map<void*, std::pair<int32_t, int64_t>> live;
static std::unordered_map<void*, int16_t> streams{{nullptr, 0}};
static malloc_function serve;
static free_function give_back;
static int32_t next_id;
static bool recording;

static int16_t thread_number() {
    static int16_t count;
    static thread_local int16_t mine = -1;
    if (mine < 0) { mine = count++; }
    return mine;
}

extern "C" int recorder_open(const char* library) {
    void* handle = dlopen(library, RTLD_NOW);
    if (!handle) { return -1; }
    serve = (malloc_function)dlsym(handle, "gputensor_malloc");
    give_back = (free_function)dlsym(handle, "gputensor_free");
    return serve && give_back ? 0 : -1;
}

extern "C" void recorder_start(int on) {
    std::lock_guard<std::mutex> guard(lock);
    recording = on;
}

extern "C" void* recorder_malloc(ptrdiff_t size, int device, void* stream) {
    // The lock covers both steps, so that the events are in the order in which they were served.
    std::lock_guard<std::mutex> guard(lock);
    void* pointer = serve((size_t)size, device, stream);
    if (pointer && recording) {
        int16_t number = streams.emplace(stream, (int16_t)streams.size()).first->second;
        live[pointer] = {next_id, size};
        events.push_back({size, next_id++, number, thread_number()});
    }
    return pointer;
}

extern "C" void recorder_free(void* pointer, ptrdiff_t size, int device, void* stream) {
    std::lock_guard<std::mutex> guard(lock);
    auto found = live.find(pointer);
    if (found != live.end()) {
        int16_t number = streams.emplace(stream, (int16_t)streams.size()).first->second;
        events.push_back({-found->second.second, found->second.first, number, thread_number()});
        live.erase(found);
    }
    give_back(pointer, (size_t)size, device, stream);
}

extern "C" int64_t recorder_count() {
    std::lock_guard<std::mutex> guard(lock);
    return (int64_t)events.size();
}

extern "C" void recorder_take(int8_t* op, int32_t* id, int64_t* size, int16_t* stream,
                              int16_t* thread) {
    std::lock_guard<std::mutex> guard(lock);
    for (size_t i = 0; i < events.size(); i++) {
        op[i] = events[i].size < 0 ? -1 : 1;
        size[i] = events[i].size < 0 ? -events[i].size : events[i].size;
        id[i] = events[i].id;
        stream[i] = events[i].stream;
        thread[i] = events[i].thread;
    }
}
