"""Matrix products: precision, libraries, workspaces, plans and tuning."""

from gputensor.blas.kernels import padding
from gputensor.blas.libraries import (
    clear_workspaces,
    library_versions,
    preferred_blas_library,
    workspace_size,
)
from gputensor.blas.plan import (
    Precision,
    allow_bf16_reduced_precision_reduction,
    allow_bf16_reduced_precision_reduction_split_k,
    allow_fp16_accumulation,
    allow_fp16_reduced_precision_reduction,
    allow_fp16_reduced_precision_reduction_split_k,
    allow_tf32,
    deterministic,
    float32_matmul_precision,
    forget_plans,
    plan_count,
    precision,
)
from gputensor.blas.tuning import tunable

__all__ = [
    "Precision",
    "allow_bf16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction_split_k",
    "allow_fp16_accumulation",
    "allow_fp16_reduced_precision_reduction",
    "allow_fp16_reduced_precision_reduction_split_k",
    "allow_tf32",
    "clear_workspaces",
    "deterministic",
    "float32_matmul_precision",
    "forget_plans",
    "library_versions",
    "padding",
    "plan_count",
    "precision",
    "preferred_blas_library",
    "tunable",
    "workspace_size",
]


def _measure(*arguments, **options):
    # Only tuning needs the code that times products.
    from gputensor.blas.bench.tuner import tune

    return tune(*arguments, **options)


tunable.measure_with(_measure)


def __dir__():
    return sorted(__all__)
