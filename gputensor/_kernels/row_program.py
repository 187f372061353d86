"""The text of row formulas: one variant of a formula becomes the definitions of ``row.cuh``.

Steps that two phases need are computed twice, since arithmetic is cheaper than registers; costly
steps stay in registers.
"""

from gputensor._arrays.element_types import DTYPES
from gputensor._kernels.formula import FOLDS, OPERATIONS
from gputensor._kernels.program import Program

__all__ = ["CONSTANT", "STRIDED", "UNIT", "folded_loads", "point", "program"]

# How an operand is read: as neighbours in memory; by its strides; as one element for a whole row;
# as neighbours that are equal for all rows, from shared memory.
UNIT, STRIDED, CONSTANT, FIXED = range(4)
COSTLY = frozenset(
    "div pow exp rough_exp exp2 expm1 log log2 log10 log1p sqrt rsqrt cbrt sin cos tan tanh "
    "sigmoid silu erf gelu gelu_tanh sinc hypot".split()
)
# Operands that only the last phase needs are loaded together up to so many words of a thread.
LATE_WORDS = 64
_CUDA = {row.name: row.cuda for row in DTYPES}


class _Text:
    """The text of one variant's steps: names of values, and statements that compute them."""

    def __init__(self, formula, variant):
        self.formula, self.variant = formula, variant
        self.number = {node: i for i, node in enumerate(formula.nodes)}
        self.pair = _together(formula) if variant["cluster"] > 1 else None
        self.kept = [] if variant["loop"] else self._kept()
        if self.pair:
            self.kept = [node for node in self.kept if node == self.pair[1][2]]
        self.scaled = None  # a kept step that was computed with the maximum of the block
        folding = [node for wanted in list(self.phases())[:-1] for node in self.closure(wanted)]
        loads = {node[1] for node in formula.nodes if node[0] == "load"}
        moving = {i for i in loads if variant["modes"][i] != CONSTANT}
        self.early = sorted(moving & {node[1] for node in folding if node[0] == "load"})
        if variant["map"]:
            self.early = sorted(moving)  # before any store, which might change loaded elements
        self.late = sorted(moving - set(self.early))
        self.places = {}  # of units in shared memory, for fixed operands
        self.functions = {}

    def _kept(self):
        """The costly steps that more than one phase needs, in order."""
        uses = {}
        for phase, wanted in enumerate(self.phases()):
            for node in self.closure(wanted):
                uses.setdefault(node, set()).add(phase)
        return [
            node for node in self.formula.nodes if len(uses.get(node, ())) > 1 and node[0] in COSTLY
        ]

    def phases(self):
        """The steps that each pass over the columns computes: folds by level, then the results."""
        formula = self.formula
        levels = sorted({formula.level[fold] for fold in formula.folds})
        for level in levels:
            yield [fold[2] for fold in formula.folds if formula.level[fold] == level]
        yield [tree for tree in formula.results if formula.by_column[tree]]

    def closure(self, wanted, known=frozenset()):
        """The steps by column that `wanted` needs and that are not known, in order."""
        needed, stack = set(), list(wanted)
        while stack:
            node = stack.pop()
            if self.formula.by_column[node] and node not in needed and node not in known:
                needed.add(node)
                stack.extend(self.formula.parts(node))
        return [node for node in self.formula.nodes if node in needed]

    def name(self, node):
        """The C++ expression of a known value."""
        if node[0] == "number":
            return self._literal(node[1])
        if node == self.scaled and node in self.kept:
            return f"(n{self.number[node]}[k][v] * scale)"
        return f"n{self.number[node]}" + ("[k][v]" if node in self.kept else "")

    def _literal(self, value):
        value = float(value)
        if value != value:
            return "(C)__int_as_float(0x7fffffff)"
        if value in (float("inf"), float("-inf")):
            return f"((C){'-' if value < 0 else ''}__int_as_float(0x7f800000))"
        return f"((C){value!r})"

    def value(self, node, is_truth):
        """The C++ expression of a known value, as a truth value or as a number."""
        text = self.name(node)
        if self.formula.is_truth(node, self.variant["dtypes"]) == is_truth:
            return text
        return f"({text} != 0)" if is_truth else f"(C){text}"

    def expression(self, node):
        """The C++ expression that computes a step from those that it needs."""
        head = node[0]
        if head == "load":
            i = node[1]
            mode = self.variant["modes"][i]
            unit = f"x{i}" if i in self.late else f"x{i}[k]"
            if self.variant["dtypes"][i] == 0:
                return f"x{i}" if mode == CONSTANT else f"{unit}.item[v]"
            return f"narrow<C>({f'wide(x{i})' if mode == CONSTANT else f'widened({unit}, v)'})"
        if head == "column":
            return "(C)(column + v)"
        if head == "row":
            return "(C)(here % p.period)"
        if head in ("columns", "rows"):
            return "(C)p.columns" if head == "columns" else "(C)p.period"
        if head == "round" and len(node) == 3:
            kind = _CUDA[node[1]]
            return f"(C)wide(narrow<{kind}>({self.value(node[2], False)}))"
        if head == "mul" and self.scaled in node[1:] and self.scaled in self.kept:
            other = node[2] if node[1] == self.scaled else node[1]
            if not self.formula.by_column[other]:
                held = f"n{self.number[self.scaled]}[k][v]"
                return f"({held} * (scale * {self.value(other, False)}))"
        row = OPERATIONS[head]
        kind = "bool" if row.rule == "logical" or "float" not in row.kinds else "float"
        takes = [kind == "bool" or (row.rule == "where" and i == 0) for i in range(row.arity)]
        self.functions[head] = self._function(row, kind, takes)
        arguments = [self.value(x, takes[i]) for i, x in enumerate(node[1:])]
        return f"op_{head}({', '.join(arguments)})"

    @staticmethod
    def _function(row, kind, takes):
        gives_bool = row.gives_bool or row.rule == "logical"
        parameters = ", ".join(f"{'bool' if t else 'C'} {'abc'[i]}" for i, t in enumerate(takes))
        return (f"__device__ __forceinline__ {'bool' if gives_bool else 'C'} op_{row.name}"
                f"({parameters}) {{ return ({row.cuda[kind]}); }}")  # fmt: skip

    def load(self, i, target, by="*"):
        """The statement that loads one unit of an operand, `by` a function of its address."""
        if self.variant["modes"][i] in (UNIT, FIXED):
            by = by if self.variant["cached"] else "*"
            place = f"reinterpret_cast<const Vector<T{i}, VECTOR>*>(in{i} + column)"
            return f"{target} = {by}({place});"
        return (
            f'_Pragma("unroll") for (int v = 0; v < VECTOR; ++v) '
            f"{target}.item[v] = in{i}[along(p, {i}, column + v)];"
        )

    def ahead(self):
        """The statements that fetch, and those that take, one unit of each folded operand."""
        variant, fetches, takes, fixed, offset = self.variant, [], [], [], 0
        for i in self.early:
            place, fetch, nbytes = self._ahead(i, offset)
            fetches.append(fetch)
            takes.append(f"x{i}[k] = {place};")
            offset += variant["units"] * nbytes
        for i in self.late:
            if variant["modes"][i] == FIXED:
                self.places[i], fetch, nbytes = self._ahead(i, offset)
                fixed.append(f"if (k < FIXED) {fetch}")
                offset += variant["fixed"] * nbytes
        return [("FETCH", " ".join(fetches)), ("TAKE", " ".join(takes)),
                ("FETCH_FIXED", " ".join(fixed)), ("FIXED", variant["fixed"])]  # fmt: skip

    def _ahead(self, i, offset):
        """Unit k of an operand in shared memory, its fetch, and the bytes of all lanes."""
        nbytes = self.variant["vector"] * DTYPES[self.variant["dtypes"][i]].itemsize
        place = f"ahead + {offset} + (k * LANES + lane) * {nbytes}"
        # Constants are added to the address of the first unit, which the instruction does itself.
        source = f"in{i} + COLUMN(0) + k * (CLUSTER * LANES * VECTOR)"
        return (f"*reinterpret_cast<const Vector<T{i}, VECTOR>*>({place})",
                f"fetch<{nbytes}>({place}, {source});",
                self.variant["lanes"] * nbytes)  # fmt: skip

    def group(self):
        """The number of units whose late operands are loaded together."""
        variant = self.variant
        if not (variant["together"] or variant["cached"]):
            return 1
        nbytes = [variant["vector"] * DTYPES[variant["dtypes"][i]].itemsize for i in self.late]
        fit = LATE_WORDS // max(1, sum(max(1, one // 4) for one in nbytes))
        return max(1, min(variant["units"], fit))

    def late_loads(self):
        """The definitions of what the last phase loads: in a loop, the row too."""
        row = self.early if self.variant["loop"] else []
        loads = [self.load(i, f"x{i}[k]", "load_last") for i in row]
        for i in self.late:
            target = f"late{i}[k - group]"
            load = self.load(i, target, "load_kept")
            if i in self.places:
                load = f"if (k < FIXED) {target} = {self.places[i]}; else {load}"
            loads.append(load)
        declare = [f"Vector<T{i}, VECTOR> late{i}[LATE];" for i in self.late]
        return [("LATE", self.group()), ("DECLARE_LATE", " ".join(declare)),
                ("LOAD_LATE", " ".join(loads))]  # fmt: skip

    def steps(self, wanted, known):
        """Statements inside EACH that compute the wanted steps; adds kept steps to `known`."""
        lines, local = [], set()
        for node in self.closure(wanted, known):
            kind = "bool" if self.formula.is_truth(node, self.variant["dtypes"]) else "C"
            if node in self.kept:
                lines.append(f"{self.name(node)} = {self.expression(node)};")
                local.add(node)
            else:
                lines.append(f"const {kind} n{self.number[node]} = {self.expression(node)};")
        known |= local
        return " ".join(lines)

    def uniform(self, level):
        """Statements that compute the steps without columns that depend on `level` folds."""
        lines = []
        for node in self.formula.nodes:
            if (self.formula.by_column[node] or node[0] in ("fold", "number")
                    or self.formula.level[node] != level):  # fmt: skip
                continue
            kind = "bool" if self.formula.is_truth(node, self.variant["dtypes"]) else "C"
            lines.append(f"const {kind} n{self.number[node]} = {self.expression(node)};")
        return " ".join(lines)


