"""Prepare: describes three views in the terms of a library.

A matrix view goes to the library without a copy when one of its two strides is 1 and the other is
at least the length of the unit dimension; it is then row- or column-major with that leading
dimension. The stride of a dimension of one element does not matter. A library takes every matrix as
column-major, so a row-major matrix is its own transpose there, and a row-major result swaps the
operands. Any other matrix is copied (the `COPY_*` bits) by the caller, which then calls again.

Batch dimensions are merged as far as one stride for each operand describes them. When b is shared
by the whole batch and the other two are stacked without a gap, the batch is folded into the rows:
one large product instead of many small ones. The longest of the remaining dimensions is the
library's batch; the others are repetitions (`outer`).
"""

# One matrix of an operand: rows x columns with their strides in elements.
cdef struct Matrix:
    int64_t rows
    int64_t columns
    int64_t row_stride
    int64_t column_stride

# The memory order of a matrix.
cdef enum:
    ORDER_NONE = 0              # no unit stride: has to be copied
    ORDER_ROW = 1
    ORDER_COLUMN = 2

cdef struct Laid:               # an operand's matrix in its memory order
    const Operand* operand
    const Matrix* matrix
    int order                   # ORDER_*
    int64_t ld

# A batch dimension with the stride of each operand; c is the addend, d the result.
cdef struct BatchDim:
    int64_t count
    int64_t a
    int64_t b
    int64_t c
    int64_t d


cdef inline int64_t at_least_one(int64_t value) noexcept nogil:
    return value if value > 1 else 1


cdef int matmul_shape(const Operand* a, const Operand* b, int* ndim,
                      int64_t* shape) noexcept nogil:
    cdef int batch_a = a.ndim - 2 if a.ndim > 2 else 0
    cdef int batch_b = b.ndim - 2 if b.ndim > 2 else 0
    cdef int batch = batch_a if batch_a > batch_b else batch_b
    cdef int64_t inner_a, inner_b, size_a, size_b
    cdef int axis
    if a.ndim < 1 or b.ndim < 1:
        return PREPARE_NO_DIMENSION
    if batch + (a.ndim > 1) + (b.ndim > 1) > MAX_NDIM:
        return PREPARE_TOO_MANY
    inner_a = a.shape[a.ndim - 1]
    inner_b = b.shape[b.ndim - 2] if b.ndim > 1 else b.shape[0]
    if inner_a != inner_b:
        return PREPARE_INNER
    for axis in range(batch):
        size_a = a.shape[axis - (batch - batch_a)] if axis >= batch - batch_a else 1
        size_b = b.shape[axis - (batch - batch_b)] if axis >= batch - batch_b else 1
        if size_a != size_b and size_a != 1 and size_b != 1:
            return PREPARE_BATCH
        shape[axis] = size_b if size_a == 1 else size_a
    ndim[0] = batch
    if a.ndim > 1:
        shape[ndim[0]] = a.shape[a.ndim - 2]
        ndim[0] += 1
    if b.ndim > 1:
        shape[ndim[0]] = b.shape[b.ndim - 1]
        ndim[0] += 1
    return PREPARE_OK


cdef int check_out(const Operand* a, const Operand* b, const Operand* out) noexcept nogil:
    cdef int64_t shape[MAX_NDIM]
    cdef int ndim = 0
    cdef int axis
    cdef int status = matmul_shape(a, b, &ndim, shape)
    if status != PREPARE_OK:
        return status
    if out.ndim != ndim:
        return PREPARE_OUT_SHAPE
    for axis in range(ndim):
        if out.shape[axis] != shape[axis]:
            return PREPARE_OUT_SHAPE
    for axis in range(ndim):
        if out.shape[axis] == 0:
            return PREPARE_OK
    for axis in range(ndim):
        if out.shape[axis] > 1 and out.strides[axis] == 0:
            return PREPARE_OUT_REPEATS
    return PREPARE_OK


cdef Matrix left_matrix(const Operand* a) noexcept nogil:
    """Return the last two dimensions; a vector is one row."""
    cdef Matrix matrix
    cdef int last = a.ndim - 1
    matrix.rows = a.shape[last - 1] if a.ndim > 1 else 1
    matrix.columns = a.shape[last]
    matrix.row_stride = a.strides[last - 1] if a.ndim > 1 else 1
    matrix.column_stride = a.strides[last]
    return matrix


