"""The precision flags: process defaults, scopes of a thread, and settings of one call.

The narrowest setting wins: the setting of a call overrides the innermost scope, that scope the
outer scopes, and those the process default. A flag that a narrower setting leaves out keeps its
wider value. The defaults are the exact ones: no TF32, no rounding of partial sums. Reading the
flags takes two loads and no lock; scopes live in C thread-local storage, so they do not follow an
asyncio task to another thread.
"""

cdef extern from "gputensor/blas/plan/precision_default.h":
    ctypedef struct PrecisionEntry:
        pass
    uint32_t precision_default_get() noexcept nogil
    PrecisionEntry* precision_set(uint32_t mask, uint32_t value)
    void precision_take_back(PrecisionEntry* entry)
    cdef cppclass PrecisionSetter:
        PrecisionEntry* entry

cdef extern from *:
    """
    #include <cstdint>
    #include <utility>
    #include <vector>
    static thread_local uint32_t precision_scope_mask = 0;
    static thread_local uint32_t precision_scope_value = 0;
    static thread_local std::vector<std::pair<uint32_t, uint32_t>> precision_saved;
    static inline void precision_enter(uint32_t mask, uint32_t value) {
        precision_saved.emplace_back(precision_scope_mask, precision_scope_value);
        precision_scope_value = (precision_scope_value & ~mask) | value;
        precision_scope_mask |= mask;
    }
    static inline void precision_leave(void) {
        if (precision_saved.empty()) return;
        precision_scope_mask = precision_saved.back().first;
        precision_scope_value = precision_saved.back().second;
        precision_saved.pop_back();
    }
    """
    uint32_t precision_scope_mask
    uint32_t precision_scope_value
    void precision_enter(uint32_t mask, uint32_t value)
    void precision_leave()

# The names of float32 precisions. "highest", "high" and "medium" are PyTorch's.
FLOAT32 = {
    "highest": FP32_IEEE,
    "ieee": FP32_IEEE,
    "high": FP32_TF32,
    "tf32": FP32_TF32,
    "medium": FP32_BF16,
    "bf16": FP32_BF16,
    "bf16x9": FP32_BF16X9,
}
FLOAT32_NAME = {FP32_IEEE: "highest", FP32_TF32: "high", FP32_BF16: "medium",
                FP32_BF16X9: "bf16x9"}
BITS = {
    "allow_fp16_reduced_precision_reduction": FP16_REDUCTION,
    "allow_bf16_reduced_precision_reduction": BF16_REDUCTION,
    "allow_fp16_accumulation": FP16_ACCUMULATION,
    "deterministic": DETERMINISTIC,
}
# The flag that forbids splitting sums, by the name of the flag whose second value it is.
NO_SPLIT = {
    "allow_fp16_reduced_precision_reduction": FP16_NO_SPLIT,
    "allow_bf16_reduced_precision_reduction": BF16_NO_SPLIT,
}


cdef uint32_t precision_current() noexcept nogil:
    return (precision_default_get() & ~precision_scope_mask) | precision_scope_value


def precision_flags():
    """Return the flags in force for this thread's products, as an int.

    >>> precision_flags() >= 0
    True
    """
    return precision_current()


cdef uint32_t precision_for(object setting) except? 0xFFFFFFFF:
    cdef uint32_t flags = precision_current()
    cdef Precision own
    if setting is None:
        return flags
    if isinstance(setting, str):
        return (flags & ~<uint32_t>FP32_MASK) | <uint32_t>float32_code(setting)
    if isinstance(setting, Precision):
        own = <Precision>setting
        return (flags & ~own.mask) | own.value
    raise TypeError(f"precision: got {type(setting).__name__}; expected None, a string or a "
                    "gputensor.blas.Precision")


