from typing import Any

import numpy as np

from gputensor.streams import Stream
from gputensor.tensor.core import Tensor

def numpy(self: Tensor, /) -> np.ndarray[Any, Any]: ...
def to_device(self: Tensor, device: Any, stream: Stream | None = None) -> Tensor: ...
