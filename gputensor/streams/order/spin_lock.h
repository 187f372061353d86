// A lock for a few instructions: an int that is 1 while it is held. No driver call that can wait
// for the device is made under it.
#ifndef GPUTENSOR_STREAMS_SPIN_LOCK_H
#define GPUTENSOR_STREAMS_SPIN_LOCK_H

#include <sched.h>

static inline void spin_acquire(int* lock) {
    for (int tries = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); ++tries)
        if (tries > 64) sched_yield();
}

static inline void spin_release(int* lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

// A number that is changed under a lock and read without it.
static inline int count_read(const int* count) { return __atomic_load_n(count, __ATOMIC_RELAXED); }
static inline void count_change(int* count, int by) {
    __atomic_fetch_add(count, by, __ATOMIC_RELAXED);
}

// Returns a clock's moment and advances the clock.
static inline unsigned long long moment_next(unsigned long long* clock) {
    return __atomic_fetch_add(clock, 1, __ATOMIC_RELAXED);
}

#endif
