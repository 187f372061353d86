"""Kernels on tensor cores, compiled for the CPU (fakes/tensor_cores_on_cpu.h).

Each PTX statement of a kernel is replaced by a call of the same meaning. Whatever has none ends the
process where it runs.
"""

import re

from tests.support import kernel_compiler
from tests.support.kernel_compiler import HEADER
from tests.support.skinny_on_cpu import statement_end

# The start of a statement's text, and the C++ with its operands in order.
_REPLACEMENTS = (
    ("cp.async.cg.shared.global.L2::128B", "cpu_queue(%0, (const char*)%1, 16, %2);"),
    ("cp.async.mbarrier.arrive.noinc", "cpu_queue(%0, nullptr, 0, 0);"),
    ("cp.async.commit_group", "++cpu_self->copy_groups;"),
    ("cp.async.wait_group", "cpu_copies_wait(%0);"),
    ("mbarrier.init", "cpu_begin(%0, %1);"),
    ("mbarrier.arrive.shared", "cpu_arrive(%0);"),
    ("{\\n.reg .pred p;\\nmbarrier.try_wait", "%0 = cpu_try(%1, %2);"),
    ("bar.sync 1, %0", "cpu_self->block->named[1].wait(%0);"),
    ("ldmatrix.sync.aligned.m8n8.x4.trans", "cpu_matrices(x, at, true);"),
    ("ldmatrix.sync.aligned.m8n8.x4.shared", "cpu_matrices(x, at, false);"),
    ("mma.sync", "cpu_multiply(s, a, b0, b1);"),
    ('cvt.rn." ', "%0 = cpu_pack(%2, %1);"),
    ("cvt.f32.f16", "%0 = cpu_half_to_float(%1);"),
    ("cvt.rn.bf16.f32", "%0 = cpu_float_to_bfloat(%1);"),
    ("cvt.rn.f16.f32", "%0 = cpu_float_to_half(%1);"),
    ("ex2.approx", "%0 = exp2f(%1);"),
    ("wgmma.commit_group", "++cpu_self->product_groups;"),
    ("wgmma.wait_group", "cpu_products_wait(%0);"),
    ("wgmma.fence", ";"),
    ("fence.", ";"),
    ("setmaxnreg", ";"),
    ('" :', ";"),
)
# A block's memory is cpu_shared; its variables lie behind all that a launch may ask for.
_MEMORY = (
    (r"extern __shared__ __align__\(\d+\) char memory\[\];", "char* const memory = cpu_shared;"),
    (
        r"__shared__ Barriers barriers;",
        "Barriers& barriers = *(Barriers*)(cpu_shared + CPU_FIXED);",
    ),
)
_MULTIPLY = {
    "SCORES": "cpu_multiply_group(d, nullptr, a, b, BN, adds, true)",
    "SUMS": "cpu_multiply_group(d, a, 0, b, HEAD, true, false)",
}


def without_ptx(source):
    """Return the program with each asm statement replaced."""
    parts, done = [], 0
    for found in re.finditer(r'asm(?: volatile)?\("', source):
        end, operands = statement_end(source, found.start())
        text = source[found.end() :]
        statement = next(
            (cpp for begin, cpp in _REPLACEMENTS if text.startswith(begin)), "abort();"
        )
        for number, operand in enumerate(operands):
            statement = statement.replace(f"%{number}", f"({operand})")
        parts += [source[done : found.start()], statement]
        done = end
    return "".join([*parts, source[done:]])


def cpu_source(source, blocks=1):
    """Return the program for clusters of `blocks`, with its instructions replaced."""
    kind = 2 if ".f32.tf32" in source else 1 if "bf16" in source.split("#line", 1)[0] else 0
    for name, call in _MULTIPLY.items():
        source = re.sub(rf"(#define {name} ).*", rf"\1{call}", source)
    source = without_ptx(source)
    for pattern, replacement in _MEMORY:
        source = re.sub(pattern, replacement, source)
    head = f"static const int KIND = {kind};\nenum {{ CPU_BLOCKS = {blocks} }};\n"
    includes = [f'#include "tensor_cores_{name}.h"\n' for name in ("on_cpu", "run")]
    return f'#include "{HEADER}"\n{head}{includes[0]}{source}{includes[1]}'


def compile_source(source, target, options=()):
    """Stand in for NVRTC; the image is for fake_gpu.cpp."""
    del target, options
    is_ours = "blas/kernels/attention/" in source
    text = cpu_source(source) if is_ours else kernel_compiler.cpu_source(source)
    return kernel_compiler.image_of(text, kernel_compiler.FAST)
