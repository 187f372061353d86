# Tensor maps for kernels that copy by the copying unit of a GPU of capability 9.0 or newer.

from libc.stdint cimport int64_t, uint32_t, uint64_t

# A tensor map is 16 words that describe a tensor of 16-bit floats to the copying unit of a GPU of
# capability 9.0 or newer; kernels take maps as parameters, at multiples of 64 bytes. The first word
# is the address, so what replaces addresses in captured parameters replaces this one too.

# A tensor of up to four axes, the first one of elements that are neighbours; `strides` of the
# others in elements, of any value for an axis of one. Copies take `box` elements along each axis,
# 64 or fewer along the first, as rows of 128 bytes in the order of wgmma's swizzle; of a plain map
# 256 or fewer, one after the other. What is outside the tensor is read as zeros. Copies of tiles
# that are read once do without longer reads into the L2 cache.
cdef struct MappedTensor:
    uint64_t ptr
    int is_bfloat
    int is_read_once
    int is_plain
    int axes
    int64_t[4] extents
    int64_t[4] strides
    uint32_t[4] box

# Whether a driver is loaded that has them. The other functions need it to be True, and return False
# where the tensor is beyond the limits of maps.
cdef bint has_tensor_maps() noexcept nogil
cdef bint map_tiles(uint64_t* words, const MappedTensor* tensor) noexcept nogil
# Axes are channels, the width and the height of images, and images. Copies take 64 channels of
# `pixels` pixels, which are `steps` apart: `counts` along width and height, of which the first is
# at `first`. `box` is not read.
cdef bint map_pixels(uint64_t* words, const MappedTensor* tensor, const int64_t* first,
                     const int64_t* counts, const int64_t* steps,
                     int64_t pixels) noexcept nogil
