// A call of a user's function, by an entry of a driver.
#pragma once

#include <cxxabi.h>

namespace gputensor {

// Calls a function of the user. A C++ exception ends here, since no caller could receive it; the end
// of the thread, which glibc raises like an exception, does not.
inline void call_users(void (*function)(void*), void* argument) {
    try {
        function(argument);
    } catch (abi::__forced_unwind&) {
        throw;
    } catch (...) {
    }
}

}  // namespace gputensor
