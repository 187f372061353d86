# The functions of tensor/core that other rooms may call; each section is named after its part.

from libc.stdint cimport int64_t, uint64_t

from gputensor._alloc.core cimport Block
from gputensor._arrays cimport Operand
from gputensor._driver.host cimport section_begin, section_end
from gputensor.streams.order cimport UseLog

# ---- storage

# A Storage owns the memory that tensors view: a block of the allocator, or memory of a foreign
# owner. Views share one Storage, so they share its UseLog and are ordered against each other.

cdef class Storage:
    cdef Block* block           # NULL: foreign memory, or no bytes at all
    cdef UseLog uses            # the last write and reads, by stream
    cdef uint64_t ptr           # address of the first byte; 0 when nbytes is 0
    cdef size_t nbytes
    cdef int device             # device number (see _driver/table.pxd)
    cdef int generation         # of the device: it differs if another device took over the number
    cdef bint is_readonly       # foreign memory that must not be written
    cdef object owner           # keeps foreign memory alive; None when the block is ours

# Foreign memory, which lives as long as `owner`. Work queued on `stream` may use it without
# waiting.
cdef Storage storage_foreign(int device, uint64_t ptr, size_t nbytes, object owner,
                             bint is_readonly, uint64_t stream)
# Raises DeviceError if the device of the storage was closed; another device may have its number
# by now. Callers first check that the number is below `closable`: only host devices below -1 can
# be closed, and in a forked process all devices that its parent had open are closed.
cdef int storage_check_open(Storage storage) except -1

cdef int closable


# ---- tensor

# The Tensor type: a Storage, the address of the first element, an element type, a shape and
# strides. Functions that compute build Operands from Tensors.

# The most elements of a tensor: with 16 bytes each, more would exceed the address space.
cdef extern from *:
    """
    #include <cstdint>
    static const int64_t gt_max_size = (int64_t)1 << 58;
    """
    const int64_t MAX_SIZE "gt_max_size"

cdef class Tensor:
    cdef Storage storage
    cdef uint64_t ptr               # address of element [0, ..., 0]
    cdef int dtype_code             # a DType of _arrays/__init__.pxd
    cdef int ndim_                  # <= MAX_NDIM
    cdef int is_c_contiguous        # 1 when elements follow each other in row-major order
    cdef int64_t size_              # number of elements
    cdef int64_t shape_[16]
    cdef int64_t strides_[16]       # in elements; 0 or negative in views
    cdef object __weakref__

    # Fills the operand that kernels and products take; it is valid while the tensor lives.
    cdef int fill_operand(self, Operand* out) except -1
    # Orders the coming read or write on `stream` after earlier uses of the storage on other
    # streams, and reports the use to the allocator. Call it before the work is launched; the
    # write form raises ValueError for read-only foreign memory.
    cdef int prepare_read(self, uint64_t stream) except -1
    cdef int prepare_write(self, uint64_t stream) except -1

# A new row-major tensor with undefined contents, on the device's current stream.
cdef Tensor empty_tensor(int dtype, int ndim, const int64_t* shape, int device)
# A tensor over the same storage; strides in elements.
cdef Tensor view_tensor(Tensor base, uint64_t ptr, int ndim, const int64_t* shape,
                        const int64_t* strides)
# The same for any storage and dtype (imported memory, reinterpreted memory).
cdef Tensor tensor_over(Storage storage, uint64_t ptr, int dtype, int ndim, const int64_t* shape,
                        const int64_t* strides)
# The bytes that a tensor can touch, as [first, last); (ptr, ptr) for an empty one.
cdef void tensor_span(Tensor a, uint64_t* first, uint64_t* last) noexcept


# ---- tracing

# The behaviour of tensors while this thread traces a function.

# Called if operands are on different devices: raises ValueError that names two of them. While a
# function is traced, tensors from outside become values of the trace instead, and the operands are
# returned, all on the device of the trace. `out` is the tensor to write, which is not replaced, or
# None.
cpdef tuple on_one_device(str function, tuple operands, Tensor out)
# Raises for a tensor of the function that this thread traces, because it has no value yet.
cdef int refuse_value_of(Tensor tensor, str what) except -1
# The additional checks of prepare_write for a storage whose device is below `closable`.
cdef int storage_check_write(Storage storage) except -1


# ---- section

# The section in which an operation on tensors orders its uses and queues its work: between the
# first prepare_read or prepare_write and the last piece of work, no other thread orders or queues.
#
#     work_begin()
#     try:
#         a.prepare_read(stream)
#         ...                         # queue the work; wait for nothing
#     finally:
#         work_end(device)
#
# Allocations, copies and waits come before it.

