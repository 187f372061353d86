from gputensor.tensor.tensor import Tensor

def quantized_linear(
    x: Tensor, weight: Tensor, scales: Tensor, bias: Tensor | None = None
) -> Tensor: ...
