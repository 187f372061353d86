# One product of tensors: the way that every public function of products.pyx goes.

from gputensor._kernels.operand cimport Operand
from gputensor.blas.task cimport Options
from gputensor.tensor.tensor cimport Tensor

# activation(alpha * scale * (a @ b) + beta * addend + bias) + residual. `out` is a Tensor or None;
# `out_dtype` a code, or -1 for the operands' own (bfloat16 for fp8). `addend` and `residual`
# broadcast to the product; `bias` has one value for each column; `scale` is a float32 Tensor of one
# element or one for each column. All four may be None, and beta must be 0 where scale or residual
# is not. `name` is the public function's.
cdef Tensor multiply(str name, Tensor a, Tensor b, object out, int out_dtype, Options* options,
                     Tensor addend, Tensor bias, Tensor scale, Tensor residual)
# The checks and the result of one product, for who queues several: TypeError for types without a
# product; `out` after its checks, or a new tensor of the shape of the product.
cdef int check_element_types(str name, Tensor a, Tensor b) except -1
cdef Tensor result_for(str name, Tensor a, Tensor b, object out, int dtype, int device,
                       const Operand* left, const Operand* right)
# The ACT_* number of an activation for a product of `a` and `b`, which None and four names are.
cdef int activation_code(str name, object activation, Tensor a, Tensor b) except -1
