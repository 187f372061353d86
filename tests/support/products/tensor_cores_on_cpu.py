"""Kernels on tensor cores, compiled for the CPU (fakes/tensor_cores_on_cpu.h).

Each PTX statement of a kernel is replaced by a call of the same meaning. Whatever has none ends the
process where it runs.
"""

import re

from tests.support import kernel_compiler
from tests.support.kernel_compiler import HEADER
from tests.support.products.skinny_on_cpu import without_ptx

# The start of a statement's text, and the C++ with its operands in order.
_REPLACEMENTS = (
    ("cp.async.cg.shared.global.L2::128B", "cpu_copy(%0, (const char*)%1, 16, %2);"),
    ("cp.async.cg.shared.global [", "cpu_copy(%0, (const char*)%1, 16, %2);"),
    ("cp.async.ca.shared.global [", "cpu_copy(%0, (const char*)%1, 4, %2);"),
    ("{ .reg .pred p; setp.ne.b32 p, %3, 0;", "{ if (%3) cpu_copy(%0, %1, 16, %2); }"),
    ('{ .reg .pred p; setp.ne.b32 p, %2, 0;"', "{ if (%2) cpu_copy(%0, %1, 16, 16); }"),
    ("cp.async.mbarrier.arrive.noinc", "cpu_copy(%0, nullptr, 0, 0);"),
    ("cp.async.commit_group", "++cpu_self->copy_groups;"),
    ("cp.async.wait_group", "cpu_copies_wait(%0);"),
    ('cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "',
     "cpu_bulk(%0, %1, %2, %3, 1 << (cpu_self->block - cpu_cluster));"),
    ("createpolicy", "%0 = 0;"),
    ("cp.async.bulk.tensor.4d", "cpu_box(%0, %1, %2, %3, %4, %5, %6);"),
    ("cp.async.bulk.shared::cluster", "cpu_bulk(%0, %1, %2, %3, %4);"),
    ("cp.async.bulk.global", "cpu_store(%0, %1, %2);"),
    ("cp.async.bulk.commit", ";"),
    ("cp.async.bulk.wait_group.read", "cpu_stores_wait();"),
    ("mbarrier.init", "cpu_begin(%0, %1);"),
    ("mbarrier.arrive.expect_tx", "cpu_arrive(%0, %1);"),
    ("mbarrier.arrive.shared", "cpu_arrive(%0);"),
    ("{\\n.reg .b32 remote;", "cpu_arrive_at(%0, %1);"),
    ("{\\n.reg .pred p;\\nmbarrier.try_wait", "%0 = cpu_try(%1, %2);"),
    ("{ .reg .pred p; again: mbarrier.try_wait", "while (!cpu_try(%0, %1)) {}"),
    ("bar.arrive %0, %1", "cpu_self->block->named[%0].arrive(%1);"),
    ("bar.sync %0, %1", "cpu_self->block->named[%0].wait(%1);"),
    ("bar.sync 1, %0", "cpu_self->block->named[1].wait(%0);"),
    ("barrier.cluster.arrive", "cpu_meet();"),
    ("barrier.cluster.wait", ";"),
    ("mov.u32 %0, %%cluster_ctarank", "%0 = cpu_self->block - cpu_cluster;"),
    ("mapa.shared::cluster", "%0 = %1 | %2 << 24;"),
    ("ld.shared::cluster.f32", "memcpy(&%0, cpu_there(%1, 4), 4);"),
    ("ld.shared::cluster.v4", "memcpy(x, cpu_there(%4, 16), 16);"),
    ("ld.shared.f32", "memcpy(&%0, cpu_at(%1, 4, 4), 4);"),
    ("ld.shared.v4.f32", "memcpy(x, cpu_at(%4, 16, 16), 16);"),
    ("ld.shared.v4.b32", "memcpy(&x, cpu_at(%4, 16, 16), 16);"),
    ("st.shared.v4.b32", "{ unsigned cpu_v[] = {%1, %2, %3, %4}; "
                         "memcpy(cpu_at(%0, 16, 16), cpu_v, 16); }"),
    ("st.shared.v2.f32", "{ float cpu_v[] = {%1, %2}; memcpy(cpu_at(%0, 8, 8), cpu_v, 8); }"),
    ("ld.shared.u32", "memcpy(&%0, cpu_at(%1, 4, 4), 4);"),
    ("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p ld",
     "{ if (%2) memcpy(&%0, cpu_at(%1, 4, 4), 4); }"),
    ("st.shared.f32", "memcpy(cpu_at(%0, 4, 4), &%1, 4);"),
    ("st.shared.u32", "memcpy(cpu_at(%0, 4, 4), &%1, 4);"),
    ("st.release.gpu.global", "*(unsigned*)%0 = %1;"),
    ("ld.acquire.gpu.global", "%0 = *(unsigned*)%1;"),
    ("{ .reg .u64 t; cvta.to.shared", "%0 = 0;"),
    ("st.shared::cluster.f32", "memcpy(cpu_there(%0, 4), &%1, 4);"),
    ("movmatrix.sync", "%0 = cpu_turned(%1);"),
    ("ldmatrix.sync.aligned.m8n8.x4.trans", "cpu_matrices(x, at, true);"),
    ("ldmatrix.sync.aligned.m8n8.x4.shared", "cpu_matrices(x, at, false);"),
    ("stmatrix.sync.aligned.m8n8.x4.shared", "cpu_store_matrices(at, x);"),
    ("mma.sync", "{ unsigned cpu_a[] = {%4, %5, %6, %7}; cpu_multiply(s, cpu_a, %8, %9); }"),
    ("prmt.b32", "%0 = __byte_perm(%1, %2, %3);"),
    ("cvt.rn.tf32.f32", "%0 = cpu_tf32(%1, false);"),
    ("cvt.rna.tf32.f32", "%0 = cpu_tf32(__float_as_uint(%1), true);"),
    ('cvt.rn." ', "%0 = cpu_pack(%2, %1);"),
    ("cvt.rn.f16x2.f32", "%0 = cpu_pack(%2, %1);"),
    ("cvt.rn.bf16x2.f32", "%0 = cpu_pack(%2, %1);"),
    ("cvt.f32.f16", "%0 = cpu_half_to_float(%1);"),
    ("cvt.rn.bf16.f32", "%0 = cpu_float_to_bfloat(%1);"),
    ("cvt.rn.f16.f32", "%0 = cpu_float_to_half(%1);"),
    ("ex2.approx", "%0 = exp2f(%1);"),
    ("rcp.approx", "%0 = 1 / %1;"),
    ("wgmma.commit_group", "++cpu_self->product_groups;"),
    ("wgmma.wait_group", "cpu_products_wait(%0);"),
    ("wgmma.fence", ";"),
    ("fence.", ";"),
    ("setmaxnreg", ";"),
    ('" :', ";"),
)  # fmt: skip
# A block's memory is cpu_shared; its variables lie behind all that a launch may ask for.
_MEMORY = (
    (r"extern __shared__ .*char memory\[\];", "char* const memory = cpu_shared;"),
    (
        r"__shared__ Barriers barriers;",
        "Barriers& barriers = *(Barriers*)(cpu_shared + CPU_FIXED);",
    ),
)
_MULTIPLY = {
    "SCORES": "cpu_multiply_group(d, nullptr, a, b, BN, adds, true)",
    "SUMS": "cpu_multiply_group(d, a, 0, b, HEAD, true, false)",
    "MULTIPLY": "cpu_multiply_group(d, nullptr, a, b, COLUMNS, adds, ALONG_TERMS)",
    **{f"WGMMA_{n}": f"cpu_multiply_lower(d, a, b, {n}, adds)" for n in (32, 128, 256)},
}


