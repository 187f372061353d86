# Products of fp8 matrices.

from gputensor.tensor.tensor cimport Tensor

# Whether both are fp8 matrices of two dimensions.
cdef bint is_fp8_pair(Tensor a, Tensor b) noexcept
# activation((a * scale_a) @ (b * scale_b) + bias) * scale_result. Everything but a and b may be
# None; `out_dtype` is a code or -1 for bfloat16. `name` is the public function's.
cdef Tensor scaled_product(str name, Tensor a, Tensor b, object scale_a, object scale_b, object out,
                           int out_dtype, object bias, int activation, object scale_result,
                           bint is_fast)
