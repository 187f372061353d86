"""The table of ATen operators; each module but `table` fills its part."""

from gputensor.importers.aten import (  # noqa: F401
    elementwise,
    layers,
    makers,
    places,
    recurrent,
    reductions,
    shapes,
    transforms,
    windows,
)
from gputensor.importers.aten.table import MAKERS, dtype_of, find

__all__ = ["MAKERS", "dtype_of", "find"]