def _together(formula):
    """The pair of folds that can share one exchange between blocks, or None.

    It is either a maximum and the sum of powers of distances to it, or a mean and the mean of
    squared distances to it: results with a block's own maximum or mean can be corrected after the
    exchange.
    """
    pair = [fold for fold in formula.folds if formula.level[fold] < 3]
    if [formula.level[fold] for fold in pair] != [1, 2]:
        return None
    first, second = pair
    head, *parts = second[2]
    if (first[1], second[1]) == ("mean", "mean"):
        is_square = head == "mul" and parts[0] == parts[1] == ("sub", first[2], first)
        return (first, second) if is_square else None
    if (first[1], second[1], parts[0][0]) != ("max", "sum", "sub") or (
            head not in ("exp", "rough_exp")):  # fmt: skip
        return None
    _, value, shift = parts[0]
    return (first, second) if value == first[2] and not formula.by_column[shift] else None


def _of_both(text, pair, known):
    """The phases of a pair of folds with one exchange.

    Inside the braces the first fold is that of the block alone. Powers that stay in registers use
    the block's maximum, and `scale` converts them to the row's maximum.
    """
    first, second = pair
    (i, j), (one, two) = (text.number[fold] for fold in pair), (f"Fold_{fold[1]}" for fold in pair)
    f, g = (text.formula.folds.index(fold) for fold in pair)
    slots = [f"(rounds.slots + {f} * PEERS)", f"(rounds.slots + {g} * PEERS)"]
    is_mean = first[1] == "mean"
    steps, value = text.steps([first[2]], set()), text.value(first[2], False)
    lines = [
        f"C a{i} = {one}::identity(), a{j} = {two}::identity(), s{j} = 0;",
        f"EACH({steps} a{i} = {one}::combine(a{i}, {one}::lift({value}));)",
        f"a{i} = in_warp<{one}>(a{i});",
        f"share(rounds, {f}, {g}, a{i}, lane); {{ const C n{i} = "
        + ("mean_of(p, peer_of(lane), {0});" if is_mean else "finite({0});").format(f"a{i}"),
        text.uniform(1),
    ]
    steps, value = text.steps([second[2]], known), text.value(second[2], False)
    lines += [
        f"EACH({steps} a{j} = {two}::combine(a{j}, {two}::lift({value}));)",
        f"}} share(rounds, {g}, {g}, in_warp<{two}>(a{j}), lane); exchange(rounds, {g}, 2, lane);",
        f"const C n{i} = {one}::finish(of_cluster<{one}>({slots[0]}, lane), (double)p.columns);",
        text.uniform(1),
    ]
    if is_mean:
        step = (f"const C away = mean_of(p, peer, theirs) - n{i}; "
                f"s{j} += part + columns_of(p, peer) * away * away;")  # fmt: skip
    else:
        head, shift = second[2][0], second[2][1][2]
        lines.append(f"const C whole = {text.value(shift, False)};")
        lines.append(f"const auto factor = [&](C own) {{ "
                     f"const C n{i} = finite(own); {text.uniform(1)} return own == LOWEST ? (C)0 : "
                     f"op_{head}({text.value(shift, False)} - whole); }};")  # fmt: skip
        lines.append(f"const C scale = factor(a{i});")
        step = f"s{j} += part * factor(theirs);"
        text.scaled = second[2]
    lines += [
        '_Pragma("unroll") for (int i = 0; i < SHARES; ++i) {',
        "const uint32 peer = lane % 32 % PEERS + 32 * i;",
        f"const C theirs = {slots[0]}[peer], part = {slots[1]}[peer]; {step} }}",
        f"const C n{j} = {two}::finish(of_warp<{two}>(s{j}), (double)p.columns);",
        text.uniform(2),
    ]
    return " ".join(lines)