cdef int compute_type(int dtype, int result, uint32_t flags) noexcept nogil:
    if dtype == DT_FLOAT64 or dtype == DT_COMPLEX128:
        return COMPUTE_64F
    if dtype == DT_FLOAT32 or dtype == DT_COMPLEX64:
        if flags & FP32_MASK == FP32_TF32:
            return COMPUTE_32F_FAST_TF32
        if flags & FP32_MASK == FP32_BF16:
            return COMPUTE_32F_FAST_16BF
        if flags & FP32_MASK == FP32_BF16X9:
            return COMPUTE_32F_EMULATED_16BFX9
        return COMPUTE_32F
    if dtype == DT_FLOAT16 and result == DT_FLOAT16 and flags & FP16_ACCUMULATION:
        return COMPUTE_16F
    if dtype == DT_INT8:
        return COMPUTE_32I
    return COMPUTE_32F


cdef bint allows_reduced_reduction(int dtype, uint32_t flags) noexcept nogil:
    if flags & DETERMINISTIC:
        return False
    if dtype == DT_FLOAT16:
        return (flags & (FP16_REDUCTION | FP16_ACCUMULATION)) != 0
    if dtype == DT_BFLOAT16:
        return (flags & BF16_REDUCTION) != 0
    return False


cdef bint allows_split(int dtype, uint32_t flags) noexcept nogil:
    if dtype == DT_FLOAT16:
        return not flags & FP16_NO_SPLIT
    return dtype != DT_BFLOAT16 or not flags & BF16_NO_SPLIT


# Converts the value of a flag, or the pair (allow, allow_split_k) of one that has two values.
cdef uint32_t flag_value(str name, object given) except? 0xFFFFFFFF:
    cdef uint32_t bit = <uint32_t>BITS[name]
    if name not in NO_SPLIT or not isinstance(given, tuple):
        return bit if boolean(name, given) else 0
    if len(given) != 2:
        raise TypeError(f"{name}: got {len(given)} values; expected a bool or a pair of bools")
    allow, split = boolean(name, given[0]), boolean(name, given[1])
    if allow and not split:
        raise ValueError(f"{name}: got (True, False); expected True as the second value if the "
                         "first is True, because without splits no partial sums are rounded")
    return (bit if allow else 0) | (0 if split else <uint32_t>NO_SPLIT[name])


cdef int float32_code(object name) except -1:
    if not isinstance(name, str):
        raise TypeError(f"float32: got {type(name).__name__}; expected a string")
    if name not in FLOAT32:
        raise ValueError(f"float32: got {name!r}; expected one of {sorted(FLOAT32)}")
    return FLOAT32[name]


cdef bint boolean(str name, object value) except -1:
    if value is True or value is False:
        return value
    raise TypeError(f"{name}: got {value!r:.60}; expected True or False")


