"""The variants of every kernel, by file: all of them, and a few representatives.

Most kernels have a finite number of variants, and all are listed. Element-wise kernels and
reductions have any number of axes; each operation is listed with each of its types in a contiguous,
a strided and a mixed form.
"""

import itertools

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels import order_programs
from gputensor._kernels import programs as elements
from gputensor._kernels.call_rules import DISTRIBUTIONS
from gputensor._kernels.draw_facts import draw_facts
from gputensor._kernels.formula import formula as rows_formula
from gputensor._kernels.operations import ELEMENTWISE, REDUCTIONS
from gputensor.blas import backends
from gputensor.blas.kernels import attention_programs as attentions
from gputensor.blas.kernels import brief_programs as briefs
from gputensor.blas.kernels import convolution_programs as convolutions
from gputensor.blas.kernels import panel_programs as panels
from gputensor.blas.kernels import programs as products
from gputensor.blas.kernels import quantized_programs as quantized
from tests.support.convolution.depthwise_variants import depthwise_boxes, depthwise_tiles
from tests.support.rows import row_variants

FLOATS = ("float16", "bfloat16", "float32")
HALVES = FLOATS[:2]
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
BITS = (False, True)
# products of few rows: bytes of a load, rows, outputs of a warp by warps that share them, splits
PIECES, FEW, DOTS, SPLITS = (4, 8, 16), (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2, 8)
SHARES = tuple(itertools.product((1, 2), (1, 2, 4)))
UNIT, STRIDED, SCALAR = elements.UNIT, elements.STRIDED, elements.SCALAR
# modes of the inputs, axes, units a thread; the vector is as wide as the types allow unless strided
FORMS = (((UNIT,) * 3, 0, 2), ((STRIDED, SCALAR, STRIDED), 2, 1), ((UNIT, STRIDED, SCALAR), 3, 1))