cdef inline int work_begin() except -1:
    section_begin()
    return 0

cdef inline int work_end(int device) except -1:
    if device < 0:
        return host_work_end(device)
    section_end()
    return 0

# On a host device that is not deferred, the work runs here; raises the error that it left.
cdef int host_work_end(int device) except -1


# ---- arguments

# Arguments that many functions share: shapes, dtypes, axes.

# Reads a shape (an int or a sequence of ints) into `out` and returns the number of axes.
# ValueError for a negative extent or too many axes, OutOfMemoryError for more elements than the
# address space can hold.
cdef int shape_argument(object shape, int64_t* out) except -1
# A number of elements: 0 or more, and no more than the address space can hold. Messages name the
# function and the argument.
cdef int64_t count_argument(object count, str name, str argument) except -1
# The number of a diagonal, k > 0 above the main one, clipped so that sums fit 64 bits.
cdef int64_t diagonal_argument(object k, str name) except? -1
# The code of a dtype argument; `default` if it is None.
cdef int dtype_argument(object dtype, int default) except -1
# The device number of a device argument; None is the current device.
cdef int device_argument(object device) except? -1000
# An axis as 0 <= axis < ndim. IndexError names the function.
cpdef int axis_argument(object axis, int ndim, str name) except -1
# A bit for each axis of an int or a tuple of ints; all axes for None.
cdef int axes_mask(object axis, int ndim, str name) except -1
# A flag: True or False (also NumPy's). TypeError for anything else names function and argument.
cdef bint flag_argument(object value, str name, str argument) except -1
# The copy argument of the array API: True, False or None; TypeError for anything else.
cdef object copy_argument(object value, str name)
# `value` as a Tensor; TypeError names the function.
cpdef Tensor tensor_argument(object value, str name)
# The same for a tensor that the function writes to.
cpdef Tensor written_argument(object value, str name, str argument=*)


# ---- call

# One element-wise call: from Python arguments to a queued kernel.

# How an operation chooses the dtype in which it computes and the dtype of its result.
cdef enum Rule:
    RULE_SAME = 0           # both are the common dtype of the arguments
    RULE_FLOAT = 1          # bool and integers become float32 first
    RULE_COMPARE = 2        # computes in the common dtype, returns bool
    RULE_LOGICAL = 3        # computes in bool, returns bool
    RULE_BITS = 4           # bool and integers only
    RULE_CLASSIFY = 5       # as FLOAT, returns bool
    RULE_MAGNITUDE = 6      # as SAME, but a complex argument returns its real dtype
    RULE_WHERE = 7          # the first argument, a condition, does not affect the dtype
    RULE_COUNT = 8          # as SAME, returns uint8

# The result of `op` on `arguments` (Tensors and Python numbers, at least one Tensor), written to
# `out` if that is not None. `name` is the public function's, for messages. Checks everything
# before it allocates, and allocates before it queues.
cdef Tensor elementwise_tensor(int op, str name, tuple arguments, object out, int rule)
cdef tuple without_lists(tuple arguments)
# target[...] = source, cast and broadcast; the two may overlap and must share a device.
cdef int copy_into(Tensor target, Tensor source) except -1
# target[...] = a Python number.
cdef int fill_with(Tensor target, object value) except -1
# A row-major copy with dtype `dtype` on the same device.
cdef Tensor copied(Tensor source, int dtype)
# The tensor itself if it is row-major, otherwise a row-major copy.
cdef Tensor contiguous(Tensor source)
# 0 bool, 1 int, 2 float, 3 complex; -1 if `value` is not a number. NumPy scalars are numbers.
cdef int number_kind(object value) except -2
# A number without its fraction, as a Python int; OverflowError (NaN: ValueError) if it does not
# fit the integer `dtype`.
cdef object whole_number(object value, int dtype)
# Broadcasts shape[:ndim] with the tensor's shape and returns the new ndim. ValueError if they do
# not broadcast.
cdef int broadcast_shape(int64_t* shape, int ndim, Tensor a, str name) except -1
# Fills the operand of a tensor that is broadcast to `shape`; the two must be compatible.
cdef void broadcast_operand(Tensor a, Operand* out, int ndim, const int64_t* shape) noexcept
# The common dtype of two codes.
cdef int promote_codes(int a, int b) except -1
# Whether the two may share bytes without being the same elements in the same order.
cdef bint overlaps(Tensor target, Tensor source) noexcept
# ValueError if `target` is read-only or several of its elements share one place in memory.
cdef int check_distinct(Tensor target, str name) except -1
