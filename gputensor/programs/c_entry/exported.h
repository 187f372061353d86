// The functions of gputensor_program.h. They call pointers that the module sets on import.
#pragma once

#include <cstdio>

#include "gputensor/programs/c_entry/gputensor_program.h"

struct gt_program_calls_t {
    int (*open)(void**, const char*, const char*, int32_t);
    int (*close)(void*);
    const char* (*describe)(void*);
    int (*session_open)(void**, void*);
    int (*session_run)(void*, const char*, int32_t, const gputensor_tensor*, int32_t,
                       gputensor_tensor*, void*);
    int (*session_close)(void*);
};
static gt_program_calls_t gt_program_calls = {};
static thread_local char gt_program_error[1024] = "";

static inline void gt_program_set_error(const char* text) {
    std::snprintf(gt_program_error, sizeof gt_program_error, "%s", text);
}
static inline bool gt_program_is_imported() {
    gt_program_error[0] = 0;
    if (!gt_program_calls.open)
        gt_program_set_error("gputensor.programs.c_entry has not been imported in this process");
    return gt_program_calls.open != nullptr;
}

#define GT_PROGRAM_EXPORT extern "C" __attribute__((visibility("default")))

GT_PROGRAM_EXPORT int gputensor_program_open(gputensor_program** program, const char* path,
                                             const char* weights, int32_t device) {
    if (!gt_program_is_imported()) return GPUTENSOR_PROGRAM_FAILED;
    return gt_program_calls.open(reinterpret_cast<void**>(program), path, weights, device);
}
GT_PROGRAM_EXPORT int gputensor_program_close(gputensor_program* program) {
    if (!gt_program_is_imported()) return GPUTENSOR_PROGRAM_FAILED;
    return gt_program_calls.close(program);
}
GT_PROGRAM_EXPORT const char* gputensor_program_describe(gputensor_program* program) {
    return gt_program_is_imported() ? gt_program_calls.describe(program) : "";
}
GT_PROGRAM_EXPORT int gputensor_session_open(gputensor_session** session,
                                             gputensor_program* program) {
    if (!gt_program_is_imported()) return GPUTENSOR_PROGRAM_FAILED;
    return gt_program_calls.session_open(reinterpret_cast<void**>(session), program);
}
GT_PROGRAM_EXPORT int gputensor_session_run(gputensor_session* session, const char* function,
                                            int32_t input_count, const gputensor_tensor* inputs,
                                            int32_t output_count, gputensor_tensor* outputs,
                                            void* stream) {
    if (!gt_program_is_imported()) return GPUTENSOR_PROGRAM_FAILED;
    return gt_program_calls.session_run(session, function, input_count, inputs, output_count,
                                        outputs, stream);
}
GT_PROGRAM_EXPORT int gputensor_session_close(gputensor_session* session) {
    if (!gt_program_is_imported()) return GPUTENSOR_PROGRAM_FAILED;
    return gt_program_calls.session_close(session);
}
GT_PROGRAM_EXPORT const char* gputensor_program_last_error(void) { return gt_program_error; }