def operations():
    for row, element, (modes, rank, unroll) in itertools.product(ELEMENTWISE, DTYPES, FORMS):
        if element.kind in row.kinds:
            code, inputs = element.code, [element.code] * row.arity
            if row.name == "where":
                inputs[0] = 0
            read = list(zip(inputs, modes, strict=False))
            vector = 1 if STRIDED in modes else max(1, 16 // element.itemsize)
            yield elements.elementwise(row.code, code, code, read, vector, rank, unroll)


def casts():
    for source, target in itertools.product(range(len(DTYPES)), repeat=2):
        yield elements.elementwise(0, target, target, ((source, UNIT),), 1, 0, 2)


def reductions():
    for row, element in itertools.product(REDUCTIONS, DTYPES):
        if element.kind not in row.kinds:
            continue
        out = 4 if row.name.startswith("arg") else element.code
        for column, wide, partial, from_partial in itertools.product(BITS, repeat=4):
            if column and from_partial:
                continue
            most = 8 if row.name in ("argmax", "argmin", "var") else 4
            if elements.is_packed(row.code, element.code, element.code) and not wide:
                most = 16
            yield elements.reduction(
                row.code, element.code, element.code, out, column=column,
                vector=1 if from_partial else min(most, 16 // element.itemsize), kept=2, reduced=1,
                wide=wide, partial=partial, from_partial=from_partial,
            )  # fmt: skip


def indices():
    sizes, dtypes = (1, 2, 4, 8, 16), range(1, 9)
    for form in itertools.product(range(5), sizes, dtypes, (1, 3)):
        yield elements.index(*form)


def transpositions():
    for source, target in itertools.product(range(len(DTYPES)), repeat=2):
        yield elements.transpose(target, source, (source + target) % 3)


def epilogues():
    types = [(11, 11, 11, 10), (9, 9, 11, 9), (12, 12, 12, 12), (11, 10, 10, 15), (10, 10, 10, 10)]
    for kinds, activation, rank, is_scaled, is_wide in itertools.product(
        types, range(5), (1, 2, 4, 16), BITS, BITS
    ):
        yield products.epilogue(
            kinds, activation, rank, 4 if is_wide else 1, is_scaled, not is_scaled, is_wide
        )


def grouped_wgmma():
    shapes = ((1, 64), (1, 128), (2, 64), (2, 128), (2, 256), (3, 256))
    for source, target, shape, along in itertools.product(HALVES, FLOATS, shapes, BITS):
        yield products.grouped_wgmma(source, target, *shape, along)


def unaligned():
    pairs = [(name, out) for name in FLOATS for out in (name, "float32")]
    for types, a, b, even_a, even_b, split in itertools.product(
        dict.fromkeys(pairs), BITS, BITS, BITS, BITS, range(1, 9)
    ):
        columns = 112 if b or types[0] == "float32" else 128
        yield products.unaligned(
            *types, (a, b), (even_a and not a, even_b and not b), columns, split, 6
        )


def packed():
    pairs = [(name, out) for name in HALVES for out in (name, "float32")] + [("float32",) * 2]
    for types, columns, has_addend in itertools.product(pairs, (256, 128), BITS):
        yield products.packed(*types, columns, has_addend)


def skinny():
    for tokens, (tiles, warps), stages, splits in itertools.product(
        (1, 2, 4, 8, 16), ((1, 8), (1, 4), (1, 1), (2, 4), (2, 2)), (2, 4, 8), (1, 2, 4)
    ):
        yield products.skinny(tokens, tiles=tiles, warps=warps, stages=stages, splits=splits)


def skinny_mma():
    forms = [
        (products.PLAIN, 0),
        *itertools.product((products.INT8, products.INT4), (0, 32, 64, 128)),
    ]
    for (form, group), name, is_float, tokens, splits, warps in itertools.product(
        forms, HALVES, BITS, (8, 16), (1, 2), ((1, 16), (2, 8), (5, 3), (16, 1))
    ):
        yield products.skinny_mma(
            form, name, "float32" if is_float else name, tokens,
            tiles=2 if form == products.INT4 else 1, step=1 if form == products.PLAIN else 2,
            row_warps=warps[0], k_warps=warps[1], stages=3, splits=splits, group=group,
            steady=warps[0] == 2,
        )  # fmt: skip
    for (form, group), name, (norm, pairs, gate), splits in itertools.product(
        forms, HALVES, ((1, 0, 0), (4, 1, 4), (0, 1, 3), (2, 2, 0)), (1, 2)
    ):
        yield products.skinny_mma(
            form, name, name, 8, tiles=2 if form == products.INT4 else 1,
            step=1 if form == products.PLAIN else 2, row_warps=2, k_warps=8, stages=3,
            splits=splits, group=group, norm=norm, pairs=pairs, gate=gate, steady=splits == 1,
        )  # fmt: skip


def panel():
    tiles = ((64, 64), (32, 64), (32, 32), (16, 32))
    for name, tile, is_along, (norm, chunks), gate in itertools.product(
        HALVES, tiles, BITS, ((0, 0), (1, 1), (2, 2), (2, 4)), (0, 3, 4)
    ):
        yield panels.panel(name, *tile, along_terms=bool(is_along), norm=norm, chunks=chunks,
                           gate=gate, steady=bool(is_along))  # fmt: skip


def narrow():
    types = [(name, name, False) for name in FLOATS] + [("float16", "float32", False)]
    types.append(("float32", "float32", True))
    tiles, shares = ((16, 32), (48, 64), (32, 128)), ((4, 1, 3), (1, 8, 4))
    for (name, out, plain), tile, share, along, is_odd in itertools.product(
        types, tiles, shares, itertools.product(BITS, BITS), BITS
    ):
        least = 4 if name == "float32" else 2
        pieces = ((16, 4) if tile == (48, 64) else (4, least)) if is_odd else (16, 16)
        yield backends.narrow_program(
            name, out, tile, share, tuple(map(bool, along)), pieces, plain=plain
        )


def held():
    for name, (columns, stages), is_along, gate, steady in itertools.product(
        HALVES, ((192, 4), (128, 6), (64, 6), (96, 3)), BITS, range(5), BITS
    ):
        if is_along or columns != 96:
            yield products.held(name, columns, stages, along_terms=bool(is_along), gate=gate,
                                steady=bool(steady))  # fmt: skip


def brief():
    x = ("load", 0)
    trees = (("copy", x), ("gelu", ("add", x, ("load", 1))), ("silu", x))
    for name, tree, rows, pieces, is_steady in itertools.product(
        FLOATS, trees, (1, 2, 4, 8), (1, 2, 4), BITS
    ):
        yield briefs.brief(name, name, rows_formula((tree,)), rows=rows, pieces=pieces,
                           together=1 if rows <= 2 else 2, steady=bool(is_steady))  # fmt: skip


def brief_rows():
    x = ("load", 0)
    power = ("exp", ("sub", x, ("fold", "max", x)))
    softmax = rows_formula((("div", power, ("fold", "sum", power)),))
    shapes = ((1, 1, 1), (16, 1, 1), (16, 2, 1), (16, 4, 4), (16, 4, 8))
    for name, is_float, (warps, together, units), pieces, is_steady in itertools.product(
        FLOATS, BITS, shapes, (1, 4), BITS
    ):
        yield briefs.brief(name, "float32" if is_float else name, softmax, warps=warps, units=units,
                           together=together, pieces=pieces, steady=bool(is_steady))  # fmt: skip


def quantized_tile():
    for form, name, is_float, group, (tokens, row_warps, k_warps) in itertools.product(
        (products.INT8, products.INT4), HALVES, BITS, (0, 32, 64, 128),
        ((32, 8, 2), (64, 8, 2), (64, 4, 4), (128, 8, 1), (128, 4, 2)),
    ):  # fmt: skip
        yield quantized.tile(
            form, name, "float32" if is_float else name, tokens, row_warps=row_warps,
            k_warps=k_warps, stages=4, group=group,
        )  # fmt: skip


def quantized_wgmma():
    for form, name, is_float, group, (tokens, tiles, stages, parts) in itertools.product(
        (products.INT8, products.INT4), HALVES, BITS, (0, 32, 64, 128),
        ((32, 2, 10, 1), (64, 1, 10, 2), (64, 2, 8, 4), (128, 1, 8, 2), (128, 2, 6, 1),
         (256, 1, 5, 1)),
    ):  # fmt: skip
        yield quantized.wgmma(
            form, name, "float32" if is_float else name, tokens, tiles=tiles, stages=stages,
            group=group, parts=parts,
        )  # fmt: skip


def quantized_endings():
    x, y, z = (("load", i) for i in range(3))
    gate = quantized.ending(rows_formula([("mul", ("silu", x), y)]), True, ())
    held = quantized.ending(
        rows_formula([("add", ("gelu", ("mul", x, y)), z)]), False,
        (("bfloat16", True), ("float32", False)),
    )  # fmt: skip
    for form, name, end in itertools.product(
        (products.INT8, products.INT4, products.PLAIN), HALVES, (gate, held)
    ):
        group = 128 if form == products.INT4 else 0
        for tokens, row_warps, k_warps in ((32, 8, 2), (64, 4, 4), (128, 8, 1)):
            yield quantized.tile(
                form, name, name, tokens, row_warps=row_warps, k_warps=k_warps, stages=2,
                group=group, end=end,
            )  # fmt: skip
        for tokens in (64, 128):
            yield quantized.wgmma(
                form, name, name, tokens, tiles=2, stages=4, group=group, parts=tokens // 64,
                end=end,
            )  # fmt: skip
        yield quantized.join(name, name, form == products.INT8, end)


MASKS = (None, "bool", "float32")


def attention():
    forms = ((64, 8, 64), (128, 8, 64), (80, 2, 64), (256, 4, 32))
    for name, form, mask, is_split in itertools.product(HALVES, forms, MASKS, BITS):
        yield attentions.attention(name, *form, mask, is_split)


#: Head size, warpgroups, keys of a step.
ATTENTION_WGMMA = ((32, 1, 64), (64, 1, 64), (64, 2, 128), (64, 3, 128), (64, 4, 64),
                   (128, 1, 64), (128, 2, 128))  # fmt: skip
#: Steps under way, blocks of a cluster, and whether blocks take units in turn.
FEW_MAPPED = ((4, 1, False), (3, 4, False), (2, 1, True), (6, 1, True))


def windows():
    """Largest elements of any real dtype; means and weighted sums of floats, wide and narrow."""
    forms = ((True, 0, 4, (3, 2, 1)), (True, 0, 1, (1, 1, 1)), (False, 1, 4, (2, 1, 2)),
             (False, 1, 1, (1, 1, 1)))  # fmt: skip
    for element, pooling, (is_last, vector, pixels, width) in itertools.product(
        DTYPES, range(5), forms
    ):
        kinds = ("int", "uint", "float") if pooling == 0 else ("float",)
        if element.kind not in kinds or (element.itemsize == 1 and is_last and pixels > 1):
            continue
        for activation in range(7) if pooling == 4 else (0,):
            yield elements.window(
                element.code, pooling, activation, channels_last=is_last,
                vector=vector or 16 // element.itemsize, pixels=pixels, width=width,
                is_wide=activation == 3,
            )  # fmt: skip


def draws():
    for distribution, element in itertools.product(DISTRIBUTIONS, DTYPES):
        kinds, ends = {
            "bernoulli": ("bool", [(0.5, 0)]), "permutation": (("int",), [(0, 0)]),
            "integers": (("bool", "int", "uint"), [(0, 1), (0, 1 << 40)]),
        }.get(distribution, (("float",), [(0, 1)]))  # fmt: skip
        if element.kind not in kinds or (distribution == "permutation" and element.name != "int64"):
            continue
        for a, b in ends:
            facts = draw_facts(distribution, a, b, element.name)
            yield elements.draw(facts.kind, element.code, facts.bits, facts.lanes)


def convolution_tiles():
    for code, activation, shape, is_deep, is_split, is_vectored in itertools.product(
        (9, 10, 11), (0, 1, 3), range(len(convolutions.SHAPES)), BITS, BITS, BITS
    ):
        if shape == 0 and not is_deep:
            continue
        yield convolutions.tile(
            code,
            activation,
            shape,
            is_deep=is_deep,
            is_split=is_split,
            is_vectored=is_vectored,
            spatial=3 if activation == 3 else 2,
            is_wide=activation == 3,
        )


def convolution_few():
    forms = ((3, 4, (7, 7), 2, 64, 7), (3, 4, (3, 3), 2, 32, 7), (1, 8, (3, 3), 1, 64, 8),
             (4, 8, (5, 5), 3, 32, 4), (1, 1, (2, 9), 8, 32, 4))  # fmt: skip
    for code, activation, form, is_vectored in itertools.product((9, 10), range(7), forms, BITS):
        names = ("channels", "pixel", "kernel", "stride", "outputs", "warps")
        yield convolutions.few(
            code,
            activation,
            **dict(zip(names, form, strict=True)),
            has_addend=activation % 2 == 1,
            is_vectored=is_vectored,
            is_dense=activation < 4,
        )


def convolution_shifted():
    for code, activation, (outputs, columns), splits, is_vectored in itertools.product(
        (9, 10), range(7), ((64, 32), (64, 256), (128, 112), (128, 208), (128, 256)), (1, 2), BITS
    ):
        yield convolutions.shifted(
            code, activation, (outputs, columns), stages=6 if columns < 256 else 4,
            places=2 if splits == 1 else 4, splits=splits, is_vectored=is_vectored,
        )  # fmt: skip


def convolution_mapped():
    tiles = ((64, 32), (64, 256), (128, 112), (128, 128), (128, 208), (128, 256))
    for code, activation, (outputs, columns), splits, blocks in itertools.product(
        (9, 10), range(7), tiles, (1, 2), (1, 2)
    ):
        if blocks == 1 or (columns <= 128 and splits == 1):
            form = {"stages": 2, "splits": splits, "blocks": blocks}
            yield convolutions.mapped(code, activation, (outputs, columns), **form)


def orders():
    real = [row.code for row in DTYPES if row.kind in ("bool", "int", "uint", "float")]
    for code, tile, is_order in itertools.product(real, (64, 128, 512, 2048), (0, 1)):
        yield order_programs.program(0, code, tile, is_order, 0, 0)
    for code, step, is_order, ends, is_wide in itertools.product(
        real, range(3), (0, 1), range(4), (0, 1)
    ):
        yield order_programs.program(1, code, step, is_order, ends, is_wide)
    for code, slots in itertools.product(real, (64, 2048)):
        yield order_programs.program(2, code, slots, 0, 0, 0)
        yield order_programs.program(3, code, 0, 0, 0, 0)


def counts():
    for code, slots in itertools.product(range(1, 9), (0, 4, 64)):
        yield order_programs.program(4, code, 0, code, slots, 0)
    for code, edge, slots in itertools.product(range(13), (4, 8, 11, 12), (0, 4, 32)):
        yield order_programs.program(4, code, 1, edge, slots, 0)
        if edge > 10:
            yield order_programs.program(4, code, 2, edge, slots, 0)
    sums = ("int32", "int64", "uint32", "uint64", "float32", "float64", "complex64", "complex128")
    codes = [row.code for row in DTYPES if row.name in sums]
    for code, index, grid, vector in itertools.product(codes, (1, 4, 8), (0, 1), (1, 2, 4)):
        yield order_programs.program(8, code, index, grid, vector, grid)


def choices():
    for code, rule in itertools.product(range(15), range(3)):
        yield order_programs.program(6, code, rule, 0, 0, 0)
    yield order_programs.program(6, 7, 3, 0, 0, 0)
    for code, is_shared in itertools.product(range(9), (0, 1)):
        yield order_programs.program(9, code, is_shared, 0, 0, 0)
    for size in (1, 2, 4, 8, 16):
        yield order_programs.program(7, size, 0, 0, 1, 0)
    for is_wide, rank in itertools.product((0, 1), (1, 2, 16)):
        yield order_programs.program(7, 8, 1, is_wide, rank, 0)


def scans():
    codes = range(15)
    pairs = [(code, code) for code in codes] + [(0, 4), (2, 11), (9, 12), (11, 13)]
    for (source, target), form, op in itertools.product(pairs, range(5), range(5)):
        if op < 2 or (DTYPES[target].kind == "float" if op == 4 else target < 13 > source):
            yield order_programs.program(5, source, form, target, op, 0)


def each(function, *choices):
    return lambda: itertools.starmap(function, itertools.product(*choices))


def each_form(function, *choices):
    return lambda: (function(*of, *form) for *of, form in itertools.product(*choices))


#: name -> all variants of a kernel, and the number of representatives in the quick tests.
KERNELS = {
    "operations": (operations, 12),
    "casts": (casts, 3),
    "reductions": (reductions, 4),
    "indices": (indices, 2),
    "transpositions": (transpositions, 1),
    "depthwise boxes": (depthwise_boxes, 3),
    "depthwise tiles": (depthwise_tiles, 4),
    "draws": (draws, 6),
    "orders": (orders, 8),
    "counts": (counts, 6),
    "choices": (choices, 4),
    "scans": (scans, 5),
    "rows": (lambda: row_variants.rows(*row_variants.FORMS), 5),
    "rows in caches": (lambda: row_variants.rows(*row_variants.CACHED), 4),
    "attention": (attention, 2),
    "attention of few rows": (
        each(attentions.attention_few, HALVES, (16, 64, 128), (1, 2), MASKS, (4,), (2, 3)),
        2,
    ),
    "attention of few rows by maps": (
        each_form(attentions.attention_few_mapped, HALVES, (64, 128), (1, 2), MASKS, FEW_MAPPED),
        4,
    ),
    "maps": (row_variants.maps, 2),
    "windows": (windows, 3),
    "convolution plain": (each(convolutions.plain, (9, 10, 11, 12), range(7), (1, 4), BITS), 2),
    "convolution": (convolution_tiles, 2),
    "convolution few": (convolution_few, 3),
    "convolution shifted": (convolution_shifted, 3),
    "convolution mapped": (convolution_mapped, 3),
    "convolution join": (each(convolutions.join, (9, 10), range(7)), 1),
    "attention on Hopper": (each_form(attentions.attention_wgmma, HALVES, ATTENTION_WGMMA), 5),
    "attention join": (each(attentions.join, HALVES, (64, 128, 256), (16, 64, 128), (1, 2)), 1),
    "arange": (each(elements.arange, range(len(DTYPES))), 1),
    "conditions": (each(elements.condition), 1),
    "epilogues": (epilogues, 2),
    "tiny": (each(backends.tiny_program, FLOATS, FLOATS, (16, 32)), 2),
    "few terms": (each(backends.few_terms_program, FLOATS, FLOATS, (1, 2, 3), (1, 4)), 1),
    "low rank": (each(backends.low_rank_program, (4, 8, 12), (False, True)), 1),
    "axpy": (each(backends.axpy_program, FLOATS, FLOATS, PIECES, FEW, (2, 8, 32), SPLITS, BITS), 6),
    "dots": (each(backends.dots_program, FLOATS, FLOATS, PIECES, DOTS, SHARES, SPLITS, BITS), 6),
    "integer": (each(products.integer, INTEGERS, INTEGERS), 1),
    "strided": (each(products.strided), 1),
    "listed": (each(products.listed), 1),
    "relayout": (each(products.relayout), 1),
    "random": (each(products.random), 1),
    "dequantize": (each(products.dequantize, FLOATS, (4, 8)), 3),
    "grouped": (each(products.grouped, FLOATS, FLOATS, (4, 8)), 1),
    "grouped_wgmma": (grouped_wgmma, 1),
    "unaligned": (unaligned, 2),
    "packing": (each(products.packing, (2, 4)), 2),
    "packed": (packed, 1),
    "skinny": (skinny, 2),
    "skinny_mma": (skinny_mma, 3),
    "narrow": (narrow, 4),
    "held": (held, 2),
    "panel": (panel, 2),
    "brief": (brief, 2),
    "brief of rows": (brief_rows, 2),
    "quantized_tile": (quantized_tile, 2),
    "quantized_wgmma": (quantized_wgmma, 2),
    "quantized_endings": (quantized_endings, 2),
    "quantized_order": (each(quantized.order, range(3)), 1),
    "quantized_join": (each(quantized.join, HALVES, FLOATS, BITS), 1),
}


def variants(name):
    """Return the variants of a kernel, each once."""
    return list(dict.fromkeys(KERNELS[name][0]()))


def few(name):
    """Return the representatives of a kernel, evenly spread over all variants."""
    found, count = variants(name), KERNELS[name][1]
    return [found[(2 * i + 1) * len(found) // (2 * count)] for i in range(count)]