cdef class Precision:
    """Precision settings of products, for one call or, as a context, for this thread.

    Parameters
    ----------
    allow_tf32 : bool, optional
        float32 products may round their inputs to TF32 (10 explicit bits).
    float32 : str, optional
        The same choice by name: ``"highest"`` (``"ieee"``), ``"high"`` (``"tf32"``), ``"medium"``
        (``"bf16"``), ``"bf16x9"``. Cannot be combined with `allow_tf32`.
    allow_fp16_reduced_precision_reduction, allow_bf16_reduced_precision_reduction : optional
        A bool: whether partial sums of a product may be rounded to the output type before they are
        added. Or a pair of bools ``(allow, allow_split_k)``, of which the second states whether a
        library may cut the sums of a product into partial sums at all; a single bool allows it.
    allow_fp16_accumulation : bool, optional
        float16 products may be summed in float16.
    deterministic : bool, optional
        Results have the same bits from run to run and across streams.

    A flag that is left out keeps the value of the wider scope. Instances are immutable and may be
    entered more than once, even by several threads.

    Raises
    ------
    TypeError
        If a flag has the wrong type.
    ValueError
        If `float32` is an unknown name, if `allow_tf32` and `float32` are both given, or for a pair
        ``(True, False)``.

    Examples
    --------
    >>> from gputensor import blas
    >>> blas.float32_matmul_precision()
    'highest'
    >>> with blas.Precision(allow_tf32=True):
    ...     blas.float32_matmul_precision()
    'high'
    """

    def __init__(self, *, allow_tf32=None, float32=None,
                 allow_fp16_reduced_precision_reduction=None,
                 allow_bf16_reduced_precision_reduction=None,
                 allow_fp16_accumulation=None, deterministic=None):
        given = {
            "allow_fp16_reduced_precision_reduction": allow_fp16_reduced_precision_reduction,
            "allow_bf16_reduced_precision_reduction": allow_bf16_reduced_precision_reduction,
            "allow_fp16_accumulation": allow_fp16_accumulation,
            "deterministic": deterministic,
        }
        cdef uint32_t mask = 0
        cdef uint32_t value = 0
        if allow_tf32 is not None and float32 is not None:
            raise ValueError("precision: got allow_tf32 and float32; expected one of them")
        if allow_tf32 is not None:
            mask |= FP32_MASK
            value |= FP32_TF32 if boolean("allow_tf32", allow_tf32) else FP32_IEEE
        if float32 is not None:
            mask |= FP32_MASK
            value |= <uint32_t>float32_code(float32)
        for name, flag in given.items():
            if flag is not None:
                mask |= <uint32_t>BITS[name] | <uint32_t>NO_SPLIT.get(name, 0)
                value |= flag_value(name, flag)
        self.mask = mask
        self.value = value

    def __enter__(self):
        precision_enter(self.mask, self.value)
        return self

    def __exit__(self, *exception):
        precision_leave()
        return False

    def __repr__(self):
        parts = []
        if self.mask & FP32_MASK:
            parts.append(f"float32={FLOAT32_NAME[self.value & FP32_MASK]!r}")
        for name, bit in BITS.items():
            if self.mask & <uint32_t>bit:
                is_split = not self.value & <uint32_t>NO_SPLIT.get(name, 0)
                shown = bool(self.value & <uint32_t>bit)
                parts.append(f"{name}={shown}" if is_split else f"{name}=({shown}, False)")
        return f"Precision({', '.join(parts)})"


def precision(**flags):
    """Return :class:`Precision` settings: ``with gt.blas.precision(allow_tf32=True): ...``.

    >>> precision(allow_tf32=True, deterministic=True)
    Precision(float32='high', deterministic=True)
    """
    for name in flags:
        if name != "allow_tf32" and name != "float32" and name not in BITS:
            raise TypeError(f"precision: got the flag {name}; expected one of allow_tf32, float32, "
                            f"{', '.join(BITS)}")
    return Precision(**flags)


cdef class ProcessSetting(Precision):
    """The result of a setter of a process default, which may be ignored or entered with ``with``.

    Entering it as a context takes the change of the process default back, and applies the setting
    to this thread until the end of the block instead. Entering it again only makes a scope.
    Between the call and the block other threads may see the setting; they never see the scope of
    :func:`precision`.
    """

    cdef PrecisionSetter setter

    def __enter__(self):
        cdef PrecisionEntry* entry = self.setter.entry
        if entry is not NULL:
            self.setter.entry = NULL
            precision_take_back(entry)
        return Precision.__enter__(self)


cdef object set_default(dict flags):
    cdef ProcessSetting setting = ProcessSetting(**flags)
    setting.setter.entry = precision_set(setting.mask, setting.value)
    if setting.setter.entry is NULL:
        raise MemoryError("precision: no host memory for a change of the flags")
    return setting


cdef object bit_flag(str name, object value):
    if value is None:
        return bool(precision_current() & <uint32_t>BITS[name])
    return set_default({name: value})