cdef Matrix right_matrix(const Operand* b) noexcept nogil:
    """Return the last two dimensions; a vector is one column."""
    cdef Matrix matrix
    cdef int last = b.ndim - 1
    matrix.rows = b.shape[last - 1] if b.ndim > 1 else b.shape[0]
    matrix.columns = b.shape[last] if b.ndim > 1 else 1
    matrix.row_stride = b.strides[last - 1] if b.ndim > 1 else b.strides[0]
    matrix.column_stride = b.strides[last] if b.ndim > 1 else 1
    return matrix


cdef Matrix result_matrix(const Operand* out, bint has_rows, bint has_columns) noexcept nogil:
    """Return the matrix of a result without the dimensions of vector operands."""
    cdef Matrix matrix
    cdef int axis = out.ndim - 1
    matrix.rows = matrix.columns = 1
    matrix.row_stride = matrix.column_stride = 1
    if has_columns:
        matrix.columns = out.shape[axis]
        matrix.column_stride = out.strides[axis]
        axis -= 1
    if has_rows:
        matrix.rows = out.shape[axis]
        matrix.row_stride = out.strides[axis]
    return matrix


cdef int order_of(const Matrix* matrix, int64_t* ld) noexcept nogil:
    """Return the memory order of a matrix, or ORDER_NONE, and store its leading dimension.

    A vector is described along its length with the smallest leading dimension when its elements
    are contiguous, and across it with its stride as leading dimension otherwise.
    """
    cdef bint row_major, column_major
    if matrix.rows == 1 and matrix.columns == 1:
        ld[0] = 1
        return ORDER_ROW
    if matrix.rows == 1:
        if matrix.column_stride == 1:
            ld[0] = at_least_one(matrix.columns)
            return ORDER_ROW
        ld[0] = matrix.column_stride
        return ORDER_COLUMN if matrix.column_stride >= 1 else ORDER_NONE
    if matrix.columns == 1:
        if matrix.row_stride == 1:
            ld[0] = at_least_one(matrix.rows)
            return ORDER_COLUMN
        ld[0] = matrix.row_stride
        return ORDER_ROW if matrix.row_stride >= 1 else ORDER_NONE
    row_major = matrix.column_stride == 1 and matrix.row_stride >= at_least_one(matrix.columns)
    column_major = matrix.row_stride == 1 and matrix.column_stride >= at_least_one(matrix.rows)
    if row_major:
        ld[0] = matrix.row_stride
        return ORDER_ROW
    if column_major:
        ld[0] = matrix.column_stride
        return ORDER_COLUMN
    ld[0] = at_least_one(matrix.columns)
    return ORDER_NONE


cdef int64_t batch_stride(const Operand* operand, int matrix_ndim, int axis,
                          int batch_ndim) noexcept nogil:
    """Return an operand's stride along batch dimension `axis` of the result; 0 if it is shared."""
    cdef int own = operand.ndim - matrix_ndim
    cdef int position = axis - (batch_ndim - own)
    if position < 0 or operand.shape[position] == 1:
        return 0
    return operand.strides[position]


cdef int merge_batch(const Operand* a, const Operand* b, const Operand* c, const Operand* d,
                     int batch_ndim, int c_matrix_ndim, BatchDim* dims) noexcept nogil:
    """Store batch dimensions of more than 1 element, innermost first, merged; return the count."""
    cdef int count = 0
    cdef int axis
    cdef BatchDim dim
    cdef BatchDim* inner
    for axis in range(batch_ndim - 1, -1, -1):
        dim.count = d.shape[axis]
        if dim.count == 1:
            continue
        dim.a = batch_stride(a, 2 if a.ndim > 1 else 1, axis, batch_ndim)
        dim.b = batch_stride(b, 2 if b.ndim > 1 else 1, axis, batch_ndim)
        dim.c = batch_stride(c, c_matrix_ndim, axis, batch_ndim)
        dim.d = d.strides[axis]
        if count:
            inner = &dims[count - 1]
            if (dim.a == inner.a * inner.count and dim.b == inner.b * inner.count
                    and dim.c == inner.c * inner.count and dim.d == inner.d * inner.count):
                inner.count *= dim.count
                continue
        dims[count] = dim
        count += 1
    return count


