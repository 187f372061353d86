# Two commands do everything on a fresh machine that has Python 3.10+ and a C++ compiler:
#
#   make demo     its own environment, the build, the digits example, one replayed trace
#   make test     the same environment and build, then the tests
#
# A second run reuses the environment while its requirements are unchanged, and the extensions while
# their sources are unchanged. `make help` lists the other commands.
#
# PYTHON=...   the Python to make the environment with (default: python3)
# CUDA=...     the extra to install beside the tests: cuda12, cuda13 or nothing; default: cuda12
#              where there is an NVIDIA device
# HOURS=...    how long make campaign runs (default: 1)
# PROGRAMS=... how many programs make check-threads runs on each kind of device (default: 10000)
# GPU_JOBS=... how many processes share the GPU in make test-gpu, with pytest-xdist (default: 14)
# PY=...       an interpreter to use as it is: nothing is installed, only the extensions are built

PYTHON ?= python3
VENV := .venv
CUDA ?= $(if $(wildcard /dev/nvidiactl),cuda12)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
TRACE ?= benchmarks/traces/gpt2_train.npz
PYTEST_FLAGS ?= --timeout=600
PROGRAMS ?= 10000
HOURS ?= 1
GPU_JOBS ?= 14
# The same list as build-system.requires of pyproject.toml; a test compares them.
BUILD_NEEDS := "setuptools>=77" "wheel" "cython>=3.0.10"
LINT_NEEDS := "ruff>=0.6" "cython-lint>=0.16" "mypy>=1.10" "codespell>=2.3"

# Variables left over in the shell must not affect what is built and imported here.
unexport PYTHONHOME PYTHONSTARTUP PIP_TARGET PIP_PREFIX PIP_USER PIP_REQUIRE_VIRTUALENV
# The tests start hundreds of processes, which should not all compile the same Python files.
unexport PYTHONDONTWRITEBYTECODE
unexport GPUTENSOR_BUILD_ONLY GPUTENSOR_BUILD_DEBUG GPUTENSOR_SANITIZE
export GPUTENSOR_BUILD_JOBS := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-gpu bench import-time lint check-asan check-tsan check-debug \
        check-threads campaign check-kernels check-models wheel environment build lint-environment clean

ifdef PY
OWN_ENVIRONMENT :=
export PYTHONPATH := $(CURDIR)
else
override PY := $(VENV)/bin/python
OWN_ENVIRONMENT := environment
unexport PYTHONPATH
endif

help:
	@echo "make demo         build, run the digits example, replay a recorded trace"
	@echo "make test         build, run the tests (no GPU needed)"
	@echo "make test-fast    the fast tests of tests/unit and tests/project, in about a minute"
	@echo "make test-gpu     the tests that need a GPU; fails if there is none"
	@echo "make bench        the benchmarks; JSON goes to benchmarks/results/"
	@echo "make import-time  the time of 'import gputensor' compared with 'import numpy'"
	@echo "make lint         ruff, cython-lint, mypy, codespell"
	@echo "make check-asan   driver, allocator, streams and tensors under AddressSanitizer"
	@echo "make check-tsan   driver, allocator and streams under ThreadSanitizer"
	@echo "make check-debug  allocator, streams and tensors in a build that checks the accounting"
	@echo "make check-threads  random programs of threads on each kind of device; PROGRAMS=10000"
	@echo "make campaign     random programs, state machine and fault sweep for HOURS=1, with coverage"
	@echo "make check-kernels  every variant of every kernel, compiled for every architecture"
	@echo "make check-models  the networks of the onnx package that make test skips"
	@echo "make wheel        a wheel in dist/, installed into a clean environment that runs the demo"
	@echo "make clean        remove the environment and everything built"

demo: build
	$(PY) examples/digits.py
	$(PY) -m gputensor.cli.main memory replay $(TRACE)

# Tests run in parallel if pytest-xdist is installed. A group shares a process with a simulated GPU.
parallel = $$($(PY) -c 'import xdist' 2>/dev/null && echo "-n $(1) --dist loadgroup")

