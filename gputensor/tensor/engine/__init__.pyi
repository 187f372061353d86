from typing import Any

from gputensor._engines.engine import Engine
from gputensor.tensor.core import Tensor

def queue_engine(
    engine: Engine, attributes: tuple[Any, ...], outputs: list[Tensor], *inputs: Tensor | None
) -> Any: ...