cdef bint fold_rows(Matrix* a, Matrix* c, Matrix* d, const BatchDim* dim) noexcept nogil:
    """Fold a batch that shares b into the rows of a, c and d, when they are stacked without a gap.

    If one of the taller matrices would need a copy, no matrix changes.
    """
    cdef Matrix tall_a, tall_c, tall_d
    cdef int64_t step_a = a.row_stride
    cdef int64_t step_c = c.row_stride
    cdef int64_t step_d = d.row_stride
    cdef int64_t ld
    if dim.b != 0 or dim.a == 0:
        return False
    if d.rows == 1:
        step_a, step_c, step_d = dim.a, dim.c, dim.d
    elif (dim.a != a.rows * step_a or dim.c != c.rows * step_c or dim.d != d.rows * step_d):
        return False
    tall_a, tall_c, tall_d = a[0], c[0], d[0]
    tall_a.rows *= dim.count
    tall_c.rows *= dim.count
    tall_d.rows *= dim.count
    tall_a.row_stride, tall_c.row_stride, tall_d.row_stride = step_a, step_c, step_d
    if (order_of(&tall_a, &ld) == ORDER_NONE or order_of(&tall_c, &ld) == ORDER_NONE
            or order_of(&tall_d, &ld) == ORDER_NONE):
        return False
    a[0], c[0], d[0] = tall_a, tall_c, tall_d
    return True


cdef int pick_batch(const BatchDim* dims, int count) noexcept nogil:
    """Return the longest dimension without a negative stride, the innermost of equals, or -1."""
    cdef int best = -1
    cdef int index
    for index in range(count):
        if dims[index].a < 0 or dims[index].b < 0 or dims[index].c < 0 or dims[index].d < 0:
            continue
        if best < 0 or dims[index].count > dims[best].count:
            best = index
    return best


cdef int prepare(const Operand* a, const Operand* b, const Operand* addend, const Operand* out,
                 Product* product) noexcept nogil:
    cdef bint has_rows = a.ndim > 1
    cdef bint has_columns = b.ndim > 1
    cdef int matrix_ndim = has_rows + has_columns
    cdef int batch_ndim = out.ndim - matrix_ndim
    cdef const Operand* c = addend if addend is not NULL else out
    cdef Matrix matrix_a = left_matrix(a)
    cdef Matrix matrix_b = right_matrix(b)
    cdef Matrix matrix_c = result_matrix(c, has_rows, has_columns)
    cdef Matrix matrix_d = result_matrix(out, has_rows, has_columns)
    cdef BatchDim dims[MAX_NDIM]
    cdef int count = merge_batch(a, b, c, out, batch_ndim, matrix_ndim, dims)
    cdef int order_a, order_b, order_c, order_d, picked
    cdef int64_t lda, ldb, ldc, ldd
    cdef Laid laid_a, laid_b
    cdef int copies = 0
    cdef bint is_vector
    if count == 1 and fold_rows(&matrix_a, &matrix_c, &matrix_d, &dims[0]):
        count = 0
    order_a = order_of(&matrix_a, &lda)
    order_b = order_of(&matrix_b, &ldb)
    order_c = order_of(&matrix_c, &ldc)
    order_d = order_of(&matrix_d, &ldd)
    if order_a == ORDER_NONE:
        copies |= COPY_A
    if order_b == ORDER_NONE:
        copies |= COPY_B
    if order_c != order_d and order_d != ORDER_NONE:
        # C and D of one call share one order; a vector can be described in either.
        is_vector = matrix_c.rows == 1 or matrix_c.columns == 1
        if not is_vector or not describe_as(&matrix_c, order_d, &ldc):
            copies |= COPY_ADDEND
    if order_d == ORDER_NONE:
        copies |= COPY_OUT
    if copies:
        return copies
    product.k = matrix_a.columns
    product.type_d = out.dtype
    product.is_swapped = order_d == ORDER_ROW
    laid_a = Laid(a, &matrix_a, order_a, lda)
    laid_b = Laid(b, &matrix_b, order_b, ldb)
    if product.is_swapped:
        place(product, &laid_b, &laid_a, ORDER_ROW)
    else:
        place(product, &laid_a, &laid_b, ORDER_COLUMN)
    product.ldc, product.ldd = ldc, ldd
    product.c, product.d = c.ptr, out.ptr
    picked = pick_batch(dims, count)
    place_batch(product, dims, count, picked)
    return 0