# NumPy's threads spin while they wait, which takes the cores from tests that run at the same time.
test test-fast: export OPENBLAS_NUM_THREADS = 1

test: build
	$(PY) -m pytest $(PYTEST_FLAGS) $(call parallel,$(JOBS)) tests

test-fast: build
	$(PY) -m pytest $(PYTEST_FLAGS) $(call parallel,$(JOBS)) -m "not slow and not sweep" \
	  tests/unit tests/project

# Tests that need the GPU for themselves run afterwards, one after the other.
test-gpu: build
	@$(PY) -c "import sys; from gputensor._driver.registry import cuda_device_count; \
	n = cuda_device_count(); \
	print('CUDA devices:', n); sys.exit(0 if n else 'make test-gpu needs a GPU: found none')"
	GPUTENSOR_REQUIRE_GPU=1 $(PY) -m pytest $(PYTEST_FLAGS) -rs $(call parallel,$(GPU_JOBS)) \
	  -m "not alone and not sweep" tests/conformance tests/gpu
	GPUTENSOR_REQUIRE_GPU=1 $(PY) -m pytest $(PYTEST_FLAGS) -rs -m alone tests/gpu

# Runs each benchmark that is a program; one that needs a GPU says so and exits if there is none.
bench: build
	@for program in $$(grep -l '^if __name__ == "__main__":' benchmarks/*.py benchmarks/models/*.py); do \
	  case $$program in */tables.py|*/measured_algorithms.py) continue;; esac; \
	  echo "== $$program"; $(PY) $$program || exit 1; \
	done; \
	$(PY) benchmarks/tables.py

import-time: build
	$(PY) benchmarks/import_time.py

# setup.py writes the stub of the element-wise functions, which mypy reads, before it builds.
lint: lint-environment
	@GPUTENSOR_BUILD_ONLY=none $(PY) setup.py --version >/dev/null
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	PATH="$(dir $(abspath $(PY))):$$PATH" cython-lint gputensor
	$(PY) -m mypy gputensor
	$(PY) -m codespell_lib gputensor tests benchmarks examples docs *.md setup.py Makefile

# The default tests compile only a few variants of each kernel; this compiles all and takes long.
check-kernels: build
	$(PY) -m pytest $(PYTEST_FLAGS) --timeout=0 -m sweep tests/unit/kernels/test_compilation.py \
	  tests/unit/programs/test_ahead.py

check-models: build
	$(PY) -m pytest $(PYTEST_FLAGS) -m "sweep or not sweep" tests/importers

# Sanitized extensions are built in a copy of the tree, so that they never mix with normal ones.
check-asan: SANITIZER := address
check-asan: SANITIZER_LIBRARY := asan
check-asan: $(OWN_ENVIRONMENT)
	$(run_sanitized)

check-tsan: SANITIZER := thread
check-tsan: SANITIZER_LIBRARY := tsan
check-tsan: $(OWN_ENVIRONMENT)
	$(run_sanitized)

# The allocator's invariants are checked after each change; see gputensor/_alloc/DESIGN.md.
check-debug: $(OWN_ENVIRONMENT)
	.ci/run-debug $(abspath $(PY))

check-threads: build
	$(PY) -m tests.conformance.threads.threaded_programs --programs $(PROGRAMS)

campaign: $(OWN_ENVIRONMENT)
	.ci/run-campaign $(abspath $(PY)) $(HOURS)

define run_sanitized
GPUTENSOR_SANITIZE=$(SANITIZER) .ci/run-sanitized $(SANITIZER_LIBRARY) $(abspath $(PY))
endef

# The environment is made again if its Python is gone, the tree has moved, or the requirements have
# changed; otherwise this costs one comparison. pip would compile every Python file of the packages,
# which takes longer than their installation; most of them are never imported.
environment_key = $$( { cat pyproject.toml; echo "$(CURDIR) $(CUDA)"; "$(PYTHON)" -VV; } | sha256sum)