def _body(text):
    """The text of the phases, level by level."""
    formula = text.formula
    lines = [f"C n{text.number[node]}[UNITS][VECTOR];" for node in text.kept]
    lines.append(text.uniform(0))
    known, levels = set(), sorted({formula.level[fold] for fold in formula.folds})
    if text.pair:
        lines.append(_of_both(text, text.pair, known))
        levels = levels[2:]
    for level in levels:
        folds = [fold for fold in formula.folds if formula.level[fold] == level]
        inside = [text.steps([fold[2] for fold in folds], known)]
        for fold in folds:
            i, kind = text.number[fold], f"Fold_{fold[1]}"
            lines.append(f"C a{i} = {kind}::identity();")
            value = text.value(fold[2], False)
            inside.append(f"a{i} = {kind}::combine(a{i}, {kind}::lift({value}));")
        lines.append(f"EACH({' '.join(inside)})")
        for fold in folds:
            i, slot = text.number[fold], formula.folds.index(fold)
            lines.append(f"const C n{i} = FOLDED(Fold_{fold[1]}, {slot}, a{i});")
        lines.append(text.uniform(level))
    return " ".join(lines), known


def _fold_text(name):
    identity, lift, combine, finish = FOLDS[name].cuda["float"]
    functions = (("identity()", identity), ("lift(C x)", lift), ("combine(C a, C b)", combine),
                 ("finish(C a, double count)", finish))  # fmt: skip
    return f"struct Fold_{name} {{ " + " ".join(
        f"static __device__ __forceinline__ C {head} {{ return {text}; }}"
        for head, text in functions
    ) + " };"  # fmt: skip