cdef bint describe_as(const Matrix* matrix, int order, int64_t* ld) noexcept nogil:
    """Whether a vector can be described in `order`; stores the leading dimension for it."""
    if order == ORDER_ROW:
        if matrix.rows == 1 and matrix.column_stride == 1:
            ld[0] = at_least_one(matrix.columns)
            return True
        ld[0] = matrix.row_stride
        return matrix.columns == 1 and matrix.row_stride >= 1
    if matrix.columns == 1 and matrix.row_stride == 1:
        ld[0] = at_least_one(matrix.rows)
        return True
    ld[0] = matrix.column_stride
    return matrix.rows == 1 and matrix.column_stride >= 1


cdef void place(Product* product, const Laid* left, const Laid* right, int order) noexcept nogil:
    """Write the library's A (`left`) and B (`right`) for a result in memory order `order`."""
    product.a, product.b = left.operand.ptr, right.operand.ptr
    product.type_a, product.type_b = left.operand.dtype, right.operand.dtype
    product.lda, product.ldb = left.ld, right.ld
    # A matrix in the order of the result is not transposed; one in the other order is.
    product.op_a = OP_N if left.order == order else OP_T
    product.op_b = OP_N if right.order == order else OP_T
    product.m = left.matrix.columns if order == ORDER_ROW else left.matrix.rows
    product.n = right.matrix.rows if order == ORDER_ROW else right.matrix.columns


cdef void place_batch(Product* product, const BatchDim* dims, int count, int picked) noexcept nogil:
    cdef int index
    product.batch = 1
    product.stride_a = product.stride_b = product.stride_c = product.stride_d = 0
    product.outer_ndim = 0
    for index in range(count):
        if index == picked:
            product.batch = dims[index].count
            product.stride_a = dims[index].b if product.is_swapped else dims[index].a
            product.stride_b = dims[index].a if product.is_swapped else dims[index].b
            product.stride_c, product.stride_d = dims[index].c, dims[index].d
            continue
        product.outer_count[product.outer_ndim] = dims[index].count
        product.outer_a[product.outer_ndim] = dims[index].b if product.is_swapped else dims[index].a
        product.outer_b[product.outer_ndim] = dims[index].a if product.is_swapped else dims[index].b
        product.outer_c[product.outer_ndim] = dims[index].c
        product.outer_d[product.outer_ndim] = dims[index].d
        product.outer_ndim += 1


cdef void product_fill(Product* product, int device, uint32_t precision) noexcept nogil:
    product.device = device
    product.compute = compute_type(product.type_a, product.type_d, precision)
    product.flags = 0
    if allows_reduced_reduction(product.type_a, precision):
        product.flags |= PRODUCT_REDUCED_REDUCTION
    if not allows_split(product.type_a, precision):
        product.flags |= PRODUCT_NO_SPLIT
    if precision & DETERMINISTIC:
        product.flags |= PRODUCT_DETERMINISTIC
    product.alpha, product.beta = 1, 0
    product.alpha_imag = product.beta_imag = 0
    product.activation = ACT_NONE
    product.bias = product.scale_a = product.scale_b = 0
    product.scale_mode_a = product.scale_mode_b = SCALE_TENSOR


cdef int alignment_of(uint64_t ptr, int64_t stride_nbytes) noexcept nogil:
    cdef uint64_t bits = ptr | <uint64_t>stride_nbytes | 256
    return <int>(bits & (~bits + 1))


cdef void extent_of(const Operand* operand, uint64_t* low, uint64_t* high) noexcept nogil:
    cdef int64_t below = 0
    cdef int64_t above = 0
    cdef int64_t span
    cdef int64_t itemsize = dtype_itemsize(operand.dtype)
    cdef int axis
    for axis in range(operand.ndim):
        if operand.shape[axis] == 0:
            low[0] = high[0] = operand.ptr
            return
        span = (operand.shape[axis] - 1) * operand.strides[axis]
        if span < 0:
            below += span
        else:
            above += span
    low[0] = operand.ptr + <uint64_t>(below * itemsize)
    high[0] = operand.ptr + <uint64_t>((above + 1) * itemsize)


cdef void compact(const Operand* operand, Operand* out) noexcept nogil:
    cdef int axis
    out[0] = operand[0]
    for axis in range(operand.ndim):
        if operand.strides[axis] == 0:
            out.shape[axis] = 1