environment:
	@if [ -x $(VENV)/bin/python ] && $(VENV)/bin/python -c pass 2>/dev/null \
	    && [ "$$(cat $(VENV)/key 2>/dev/null)" = "$(environment_key)" ]; then exit 0; fi; \
	set -e; \
	command -v "$(PYTHON)" >/dev/null \
	  || { echo "'$(PYTHON)' was not found; name a Python: make PYTHON=/path/to/python3" >&2; exit 1; }; \
	"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "$(PYTHON) is $$("$(PYTHON)" -V), and Python 3.10 or newer is needed: make PYTHON=/path/to/python3" >&2; exit 1; }; \
	"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "$(PYTHON) cannot make virtual environments (on Debian and Ubuntu: install python3-venv)" >&2; exit 1; }; \
	echo "making $(VENV) with $$("$(PYTHON)" -V)"; \
	rm -rf $(VENV); \
	"$(PYTHON)" -m venv $(VENV); \
	$(VENV)/bin/python -m pip install -q --no-compile $(BUILD_NEEDS); \
	GPUTENSOR_BUILD_ONLY=none $(VENV)/bin/python -m pip install -q --no-compile \
	  --no-build-isolation \
	  -e ".[test$(if $(CUDA),$(comma)$(CUDA))]"; \
	echo "$(environment_key)" > $(VENV)/key

comma := ,

# Extensions are built in place. The key is a hash of their sources, so that a checkout that changes
# only time stamps rebuilds nothing; setuptools and Cython find the modules that have changed. They
# would not notice other flags or another version of Cython, so these rebuild everything. An
# extension whose source is gone is removed, because it would shadow its successor.
built_folders := gputensor tests/support
sources_key = $$(find $(built_folders) -name '*.pyx' -o -name '*.px[di]' -o -name '*.h' -o -name operations.py \
	-o -name source.py -o -name library.cpp -o -name exports.map | LC_ALL=C sort \
	| xargs sha256sum | sha256sum)
flags_key = $$( { "$(PY)" -c 'import sys, Cython; print(sys.version, Cython.__version__)'; \
	cat setup.py; } | sha256sum)
extension_suffix = $$("$(PY)" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')

build: $(OWN_ENVIRONMENT)
	@set -e; suffix="$(extension_suffix)"; whole=1; force=; \
	for built in $$(find $(built_folders) -name "*$$suffix"); do \
	  [ -e "$${built%$$suffix}.pyx" ] || rm -f "$$built"; done; \
	for source in $$(find $(built_folders) -name '*.pyx'); do \
	  [ -e "$${source%.pyx}$$suffix" ] || whole=0; done; \
	sources="$(sources_key)"; flags="$(flags_key)"; \
	if [ $$whole = 1 ] && [ "$$(cat build/key 2>/dev/null)" = "$$sources $$flags" ]; then exit 0; fi; \
	echo "building the extensions with $(JOBS) jobs (a first build takes minutes)"; \
	mkdir -p build; rm -f build/key; \
	if [ "$$(cat build/flags 2>/dev/null)" != "$$flags" ]; then rm -rf build/cython; force=--force; fi; \
	"$(PY)" setup.py -q build_ext --inplace $$force >build/log 2>&1 \
	  || { cat build/log >&2; echo "the build failed; its output is above and in build/log" >&2; exit 1; }; \
	echo "$$flags" > build/flags; echo "$$sources $$flags" > build/key

# The wheel reuses the objects of the in-place build. It is tested in a folder without sources.
wheel: build
	.ci/wheel $(abspath $(PY))

lint-environment: $(OWN_ENVIRONMENT)
	@$(PY) -c 'import ruff, cython_lint, mypy, codespell_lib' 2>/dev/null \
	  || $(PY) -m pip install -q $(LINT_NEEDS)

clean:
	rm -rf $(VENV) build dist out gputensor.egg-info .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find $(built_folders) -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
