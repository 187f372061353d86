// Locks, relaxed counters and the thread's slot, for the allocator's core.
//
// The spin lock guards a thread cache: it is nearly always free, held for tens of nanoseconds, and
// never while a driver call runs. The device lock is a pthread mutex. Counters that one thread
// writes under a lock and others read without it go through relaxed_*: plain moves on x86, and no
// data race by the language's rules.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

static inline void gt_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static inline void gt_spin_lock(int32_t* lock) {
    while (__builtin_expect(__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE), 0)) {
        int turns = 0;
        while (__atomic_load_n(lock, __ATOMIC_RELAXED)) {
            if (++turns < 100) { gt_pause(); } else { sched_yield(); turns = 0; }
        }
    }
}

static inline void gt_spin_unlock(int32_t* lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

static inline uint64_t gt_load(const uint64_t* cell) {
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}
static inline void gt_store(uint64_t* cell, uint64_t value) {
    __atomic_store_n(cell, value, __ATOMIC_RELAXED);
}
static inline void gt_add(uint64_t* cell, uint64_t value) { gt_store(cell, gt_load(cell) + value); }

static inline void* gt_load_pointer(void* const* cell) {
    return __atomic_load_n(cell, __ATOMIC_ACQUIRE);
}
static inline void gt_store_pointer(void** cell, void* value) {
    __atomic_store_n(cell, value, __ATOMIC_RELEASE);
}
static inline int32_t gt_load_int(const int32_t* cell) {
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}
static inline void gt_store_int(int32_t* cell, int32_t value) {
    __atomic_store_n(cell, value, __ATOMIC_RELAXED);
}

static inline uint8_t gt_load_byte(const uint8_t* cell) {
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}
static inline void gt_store_byte(uint8_t* cell, uint8_t value) {
    __atomic_store_n(cell, value, __ATOMIC_RELAXED);
}

// Sets a byte to 0; what it was.
static inline uint8_t gt_clear_byte(uint8_t* cell) {
    return __atomic_exchange_n(cell, 0, __ATOMIC_ACQ_REL);
}

static inline int gt_highest_bit(uint64_t value) { return 63 - __builtin_clzll(value); }
static inline int gt_lowest_bit(uint64_t value) { return __builtin_ctzll(value); }