def cpu_source(source):
    """Return the program with its instructions replaced, and its entry behind."""
    defines = source.split("#line", 1)[0]
    kind = 2 if ".tf32." in defines else 1 if ".bf16." in defines or "bf16x2" in defines else 0
    cluster = re.search(r"__cluster_dims__\((\w+), 1, 1\)", source)
    blocks = cluster[1] if cluster else "1"
    if not blocks.isdigit():
        # A kernel without clusters may include the text that declares them.
        found = re.search(rf"#define {blocks} (\d+)", defines)
        blocks = found[1] if found else "1"
    for name, call in _MULTIPLY.items():
        source = re.sub(rf"(#define {name} ).*", rf"\1{call}", source)
    source = without_ptx(source, _REPLACEMENTS)
    for pattern, replacement in _MEMORY:
        source = re.sub(pattern, replacement, source)
    head = f"static const int KIND = {kind};\nenum {{ CPU_BLOCKS = {blocks} }};\n"
    includes = [f'#include "tensor_cores_{name}.h"\n' for name in ("on_cpu", "run")]
    return f'#include "{HEADER}"\n{head}{includes[0]}{source}{includes[1]}'


#: The folders of the kernels that are compiled in this way.
OURS = ("attention/", "unaligned/", "packed/", "panel/", "held/", "narrow/")


def compile_source(source, target, options=()):
    """Stand in for NVRTC; the image is for fake_gpu.cpp."""
    del target, options
    is_ours = any(f'"gputensor/blas/kernels/{name}' in source for name in OURS)
    text = cpu_source(source) if is_ours else kernel_compiler.cpu_source(source)
    return kernel_compiler.image_of(text, kernel_compiler.FAST)
