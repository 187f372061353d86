// Ordinary pages for pinned_use_cuda_host_register: mapped, and touched by several threads, since
// making pages is most of the time that registering them takes and one thread makes about 4 GB/s.
#pragma once
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { GT_TOUCH_STEP = 4096, GT_TOUCH_THREADS = 128 };

typedef struct {
    char* start;
    size_t nbytes;
} gt_touch;

static void* gt_touch_run(void* argument) {
    gt_touch* part = (gt_touch*)argument;
    for (size_t at = 0; at < part->nbytes; at += GT_TOUCH_STEP)
        *(volatile char*)(part->start + at) = 0;
    return NULL;
}

// Gives 0 when the system has no memory. `nbytes` is a multiple of GT_TOUCH_STEP.
static uint64_t gt_touched_pages(size_t nbytes, int threads) {
    void* range = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED) return 0;
    pthread_t running[GT_TOUCH_THREADS];
    gt_touch parts[GT_TOUCH_THREADS];
    if (threads > GT_TOUCH_THREADS) threads = GT_TOUCH_THREADS;
    size_t pages = nbytes / GT_TOUCH_STEP;
    size_t share = (pages + threads - 1) / threads * GT_TOUCH_STEP;
    int started = 0;
    size_t at = 0;
    for (; at < nbytes && started < threads; started++, at += share) {
        parts[started].start = (char*)range + at;
        parts[started].nbytes = nbytes - at < share ? nbytes - at : share;
        // The last part is this thread's own.
        if (at + share >= nbytes ||
            pthread_create(&running[started], NULL, gt_touch_run, &parts[started]) != 0)
            break;
    }
    for (; at < nbytes; at += GT_TOUCH_STEP) ((volatile char*)range)[at] = 0;
    while (started-- > 0) pthread_join(running[started], NULL);
    return (uint64_t)(uintptr_t)range;
}

static void gt_drop_pages(uint64_t ptr, size_t nbytes) { munmap((void*)(uintptr_t)ptr, nbytes); }
