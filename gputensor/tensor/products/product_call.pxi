"""One product of tensors: arguments, result, stream order, then one task of blas.

Every call has the same order: check all arguments; allocate the result; plan; order the reads and
the write after other streams; queue the work. A call that fails has changed nothing.
"""

cdef dict ACTIVATIONS = {
    "relu": ACT_RELU,
    "gelu": ACT_GELU,
    "gelu_tanh": ACT_GELU_TANH,
    "silu": ACT_SILU,
}


# The ACT_* number of an activation for a product of `a` and `b`; None is no activation.
cdef int activation_code(str name, object activation, Tensor a, Tensor b) except -1:
    cdef int dtype = a.dtype_code
    if activation is None:
        return ACT_NONE
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ValueError(f"{name}: activation: got {activation!r}; expected None or one of "
                         f"{sorted(ACTIVATIONS)}")
    # fp8 matrices of two types have a product, but no common type.
    if dtype_kind(dtype) != KIND_SMALL or dtype_kind(b.dtype_code) != KIND_SMALL:
        dtype = promote_codes(dtype, b.dtype_code)
    if dtype_kind(dtype) != KIND_FLOAT and dtype_kind(dtype) != KIND_SMALL:
        raise TypeError(f"{name}: activation: got a product of {DTYPES[dtype].name}; expected a "
                        "floating-point product")
    return ACTIVATIONS[activation]


# The checks and the result of one product, also for callers that queue several. TypeError for types
# without a product.
cdef int check_element_types(str name, Tensor a, Tensor b) except -1:
    for tensor in (a, b):
        kind = dtype_kind((<Tensor>tensor).dtype_code)
        if kind == KIND_BOOL or kind == KIND_SMALL:
            raise TypeError(f"{name}: dtype: got {DTYPES[(<Tensor>tensor).dtype_code].name}, "
                            "which has no product; expected another dtype (see astype)")
    return 0


cdef Tensor result_for(str name, Tensor a, Tensor b, object out, int dtype, Operand* operands):
    """Return the tensor to write: `out` after its checks, or a new one.

    Fills the operands of a, b and the result. Their shapes are not compared again later.
    """
    cdef int device = a.storage.device
    cdef int64_t[MAX_NDIM] shape
    cdef int ndim = 0
    cdef int status
    cdef Tensor result
    a.fill_operand(&operands[0])
    b.fill_operand(&operands[1])
    if out is None:
        status = matmul_shape(&operands[0], &operands[1], &ndim, shape)
        if status:
            raise_for_shapes(status, &operands[0], &operands[1], operands)
        result = empty_tensor(dtype, ndim, shape, device)
        result.fill_operand(&operands[2])
        return result
    result = written_argument(out, name)
    if result.storage.device != device:
        on_one_device(name, (a, b), result)     # raises, because set_result has tried it already
    if result.dtype_code != dtype:
        raise TypeError(f"{name}: out: got {DTYPES[result.dtype_code].name}; expected "
                        f"{DTYPES[dtype].name}, the dtype of this product (out_dtype selects "
                        "another)")
    result.fill_operand(&operands[2])
    status = check_out(&operands[0], &operands[1], &operands[2])
    if status:
        raise_for_shapes(status, &operands[0], &operands[1], &operands[2])
    return result


cdef int fp8_out_code(str name, Tensor a, Tensor b, int out_dtype) except -1:
    """Return the dtype of a product of fp8 matrices: `out_dtype` after its checks, or bfloat16."""
    if dtype_kind(a.dtype_code) != KIND_SMALL or dtype_kind(b.dtype_code) != KIND_SMALL:
        promote_codes(a.dtype_code, b.dtype_code)
    if out_dtype < 0:
        return DT_BFLOAT16
    if out_dtype not in (DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32):
        raise TypeError(f"{name}: out_dtype: got {DTYPES[out_dtype].name} for a product of "
                        f"{DTYPES[a.dtype_code].name} and {DTYPES[b.dtype_code].name}; expected "
                        "bfloat16, float16 or float32")
    return out_dtype


