// A machine for steps (steps.h) that calls function pointers, for Cython.
#pragma once

#include "gputensor/programs/ahead/launches/steps.h"

namespace gputensor {

struct StepCalls {
    static constexpr bool CAPTURES = false;
    void* self;
    int (*launch_list)(void* self, size_t list, const uint64_t* spans);
    int (*copy_bytes)(void* self, uint64_t dst, uint64_t src, uint64_t nbytes);
    int (*store_index)(void* self, uint64_t dst, int64_t value);
    int (*load_flag)(void* self, uint64_t address, bool* flag);

    int launch(size_t list, const uint64_t* spans) { return launch_list(self, list, spans); }
    int copy(uint64_t dst, uint64_t src, uint64_t nbytes) { return copy_bytes(self, dst, src, nbytes); }
    int write_index(uint64_t dst, int64_t value) { return store_index(self, dst, value); }
    int read_flag(uint64_t address, bool* flag) { return load_flag(self, address, flag); }
};

inline int run_steps(const Steps& steps, StepCalls calls, const uint64_t* addresses) {
    return steps.run(calls, addresses);
}

}  // namespace gputensor