def _results(text, known):
    """The last computations and stores: the RESULT_ definitions and ROW_RESULT."""
    formula, variant = text.formula, text.variant
    by_column = [i for i, tree in enumerate(formula.results) if formula.by_column[tree]]
    unit = [i for i in by_column if variant["modes"][formula.loads + i] == UNIT]
    steps = [text.steps([formula.results[i] for i in by_column], known)]
    for i in by_column:
        place = f"out{i}[along(p, {formula.loads + i}, column + v)]"
        place = f"r{i}[v]" if i in unit else place
        value = text.value(formula.results[i], False)
        steps.append(f"{place} = {value if i in unit else f'narrow<R{i}>({value})'};")
    declare = [f"const Vector<T{i}, VECTOR>& x{i} = late{i}[k - group];" for i in text.late]
    declare += [f"C r{i}[VECTOR];" for i in unit]
    store = [
        f"Vector<R{i}, VECTOR> y{i}; narrow_all(y{i}, r{i}); "
        f"Vector<R{i}, VECTOR>* to{i} = reinterpret_cast<Vector<R{i}, VECTOR>*>(out{i} + column); "
        + (f"store_last(to{i}, y{i});" if variant["cached"] else f"*to{i} = y{i};")
        for i in unit
    ]
    rows = [
        f"out{i}[0] = narrow<R{i}>({text.value(tree, False)});"
        for i, tree in enumerate(formula.results)
        if not formula.by_column[tree]
    ]
    return [
        ("HAS_RESULT", int(bool(by_column))),
        *text.late_loads(),
        ("RESULT_DECLARE", " ".join(declare)),
        ("RESULT_STEPS", " ".join(steps)),
        ("RESULT_STORE", " ".join(store)),
        ("ROW_RESULT", " ".join(rows)),
    ]


def folded_loads(formula):
    """Return a bit for each operand that a fold needs, which is read before any result.

    >>> from gputensor._kernels.formula import formula
    >>> x, w = ("load", 0), ("load", 1)
    >>> folded_loads(formula([("mul", w, ("sub", x, ("fold", "max", x)))]))
    1
    """
    found, stack = set(), [fold[2] for fold in formula.folds]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(formula.parts(node))
    return sum(1 << node[1] for node in found if node[0] == "load")


