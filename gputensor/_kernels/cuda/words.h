// What the text of the kernels and the C++ of the host share: integers of a known size, addresses.
//
// A header of parameters is compiled by both. In the text of a kernel (program.py defines
// GPUTENSOR_KERNEL there) an address is a pointer; on the host it is a number, as in the driver
// table. Neither includes a header of C: NVRTC has none.
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
