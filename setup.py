"""Build logic only: every .pyx below gputensor/ becomes one C++17 extension.

No CUDA toolkit and no CUDA header is needed: the driver, cuBLAS and NVRTC are found at run time.
Project metadata lives in pyproject.toml.

Environment, for developers:
    GPUTENSOR_BUILD_ONLY   comma-separated packages to build (``_alloc,blas``); default: all
    GPUTENSOR_BUILD_DEBUG  ``1``: no optimisation, and the core re-checks its invariants
    GPUTENSOR_SANITIZE     ``address`` or ``thread``: build the extensions with that sanitizer
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ROOT = Path(__file__).parent
ONLY = [name for name in os.environ.get("GPUTENSOR_BUILD_ONLY", "").split(",") if name]
DEBUG = os.environ.get("GPUTENSOR_BUILD_DEBUG", "0") == "1"
SANITIZER = os.environ.get("GPUTENSOR_SANITIZE", "")


def compile_args():
    args = ["-std=c++17", "-fvisibility=hidden", "-pthread", "-Wno-unused-function"]
    if DEBUG or SANITIZER:
        args += ["-O1", "-g", "-fno-omit-frame-pointer", "-DGPUTENSOR_CHECK=1"]
    else:
        args += ["-O3", "-g0", "-fno-semantic-interposition"]
    if SANITIZER:
        args.append(f"-fsanitize={SANITIZER}")
    return args


def link_args():
    args = ["-pthread", "-ldl"]
    args += [f"-fsanitize={SANITIZER}"] if SANITIZER else ["-s"]
    return args


def extensions():
    for source in sorted(ROOT.glob("gputensor/**/*.pyx")):
        parts = source.relative_to(ROOT).with_suffix("").parts
        if ONLY and parts[1] not in ONLY:
            continue
        headers = sorted(str(p.relative_to(ROOT)) for p in source.parent.glob("*.h"))
        yield Extension(
            ".".join(parts),
            [str(source.relative_to(ROOT))],
            language="c++",
            include_dirs=["."],
            depends=headers,
            extra_compile_args=compile_args(),
            extra_link_args=link_args(),
        )


setup(
    ext_modules=cythonize(
        list(extensions()),
        build_dir="build/cython",
        nthreads=0,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "embedsignature": True,
            "freethreading_compatible": False,
        },
    ),
)