# One call of a product, which computes
#
#   activation(alpha * scale * (a @ b) + beta * addend + bias) + residual
#
# `addend` and `residual` broadcast to the product; `bias` has one value for each column; `scale` is
# a float32 Tensor with one element or one for each column. beta is 0 if scale or residual is not
# None. The last four fields are for fp8 products (scaled.pxi).
@cython.final
@cython.freelist(8)
cdef class ProductCall:
    cdef str name               # of the public function
    cdef Tensor a, b, addend, bias, scale, residual
    cdef object out             # a Tensor or None
    cdef int out_dtype          # a code; -1: the operands' own (bfloat16 for fp8)
    cdef Options options
    cdef object scale_a, scale_b, scale_result
    cdef bint is_fast

    cdef int set_result(self, object out, object out_dtype, object precision) except -1:
        self.out = out
        self.out_dtype = -1
        if out is not None or out_dtype is not None:
            self.out_dtype = out_code(out, out_dtype)
            if type(out) is Tensor and (<Tensor> out).storage.device != self.a.storage.device:
                self.a, self.b = on_one_device(self.name, (self.a, self.b), out)
        options_init(&self.options,
                     precision_current() if precision is None else precision_for(precision))
        return 0

    cdef int set_activation(self, object activation) except -1:
        self.options.activation = activation_code(self.name, activation, self.a, self.b)
        return 0

    cdef int finish(self, object scale, object bias, object activation, object residual) except -1:
        """Set activation(scale * (a @ b) + bias) + residual; absent ones are None."""
        cdef Options* options = &self.options
        self.bias = None if bias is None else tensor_argument(bias, self.name)
        self.residual = None if residual is None else tensor_argument(residual, self.name)
        self.set_activation(activation)
        if type(scale) is Tensor:
            self.scale = <Tensor>scale
        elif scale is not None:
            set_factor(self, "scale", scale, &options.alpha, &options.alpha_imag)
        if activation is None and self.scale is None:
            # The libraries can add a matrix when they write the result.
            self.addend, self.residual = self.residual, None
            options.beta = 0 if self.addend is None else 1
        return 0

    cdef int add(self, object input, object beta, object alpha, object activation) except -1:
        """Set activation(beta * input + alpha * (a @ b))."""
        cdef Options* options = &self.options
        cdef Tensor addend = tensor_argument(input, self.name)
        self.set_activation(activation)
        set_factor(self, "alpha", alpha, &options.alpha, &options.alpha_imag)
        set_factor(self, "beta", beta, &options.beta, &options.beta_imag)
        # The libraries add one value for each column, with factor 1, at no cost.
        if (options.beta == 1 and options.beta_imag == 0 and addend.ndim_ == 1
                and addend.shape_[0] == self.b.shape_[self.b.ndim_ - 1]):
            self.bias = addend
            options.beta = 0
        elif options.beta != 0 or options.beta_imag != 0:
            self.addend = addend
        return 0


cdef ProductCall product_call(str name, Tensor a, Tensor b):
    cdef ProductCall call = ProductCall.__new__(ProductCall)
    call.name, call.a, call.b = name, a, b
    return call


# Brings the tensors of a call that are on different devices together; see on_one_device.
cdef ProductCall on_device(ProductCall call):
    (call.a, call.b, call.addend, call.bias, call.scale, call.residual, call.scale_a, call.scale_b,
     call.scale_result) = on_one_device(
        call.name, (call.a, call.b, call.addend, call.bias, call.scale, call.residual,
                    call.scale_a, call.scale_b, call.scale_result), call.out)
    return call


cdef Tensor multiply(ProductCall call):
    cdef str name = call.name
    cdef Tensor a = call.a
    cdef Tensor b = call.b
    cdef Tensor addend = call.addend
    cdef Tensor bias = call.bias
    cdef Tensor scale = call.scale
    cdef Tensor residual = call.residual
    cdef Options* options = &call.options
    cdef int out_dtype = call.out_dtype
    cdef int device = a.storage.device
    cdef uint64_t stream
    cdef Operand[3] operands
    cdef Operand addend_operand, bias_operand, scale_operand, residual_operand
    cdef Task task
    cdef Tensor result
    cdef int dtype
    if b.storage.device != device:
        return multiply(on_device(call))
    if dtype_kind(a.dtype_code) == KIND_SMALL or dtype_kind(b.dtype_code) == KIND_SMALL:
        # Both 16-bit float types can represent every fp8 value.
        out_dtype = fp8_out_code(name, a, b, out_dtype)
        dtype = DT_FLOAT16 if out_dtype == DT_FLOAT16 else DT_BFLOAT16
        a, b = copied(a, dtype), copied(b, dtype)
    if a.dtype_code != b.dtype_code:
        dtype = promote_codes(a.dtype_code, b.dtype_code)
        check_element_types(name, a, b)
        a = a if a.dtype_code == dtype else copied(a, dtype)
        b = b if b.dtype_code == dtype else copied(b, dtype)
    if dtype_kind(a.dtype_code) == KIND_BOOL:
        check_element_types(name, a, b)
    result = result_for(name, a, b, call.out, a.dtype_code if out_dtype < 0 else out_dtype,
                        operands)
    if addend is not None and not same_view(addend, result):
        if addend.storage.device != device:
            return multiply(on_device(call))
        prepare_addend(name, b"residual" if name == "linear" or name == "matmul" else b"input",
                       addend, result, &addend_operand)
        options.addend = &addend_operand
    if bias is not None:
        if bias.storage.device != device:
            return multiply(on_device(call))
        prepare_bias(name, bias, result, &bias_operand)
        options.bias = &bias_operand
    if scale is not None:
        if scale.storage.device != device:
            return multiply(on_device(call))
        prepare_scale(name, scale, result, &scale_operand)
        options.scale = &scale_operand
    if residual is not None:
        if residual.storage.device != device:
            return multiply(on_device(call))
        prepare_addend(name, b"residual", residual, result, &residual_operand)
        options.residual = &residual_operand
    stream = current_handle(device)
    try:
        task_prepare(&task, device, stream, &operands[0], &operands[1], &operands[2], options)
        work_begin()
        try:
            a.prepare_read(stream)
            b.prepare_read(stream)
            if addend is not None:
                addend.prepare_read(stream)
            if bias is not None:
                bias.prepare_read(stream)
            if scale is not None:
                scale.prepare_read(stream)
            if residual is not None:
                residual.prepare_read(stream)
            result.prepare_write(stream)
            task_launch(&task)
        finally:
            work_end(device)
    finally:
        task_release(&task)
    return result


