// The calling thread's table of caches, one cell for each device, and its end with the thread.
//
// A plain thread-local pointer (no constructor, so no check on each use) to a table that a pthread
// key frees at the end of the thread, after handing every cache in it to `retire`.
#pragma once
#include <pthread.h>
#include <stdlib.h>

#define GT_DEVICES 64

static __thread void** gt_caches_of_thread;
static pthread_key_t gt_caches_key;
static pthread_once_t gt_caches_once = PTHREAD_ONCE_INIT;
static void (*gt_caches_retire)(void*);

static void gt_caches_end(void* table) {
    void** cells = (void**)table;
    void (*retire)(void*) = __atomic_load_n(&gt_caches_retire, __ATOMIC_RELAXED);
    gt_caches_of_thread = NULL;
    for (int i = 0; i < GT_DEVICES; i++) {
        if (cells[i]) { retire(cells[i]); }
    }
    free(cells);
}

static void gt_caches_start(void) { pthread_key_create(&gt_caches_key, gt_caches_end); }

// The table's cell for a device; NULL without host memory.
static void** gt_caches_new(int index, void (*retire)(void*)) {
    __atomic_store_n(&gt_caches_retire, retire, __ATOMIC_RELAXED);
    pthread_once(&gt_caches_once, gt_caches_start);
    if (!gt_caches_of_thread) {
        gt_caches_of_thread = (void**)calloc(GT_DEVICES, sizeof(void*));
        if (!gt_caches_of_thread) { return NULL; }
        pthread_setspecific(gt_caches_key, gt_caches_of_thread);
    }
    return &gt_caches_of_thread[index];
}

static inline void* gt_caches_get(int index) {
    return gt_caches_of_thread ? gt_caches_of_thread[index] : NULL;
}
