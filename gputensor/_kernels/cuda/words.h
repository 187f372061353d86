// Types that kernel texts and the C++ of the host share: integers of known size, and addresses.
//
// Both compile the headers of parameters. In the text of a kernel (where program.py defines
// GPUTENSOR_KERNEL) an address is a pointer; on the host it is a number, as in the driver table.
// These headers include no C headers, since NVRTC has none.
#pragma once

namespace gputensor {

typedef signed char int8;
typedef short int16;
typedef int int32;
typedef long long int64;
typedef unsigned char uint8;
typedef unsigned short uint16;
typedef unsigned int uint32;
typedef unsigned long long uint64;

}  // namespace gputensor

#ifdef GPUTENSOR_KERNEL
#define GPUTENSOR_POINTER(type) type*
using namespace gputensor;
#else
#define GPUTENSOR_POINTER(type) uint64
#endif
