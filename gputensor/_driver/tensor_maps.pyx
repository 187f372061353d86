"""Tensor maps: how the copying unit of a GPU finds boxes of a tensor in memory.

The driver encodes them, on the host. Nothing but the address in the first word is known of their
form, and that no other word depends on it. Whoever moves the tensors of a captured graph relies on
both, so they are checked here.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from gputensor._driver.cuda cimport MapEncoders, map_encoders

cdef enum:
    MAP_FLOAT16 = 6
    MAP_BFLOAT16 = 9
    MAP_SWIZZLE_128 = 3
    MAP_PROMOTION_128 = 2       # of reads in the L2 cache
    MAP_MOST_STEP = 8
    MAP_NBYTES = 128
    MAP_WORDS = 16
    MAP_ROOM = 24               # words in which there is room for an aligned map
    MAP_ALIGNMENT = 64


cdef int movable = -1           # whether maps can be moved; -1: not known yet


cdef bint has_tensor_maps() noexcept nogil:
    global movable
    cdef MapEncoders encoders = map_encoders()
    if encoders.tiled == NULL or encoders.im2col == NULL:
        return False
    if movable < 0:
        movable = are_movable()
    return movable


cdef bint are_movable() noexcept nogil:
    """Whether the maps of a tensor at two addresses differ in their first word only.

    A driver may refuse addresses without memory; that says nothing about the maps of others.
    """
    cdef uint64_t[2][MAP_WORDS] tiles, pixels
    cdef MappedTensor tensor
    cdef int64_t[2] first, counts, steps
    cdef int place, axis
    memset(&tensor, 0, sizeof(tensor))
    tensor.axes = 4
    for axis in range(4):
        tensor.extents[axis], tensor.strides[axis], tensor.box[axis] = 64, 64 << 6 * axis, 8
    for axis in range(2):
        first[axis], counts[axis], steps[axis] = 0, 32, 2
    for place in range(2):
        tensor.ptr = 0x7f1234567890 if place else 0x12000000
        if (not map_tiles(tiles[place], &tensor)
                or not map_pixels(pixels[place], &tensor, first, counts, steps, 64)):
            return True
    return (memcmp(&tiles[0][1], &tiles[1][1], MAP_NBYTES - 8) == 0
            and memcmp(&pixels[0][1], &pixels[1][1], MAP_NBYTES - 8) == 0)


cdef int64_t stride_of(const MappedTensor* tensor, int axis) noexcept nogil:
    """The stride along an axis; no copy uses that of a single element."""
    return tensor.strides[axis] if tensor.extents[axis] > 1 else 8


cdef bint is_mappable(const MappedTensor* tensor) noexcept nogil:
    cdef int axis
    cdef int64_t stride
    if tensor.ptr % 16 or not 2 <= tensor.axes <= 4:
        return False
    for axis in range(tensor.axes):
        if not 0 < tensor.extents[axis] <= 0xffffffffll:
            return False
        stride = stride_of(tensor, axis)
        if axis and (stride % 8 or not 0 < stride < <int64_t>1 << 38):
            return False
    return True


cdef uint64_t* aligned_words(uint64_t* room) noexcept nogil:
    return <uint64_t*>((<uint64_t>room + MAP_ALIGNMENT - 1) // MAP_ALIGNMENT * MAP_ALIGNMENT)


cdef bint map_tiles(uint64_t* words, const MappedTensor* tensor) noexcept nogil:
    cdef uint64_t[MAP_ROOM] room
    cdef uint64_t* made = aligned_words(room)
    cdef uint64_t[4] extents, strides
    cdef uint32_t[4] steps
    cdef int axis, status
    if not is_mappable(tensor):
        return False
    for axis in range(tensor.axes):
        extents[axis], steps[axis] = <uint64_t>tensor.extents[axis], 1
        if axis:
            strides[axis - 1] = <uint64_t>stride_of(tensor, axis) * 2
    status = map_encoders().tiled(
        made, MAP_BFLOAT16 if tensor.is_bfloat else MAP_FLOAT16, tensor.axes, tensor.ptr, extents,
        strides, tensor.box, steps, 0, 0 if tensor.is_plain else MAP_SWIZZLE_128,
        0 if tensor.is_read_once else MAP_PROMOTION_128, 0)
    memcpy(words, made, MAP_NBYTES)
    return status == 0 and words[0] == tensor.ptr


cdef bint map_pixels(uint64_t* words, const MappedTensor* tensor, const int64_t* first,
                     const int64_t* counts, const int64_t* steps,
                     int64_t pixels) noexcept nogil:
    cdef uint64_t[MAP_ROOM] room
    cdef uint64_t* made = aligned_words(room)
    cdef uint64_t[4] extents, strides
    cdef uint32_t[4] apart
    cdef int[2] lower, upper
    cdef int64_t last
    cdef int axis, status
    if not is_mappable(tensor) or tensor.axes != 4 or not 0 < pixels <= 256:
        return False
    for axis in range(4):
        extents[axis], apart[axis] = <uint64_t>tensor.extents[axis], 1
        if axis:
            strides[axis - 1] = <uint64_t>stride_of(tensor, axis) * 2
    for axis in range(2):       # the driver takes the last pixel's distance from the last one of x
        last = first[axis] + (counts[axis] - 1) * steps[axis] - (tensor.extents[axis + 1] - 1)
        if (not -128 <= first[axis] <= 127 or not -128 <= last <= 127
                or not 1 <= steps[axis] <= MAP_MOST_STEP):
            return False
        lower[axis], upper[axis] = <int>first[axis], <int>last
        apart[axis + 1] = <uint32_t>steps[axis]
    status = map_encoders().im2col(
        made, MAP_BFLOAT16 if tensor.is_bfloat else MAP_FLOAT16, 4, tensor.ptr, extents, strides,
        lower, upper, 64, <unsigned int>pixels, apart, 0, MAP_SWIZZLE_128, MAP_PROMOTION_128, 0)
    memcpy(words, made, MAP_NBYTES)
    return status == 0 and words[0] == tensor.ptr