class _Point(_Text):
    """The text of the steps of one element, whose loads are known values."""

    def __init__(self, formula, dtypes, loads):
        self.formula, self.variant, self.loads = formula, {"dtypes": dtypes}, loads
        self.number = {node: i for i, node in enumerate(formula.nodes)}
        self.kept, self.scaled, self.functions = [], None, {}

    def expression(self, node):
        return self.loads[node[1]] if node[0] == "load" else super().expression(node)


def point(formula, dtypes, loads):
    """Return the text of a map for one element: functions, statements, and the result.

    Parameters
    ----------
    formula : Formula
        A map with one result.
    dtypes : tuple of int
        Codes of the loads.
    loads : tuple of str
        C++ expressions of the loads, each a number of type C, or bool for an operand of bools.

    Examples
    --------
    >>> from gputensor._kernels.formula import formula
    >>> made = formula([("add", ("load", 0), ("load", 1))])
    >>> functions, steps, result = point(made, (11, 11), ("x0", "x1"))
    >>> steps
    'const C n0 = x0; const C n1 = x1; const C n2 = op_add(n0, n1);'
    """
    text = _Point(formula, dtypes, loads)
    steps = text.steps(formula.results, set())
    functions = " ".join(text.functions[name] for name in sorted(text.functions))
    return functions, steps, text.value(formula.results[0], False)


def program(formula, variant):
    """Return the program of one variant of a formula.

    Parameters
    ----------
    formula : Formula
    variant : dict
        ``dtypes`` and ``modes`` of the operands and then the results; ``vector units lanes rows
        across cluster loop cached map full ahead fixed column_axes kept_axes`` and
        ``is_double``, as in row.cuh; ``together``: whether late operands are loaded together.

    Examples
    --------
    >>> from gputensor._kernels.formula import formula
    >>> x = ("load", 0)
    >>> variant = dict(dtypes=(11, 11), modes=(0, 0), vector=4, units=2, lanes=32, rows=8, across=0,
    ...                cluster=1, loop=0, cached=0, together=1, map=0, full=0, ahead=0, fixed=0,
    ...                column_axes=1, kept_axes=1, is_double=False)
    >>> made = program(formula([("sub", x, ("fold", "max", x))]), variant)
    >>> dict(made.defines)["FOLDS"]
    1
    """
    text = _Text(formula, variant)
    ahead = text.ahead() if variant["ahead"] else []
    body, known = _body(text)
    results = _results(text, known)
    loads = formula.loads
    types, pointers = [], []
    used = {node[1] for node in formula.nodes if node[0] == "load"}
    for i, (code, mode) in enumerate(zip(variant["dtypes"], variant["modes"], strict=True)):
        if i < loads and i not in used:
            continue
        kind, name, owner = ("const T", "in", i) if i < loads else ("R", "out", i - loads)
        types.append(f"typedef {DTYPES[code].cuda} {kind[-1]}{owner};")
        pointers.append(
            f"{kind}{owner}* {name}{owner} = reinterpret_cast<{kind}{owner}*>(p.operands[{i}]) "
            f"+ to_row(p, {i}, here);"
        )
        if i < loads and mode == CONSTANT:
            pointers.append(f"const T{i} x{i} = in{i}[0];")
    declare = [f"Vector<T{i}, VECTOR> x{i}[UNITS];" for i in text.early]
    load = [text.load(i, f"x{i}[k]", "load_kept") for i in text.early]
    functions = [text.functions[name] for name in sorted(text.functions)]
    functions += [_fold_text(name) for name in sorted({fold[1] for fold in formula.folds})]
    defines = [(name.upper(), int(variant[name])) for name in (
        "vector", "units", "lanes", "rows", "across", "cluster", "loop", "cached", "map", "full",
        "ahead", "column_axes", "kept_axes")]  # fmt: skip
    defines += [("ARITHMETIC", "double" if variant["is_double"] else "float")]
    defines += [("FOLDS", len(formula.folds)), ("FUNCTIONS", " ".join(functions))]
    defines += [("TYPES", " ".join(types)), ("POINTERS", " ".join(pointers))]
    defines += [("DECLARE", " ".join(declare)), ("LOAD", " ".join(load)), ("BODY", body)]
    defines += ahead + results
    minimum = 90 if variant["cluster"] > 1 else 80 if variant["ahead"] or variant["cached"] else 0
    return Program("gputensor/_kernels/cuda/row.cuh", tuple(defines), minimum)
