// A ring of fixed-size records that any number of threads write without a lock.
//
// A writer takes a number n by one atomic addition and fills record n mod capacity; `sequence` is 0
// while the record is being filled and n + 1 afterwards. A reader copies a record and keeps the
// copy only when the sequence is n + 1 before and after, so a record that is being overwritten is
// left out rather than read torn. All fields go through relaxed atomics: plain moves, no data race.
//
// The memory is address space that the system backs when it is first written, so a large ring costs
// nothing until it is used, and there is never a pause for growing. While its device is open a ring
// is not unmapped, because a writer may hold it: clearing returns its memory and keeps the range.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef struct {
    uint64_t sequence;
    uint64_t ptr, nbytes, stream, pool_id;
    uint64_t time_ns;  // since the epoch of CLOCK_REALTIME
    uint32_t stack;
    uint32_t action;
    uint64_t requested;  // by the caller, <= nbytes
} gt_record;

enum { GT_RECORD_WORDS = sizeof(gt_record) / sizeof(uint64_t) };

typedef struct {
    uint64_t next;   // number of records ever begun
    char padding[56];  // `next` has its cache line for itself: every writer adds to it
    uint64_t start;  // records before this one were cleared
    uint64_t mask;   // capacity - 1, capacity a power of 2
    uint64_t limit;  // how many the reader is shown, <= capacity
    gt_record* records;
} gt_ring;

static inline uint64_t gt_ring_capacity(uint64_t limit) {
    uint64_t capacity = 64;
    while (capacity < limit) capacity *= 2;
    return capacity;
}

static inline gt_ring* gt_ring_new(uint64_t limit) {
    uint64_t capacity = gt_ring_capacity(limit);
    gt_ring* ring = (gt_ring*)calloc(1, sizeof(gt_ring));
    if (ring == NULL) return NULL;
    void* range = mmap(NULL, capacity * sizeof(gt_record), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        free(ring);
        return NULL;
    }
    ring->records = (gt_record*)range;
    ring->mask = capacity - 1;
    ring->limit = limit;
    return ring;
}

static inline uint64_t gt_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#define GT_PUT(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)
#define GT_GET(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

// Adds a copy of `source`, whose sequence is not read.
static inline void gt_ring_add(gt_ring* ring, const gt_record* source) {
    uint64_t number = __atomic_fetch_add(&ring->next, 1, __ATOMIC_RELAXED);
    gt_record* record = &ring->records[number & ring->mask];
    uint64_t words[GT_RECORD_WORDS];
    GT_PUT(record->sequence, 0);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    memcpy(words, source, sizeof(words));
    for (int i = 1; i < GT_RECORD_WORDS; i++) GT_PUT(((uint64_t*)record)[i], words[i]);
    __atomic_store_n(&record->sequence, number + 1, __ATOMIC_RELEASE);
}

// The numbers of the records that a reader may get: [first, end).
static inline void gt_ring_range(gt_ring* ring, uint64_t* first, uint64_t* end) {
    uint64_t next = __atomic_load_n(&ring->next, __ATOMIC_ACQUIRE);
    uint64_t start = GT_GET(ring->start);
    uint64_t limit = GT_GET(ring->limit);
    *end = next;
    *first = next > limit && next - limit > start ? next - limit : start;
}

// Copies record `number`; 0 when it is being written or already overwritten.
static inline int gt_ring_get(gt_ring* ring, uint64_t number, gt_record* out) {
    gt_record* record = &ring->records[number & ring->mask];
    uint64_t words[GT_RECORD_WORDS];
    if (__atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE) != number + 1) return 0;
    for (int i = 1; i < GT_RECORD_WORDS; i++) words[i] = GT_GET(((uint64_t*)record)[i]);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    words[0] = GT_GET(record->sequence);
    memcpy(out, words, sizeof(words));
    return words[0] == number + 1;
}

// A larger ring with the same records. Records that other threads write meanwhile may be lost.
static inline gt_ring* gt_ring_enlarged(gt_ring* ring, uint64_t limit) {
    gt_ring* larger = gt_ring_new(limit);
    uint64_t number, first, end;
    if (larger == NULL) return NULL;
    gt_ring_range(ring, &first, &end);
    larger->start = first;
    larger->next = end;
    for (number = first; number < end; number++) {
        gt_record* record = &larger->records[number & larger->mask];
        if (gt_ring_get(ring, number, record)) record->sequence = number + 1;
    }
    return larger;
}

// Records that a smaller limit has hidden do not come back with a larger one.
static inline void gt_ring_set_limit(gt_ring* ring, uint64_t limit) {
    uint64_t first, end;
    gt_ring_range(ring, &first, &end);
    GT_PUT(ring->start, first);
    GT_PUT(ring->limit, limit);
}

static inline void gt_ring_clear(gt_ring* ring) {
    GT_PUT(ring->start, __atomic_load_n(&ring->next, __ATOMIC_RELAXED));
    madvise(ring->records, (ring->mask + 1) * sizeof(gt_record), MADV_DONTNEED);
}

static inline void gt_ring_delete(gt_ring* ring) {
    if (ring == NULL) return;
    munmap(ring->records, (ring->mask + 1) * sizeof(gt_record));
    free(ring);
}