def allow_tf32(value=None):
    """Set or return whether float32 products may round their inputs to TF32.

    This is the same setting as :func:`float32_matmul_precision`: True is ``"high"``, False
    ``"highest"``.

    Parameters
    ----------
    value : bool, optional
        The new process default.

    Returns
    -------
    bool or ProcessSetting
        Without an argument, whether it holds in this thread. Otherwise a setting that may be
        entered as a context: the change of the process default is then taken back, and the setting
        holds for this thread until the end of the block. Other threads may see the setting until
        the block begins; they never see the scope of :func:`precision`.

    Examples
    --------
    >>> allow_tf32()
    False
    >>> with allow_tf32(True):
    ...     allow_tf32()
    True
    >>> allow_tf32()
    False
    """
    if value is None:
        return bool(precision_current() & FP32_MASK in (FP32_TF32, FP32_BF16))
    return set_default({"allow_tf32": value})


def float32_matmul_precision(value=None):
    """Set or return the precision of float32 products, by name.

    ``"highest"`` is IEEE float32, ``"high"`` rounds inputs to TF32, ``"medium"`` rounds inputs to
    bfloat16, and ``"bf16x9"`` emulates float32 by nine bfloat16 products where the library can, and
    is plain float32 elsewhere. Sums are float32 in all cases. The host device always uses IEEE
    float32.

    Parameters
    ----------
    value : str, optional
        The new process default; also one of the other names that :class:`Precision` lists.

    Returns
    -------
    str or ProcessSetting
        Without an argument, the name in force in this thread; otherwise as in :func:`allow_tf32`.

    Examples
    --------
    >>> float32_matmul_precision()
    'highest'
    """
    if value is None:
        return FLOAT32_NAME[precision_current() & FP32_MASK]
    return set_default({"float32": value})


def allow_fp16_reduced_precision_reduction(value=None):
    """Set or return whether partial sums of float16 products may be rounded to float16.

    A pair ``(allow, allow_split_k)`` also sets whether a library may cut sums into partial sums,
    which :func:`allow_fp16_reduced_precision_reduction_split_k` returns. The argument is the new
    process default; the results are those of :func:`allow_tf32`.

    Examples
    --------
    >>> allow_fp16_reduced_precision_reduction()
    False
    """
    return bit_flag("allow_fp16_reduced_precision_reduction", value)


def allow_bf16_reduced_precision_reduction(value=None):
    """Set or return whether partial sums of bfloat16 products may be rounded to bfloat16.

    The argument and the results are as in :func:`allow_fp16_reduced_precision_reduction`.

    Examples
    --------
    >>> allow_bf16_reduced_precision_reduction()
    False
    """
    return bit_flag("allow_bf16_reduced_precision_reduction", value)


def allow_fp16_reduced_precision_reduction_split_k():
    """Return whether libraries may cut the sums of float16 products into partial sums.

    >>> with allow_fp16_reduced_precision_reduction((False, False)):
    ...     allow_fp16_reduced_precision_reduction_split_k()
    False
    """
    return not precision_current() & <uint32_t>FP16_NO_SPLIT


def allow_bf16_reduced_precision_reduction_split_k():
    """Return whether libraries may cut the sums of bfloat16 products into partial sums.

    >>> allow_bf16_reduced_precision_reduction_split_k()
    True
    """
    return not precision_current() & <uint32_t>BF16_NO_SPLIT


def allow_fp16_accumulation(value=None):
    """Set or return whether float16 products may be summed in float16.

    The argument, a bool, is the new process default; the results are those of :func:`allow_tf32`.

    Examples
    --------
    >>> allow_fp16_accumulation()
    False
    """
    return bit_flag("allow_fp16_accumulation", value)


def deterministic(value=None):
    """Set or return whether products have the same bits from run to run and across streams.

    The argument, a bool, is the new process default; the results are those of :func:`allow_tf32`.

    Examples
    --------
    >>> deterministic()
    False
    """
    return bit_flag("deterministic", value)
