// The findings of a check, as sentences in a buffer of fixed size: a check holds the device lock
// and the caches' locks, under which it may neither take the GIL nor allocate host memory.
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define GT_FAULTS 24
#define GT_FAULT_LENGTH 224

typedef struct gt_faults {
    int count;                                  // how many there are; the first GT_FAULTS are kept
    char texts[GT_FAULTS][GT_FAULT_LENGTH];
} gt_faults;

__attribute__((format(printf, 2, 3)))
static inline void gt_fault(gt_faults* faults, const char* format, ...) {
    if (faults->count < GT_FAULTS) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(faults->texts[faults->count], GT_FAULT_LENGTH, format, arguments);
        va_end(arguments);
    }
    faults->count++;
}

// Writes the findings to standard error and ends the process, as a failed assertion does.
static inline void gt_faults_abort(const gt_faults* faults, int device, const char* change) {
    fprintf(stderr, "gputensor: after %s, the allocator of device %d breaks its invariants:\n",
            change, device);
    for (int i = 0; i < faults->count && i < GT_FAULTS; i++) {
        fprintf(stderr, "  %s\n", faults->texts[i]);
    }
    if (faults->count > GT_FAULTS) {
        fprintf(stderr, "  ... and %d more\n", faults->count - GT_FAULTS);
    }
    fflush(stderr);
    abort();
}
