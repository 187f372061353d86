// The process default of the precision flags, and the setters that may yet take their change back.
//
// A setter that is entered as a context takes back its own change and no other: the default is
// what stays when its entry is left out,
//   default == base, then the entries in the order of their calls, each changing the flags it names.
// A setter that is dropped without having been entered stands. Its entry joins the base, or, behind
// one that is open, the standing entry beside it: there are at most twice as many as open setters.
//
// A setter whose `with` statement a signal handler interrupts before it is entered takes its change
// back, too: its frame drops it while the exception is on its way.
//
// Readers load one atomic. Everything else is called with the GIL and runs no Python in between.
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

// Changes the default and returns the setter's entry; NULL without host memory, and nothing changed.
static inline PrecisionEntry* precision_set(uint32_t mask, uint32_t value) {
    auto* entry = new (std::nothrow) PrecisionEntry{mask, value, true, precision_last, nullptr};
    if (!entry) return nullptr;
    (precision_last ? precision_last->next : precision_first) = entry;
    precision_last = entry;
    precision_default = precision_changed(precision_default_get(), entry);
    return entry;
}

// What stands joins the base, or the standing entry before it.
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

// The setter is entered: the default becomes what it would be without it.
static inline void precision_take_back(PrecisionEntry* entry) {
    precision_remove(entry);
    precision_tidy();
    uint32_t flags = precision_base;
    for (entry = precision_first; entry; entry = entry->next)
        flags = precision_changed(flags, entry);
    precision_default = flags;
}

// The setter is dropped: what it set stands.
static inline void precision_settle(PrecisionEntry* entry) {
    entry->is_open = false;
    precision_tidy();
}

// A setter's entry. The end of the setter is noticed here: Cython's __dealloc__ puts the exception
// aside that is asked for.
struct PrecisionSetter {
    PrecisionEntry* entry = nullptr;    // NULL: the change of the default was taken back

    ~PrecisionSetter() {
        if (!entry) return;
        if (PyErr_Occurred()) precision_take_back(entry);
        else precision_settle(entry);
    }
};

#endif
