// The process default of the precision flags, and the setters that may still take their change
// back.
//
// A setter that is entered as a context takes back its own change and no other. The default is
// computed from the remaining entries:
//   default == base, then the entries in the order of their calls, each changing its flags.
// If a setter is dropped without being entered, its change stays. Its entry joins the base, or,
// behind an open entry, the closed entry beside it, so there are at most twice as many entries as
// open setters.
//
// If a signal handler interrupts the `with` statement of a setter before it is entered, the change
// is taken back too, because the frame drops the setter while the exception propagates.
//
// Readers load one atomic. All other functions are called with the GIL and run no Python in
// between.
#ifndef GPUTENSOR_BLAS_PRECISION_DEFAULT_H
#define GPUTENSOR_BLAS_PRECISION_DEFAULT_H

#include <Python.h>

#include <atomic>
#include <cstdint>
#include <new>

struct PrecisionEntry {
    uint32_t mask;   // the flags that it names
    uint32_t value;
    bool is_open;    // its setter may still be entered
    PrecisionEntry* previous;
    PrecisionEntry* next;
};

static std::atomic<uint32_t> precision_default{0};
static uint32_t precision_base = 0;
static PrecisionEntry* precision_first = nullptr;
static PrecisionEntry* precision_last = nullptr;

static inline uint32_t precision_default_get() {
    return precision_default.load(std::memory_order_relaxed);
}

static inline uint32_t precision_changed(uint32_t flags, const PrecisionEntry* entry) {
    return (flags & ~entry->mask) | entry->value;
}

static inline void precision_remove(PrecisionEntry* entry) {
    (entry->previous ? entry->previous->next : precision_first) = entry->next;
    (entry->next ? entry->next->previous : precision_last) = entry->previous;
    delete entry;
}

// Changes the default and returns the setter's entry; without host memory, returns NULL and changes
// nothing.
static inline PrecisionEntry* precision_set(uint32_t mask, uint32_t value) {
    auto* entry = new (std::nothrow) PrecisionEntry{mask, value, true, precision_last, nullptr};
    if (!entry) return nullptr;
    (precision_last ? precision_last->next : precision_first) = entry;
    precision_last = entry;
    precision_default = precision_changed(precision_default_get(), entry);
    return entry;
}

// Merges closed entries with the base or with the closed entry before them.
static inline void precision_tidy() {
    while (precision_first && !precision_first->is_open) {
        precision_base = precision_changed(precision_base, precision_first);
        precision_remove(precision_first);
    }
    for (PrecisionEntry* entry = precision_first; entry; entry = entry->next) {
        while (!entry->is_open && entry->next && !entry->next->is_open) {
            entry->value = precision_changed(entry->value, entry->next);
            entry->mask |= entry->next->mask;
            precision_remove(entry->next);
        }
    }
}

// Called when the setter is entered: takes its change of the default back.
static inline void precision_take_back(PrecisionEntry* entry) {
    precision_remove(entry);
    precision_tidy();
    uint32_t flags = precision_base;
    for (entry = precision_first; entry; entry = entry->next)
        flags = precision_changed(flags, entry);
    precision_default = flags;
}

// Called when the setter is dropped: its change stays.
static inline void precision_settle(PrecisionEntry* entry) {
    entry->is_open = false;
    precision_tidy();
}

// A setter's entry. Its destructor handles the end of the setter, because Cython's __dealloc__
// would hide the current exception from PyErr_Occurred.
struct PrecisionSetter {
    PrecisionEntry* entry = nullptr;    // NULL: the change of the default was taken back

    ~PrecisionSetter() {
        if (!entry) return;
        if (PyErr_Occurred()) precision_take_back(entry);
        else precision_settle(entry);
    }
};

#endif
