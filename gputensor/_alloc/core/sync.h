// Locks, guards and relaxed counters for the allocator's core.
//
// The spin lock guards a thread cache: it is nearly always free, held for tens of nanoseconds, and
// never while a driver call runs. The device lock is a pthread mutex. Counters that one thread
// writes under a lock and others read without it go through gt_load and gt_store: plain moves on
// x86, and no data race by the language's rules. For pointers they acquire and release, so the data
// behind a pointer that was read is visible as well.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

#include <type_traits>

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

template <class T> inline T gt_load(const T* cell) {
    return __atomic_load_n(cell, std::is_pointer_v<T> ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED);
}
template <class T, class V> inline void gt_store(T* cell, V value) {
    __atomic_store_n(cell, static_cast<T>(value),
                     std::is_pointer_v<T> ? __ATOMIC_RELEASE : __ATOMIC_RELAXED);
}
template <class T, class V> inline void gt_add(T* cell, V value) {
    gt_store(cell, gt_load(cell) + static_cast<T>(value));
}
// Sets a byte to 0; returns what it was.
static inline uint8_t gt_clear_byte(uint8_t* cell) {
    return __atomic_exchange_n(cell, 0, __ATOMIC_ACQ_REL);
}

// Hold a lock to the end of the function, whichever way it is left.
class Held {
public:
    void take(pthread_mutex_t* mutex) { pthread_mutex_lock(held = mutex); }
    // Whether another thread had it.
    bool take_waiting(pthread_mutex_t* mutex) {
        held = mutex;
        return pthread_mutex_trylock(mutex) != 0 && pthread_mutex_lock(mutex) == 0;
    }
    // The function to call once the lock is released.
    void then(void (*function)(int, const char*), int number, const char* text) {
        after = function;
        device = number;
        change = text;
    }
    ~Held() {
        if (held) { pthread_mutex_unlock(held); }
        if (after) { after(device, change); }
    }

private:
    pthread_mutex_t* held = nullptr;
    void (*after)(int, const char*) = nullptr;
    int device = 0;
    const char* change = nullptr;
};

class SpinHeld {
public:
    void take(int32_t* lock) { gt_spin_lock(held = lock); }
    ~SpinHeld() { if (held) { gt_spin_unlock(held); } }

private:
    int32_t* held = nullptr;
};

static inline int gt_highest_bit(uint64_t value) { return 63 - __builtin_clzll(value); }
static inline int gt_lowest_bit(uint64_t value) { return __builtin_ctzll(value); }
