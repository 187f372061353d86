# One product of tensors: the way that every public function of products.pyx goes.

from gputensor.blas.task cimport Options
from gputensor.tensor.tensor cimport Tensor

# activation(alpha * a @ b + beta * addend + bias). `out` is a Tensor or None; `out_dtype` a code,
# or
# -1 for the operands' own; `addend` and `bias` may be None. `name` is the public function's.
cdef Tensor multiply(str name, Tensor a, Tensor b, object out, int out_dtype, Options* options,
                     Tensor addend, Tensor bias)