cdef bint same_view(Tensor one, Tensor other):
    cdef int axis
    if one.ptr != other.ptr or one.ndim_ != other.ndim_ or one.dtype_code != other.dtype_code:
        return False
    for axis in range(one.ndim_):
        if one.shape_[axis] != other.shape_[axis] or one.strides_[axis] != other.strides_[axis]:
            return False
    return True


cdef int prepare_addend(str name, const char* which, Tensor addend, Tensor result,
                        Operand* operand) except -1:
    """Fill the operand of an addend, broadcast to the result's shape; it may be the result."""
    cdef int64_t[MAX_NDIM] shape
    cdef int axis, ndim
    cdef Operand target
    result.fill_operand(&target)
    if addend.dtype_code != result.dtype_code:
        raise TypeError(f"{name}: {which.decode()}: got {DTYPES[addend.dtype_code].name}; expected "
                        f"{DTYPES[result.dtype_code].name}, that of the product")
    for axis in range(result.ndim_):
        shape[axis] = result.shape_[axis]
    ndim = broadcast_shape(shape, result.ndim_, addend, name)
    for axis in range(result.ndim_):
        if ndim != result.ndim_ or shape[axis] != result.shape_[axis]:
            raise ValueError(f"{name}: {which.decode()}: got shape {addend.shape}; expected one "
                             f"that broadcasts to the product's {result.shape}")
    broadcast_operand(addend, operand, result.ndim_, result.shape_)
    return 0 if same_view(addend, result) else check_extents(&target, operand, which)


cdef int prepare_bias(str name, Tensor bias, Tensor result, Operand* operand) except -1:
    """Fill the operand of a bias, which has one value for each column of the result."""
    cdef Operand target
    result.fill_operand(&target)
    if bias.dtype_code != result.dtype_code:
        raise TypeError(f"{name}: bias: got {DTYPES[bias.dtype_code].name}; expected "
                        f"{DTYPES[result.dtype_code].name}, that of the product")
    if bias.ndim_ != 1 or result.ndim_ < 1 or bias.shape_[0] != result.shape_[result.ndim_ - 1]:
        raise ValueError(f"{name}: bias: got shape {bias.shape}; expected one value for each of "
                         f"the last extent of {result.shape}")
    bias.fill_operand(operand)
    return check_extents(&target, operand, b"the bias")


cdef int prepare_scale(str name, Tensor scale, Tensor result, Operand* operand) except -1:
    """Fill the operand of a scale: one factor of the product, or one for each of its columns."""
    cdef Operand target
    cdef bint is_one = scale.size_ == 1 and scale.ndim_ <= 1 and scale.ndim_ <= result.ndim_
    result.fill_operand(&target)
    if scale.dtype_code != DT_FLOAT32:
        raise TypeError(f"{name}: scale: got a tensor of {DTYPES[scale.dtype_code].name}; "
                        "expected a number or a tensor of float32")
    if dtype_kind(result.dtype_code) != KIND_FLOAT:
        raise TypeError(f"{name}: scale: got a tensor for a product of "
                        f"{DTYPES[result.dtype_code].name}; expected a number, or a "
                        "floating-point product")
    if not is_one and (scale.ndim_ != 1 or result.ndim_ < 1
                       or scale.shape_[0] != result.shape_[result.ndim_ - 1]):
        raise ValueError(f"{name}: scale: got shape {scale.shape}; expected one element, or one "
                         f"for each of the last extent of {result.shape}")
    broadcast_operand(scale, operand, result.ndim_, result.shape_)
    return check_extents(&target, operand, b"scale")
