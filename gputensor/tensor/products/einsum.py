"""Contractions of more than two dimensions, as sequences of batched matrix products.

A contraction of two operands permutes each to (batch, kept, summed), folds each group into one
dimension, multiplies, and unfolds. Permutations are views; folding copies only what strides cannot
express. ``einsum`` takes the order of contractions from opt_einsum if that is installed, and
otherwise contracts from left to right.
"""

import contextlib
import functools
import importlib.util
import math
import operator
import string
from typing import NamedTuple

from gputensor._arrays.promotion import result_type
from gputensor.errors import int_argument, plain_int
from gputensor.tensor.core import Tensor, refusal, spellings
from gputensor.tensor.functions import sum as sum_over
from gputensor.tensor.interop import astype
from gputensor.tensor.interop.arrays import tensors
from gputensor.tensor.manipulation import diagonal_view, permute_dims, reshape
from gputensor.tensor.products import matmul

__all__ = ["einsum", "tensordot"]


# The letter of each number of an index, in alphabetical order.
LETTERS = "".join(sorted(string.ascii_letters))


@spellings(dims="axes")
def tensordot(x1, x2, /, axes=2, *, precision=None):
    """Return the sums of products over pairs of axes.

    Parameters
    ----------
    x1, x2 : Tensor
    axes : int or pair of sequences of int
        A number N pairs the last N axes of `x1` with the first N of `x2`, in order. Two sequences
        list the axes of each, paired in order.
    precision : str or Precision, optional
        As in :func:`matmul`.

    Returns
    -------
    Tensor
        It has the remaining axes of `x1`, then those of `x2`.

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.tensordot(gt.ones((2, 3, 4)), gt.ones((3, 4, 5))).shape
    (2, 5)
    """
    for name, value in (("x1", x1), ("x2", x2)):
        if not isinstance(value, Tensor):
            text = f"tensordot: {name}: got {type(value).__name__}; expected a Tensor"
            raise refusal(text, value)
    left, right = _axis_pairs(x1, x2, axes)
    for i, j in zip(left, right, strict=True):
        if x1.shape[i] != x2.shape[j]:
            raise ValueError(
                f"tensordot: axes: got axis {i} of {x1.shape} and axis {j} of {x2.shape}; "
                "expected equal lengths"
            )
    kept_left = [axis for axis in range(x1.ndim) if axis not in left]
    kept_right = [axis for axis in range(x2.ndim) if axis not in right]
    shape_left = tuple(x1.shape[axis] for axis in kept_left)
    shape_right = tuple(x2.shape[axis] for axis in kept_right)
    inner = math.prod(x1.shape[axis] for axis in left)
    a = reshape(permute_dims(x1, (*kept_left, *left)), (math.prod(shape_left), inner))
    b = reshape(permute_dims(x2, (*right, *kept_right)), (inner, math.prod(shape_right)))
    return reshape(matmul(a, b, precision=precision), shape_left + shape_right)


def _axis_pairs(x1, x2, axes):
    """Return the axes to sum over, non-negative, one list for each operand."""
    with contextlib.suppress(TypeError):
        axes = operator.index(axes)
    if isinstance(axes, int):
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            raise ValueError(f"tensordot: axes: got {axes}; expected 0 to {min(x1.ndim, x2.ndim)}")
        return list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    try:
        first, second = (plain_int(one) for one in axes)
        if isinstance(first, int) and isinstance(second, int):
            first, second = (first,), (second,)
        left, right = ([operator.index(axis) for axis in one] for one in (first, second))
    except (TypeError, ValueError):
        raise TypeError(
            f"tensordot: axes: got {axes!r}; expected an int or a pair of sequences of ints"
        ) from None
    if len(left) != len(right):
        raise ValueError(
            f"tensordot: axes: got {len(left)} and {len(right)} axes; expected equally many"
        )
    for which, tensor in ((left, x1), (right, x2)):
        for position, axis in enumerate(which):
            if not -tensor.ndim <= axis < tensor.ndim:
                raise ValueError(
                    f"tensordot: axes: got axis {axis}; expected one of {tensor.shape}"
                )
            which[position] = axis % tensor.ndim
        if len(set(which)) != len(which):
            raise ValueError(f"tensordot: axes: got {which}; expected each axis once")
    return left, right


def einsum(subscripts, /, *operands, optimize=True, precision=None):
    """Return the sums of products of operands over the indices that the result lacks.

    Parameters
    ----------
    subscripts : str
        ``"ij,jk->ik"``: one group of letters for each operand, and after the arrow the letters of
        the result; without an arrow, these are the letters that occur once, in alphabetical order.
        ``...`` means the dimensions that broadcast. A letter that occurs twice in an operand, with
        equal lengths, selects its diagonal. Or each operand is followed by a list of its indices,
        ints from 0 to 51 or ``...``, and the last list is that of the result.
    *operands : Tensor
    optimize : bool or str
        The order of contractions for three or more operands: True lets opt_einsum choose (left to
        right if it is missing), False is left to right, a string names a strategy of opt_einsum.
        A path, as `einsum_path` returns it, has the meaning of True.
    precision : str or Precision, optional
        As in :func:`matmul`.

    Examples
    --------
    >>> import gputensor as gt
    >>> gt.einsum("bij,bjk->bik", gt.ones((5, 2, 3)), gt.ones((5, 3, 4))).shape
    (5, 2, 4)
    >>> float(gt.einsum("ii", gt.ones((3, 3))))
    3.0
    """
    if isinstance(subscripts, Tensor):
        subscripts, operands = _lettered((subscripts, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])  # as PyTorch accepts them
    if not isinstance(subscripts, str):
        raise TypeError(f"einsum: subscripts: got {type(subscripts).__name__}; expected a str")
    if isinstance(optimize, (list, tuple)):  # a path of NumPy's einsum_path
        optimize = True
    if not isinstance(optimize, bool | str):
        raise TypeError(f"einsum: optimize: got {type(optimize).__name__}; expected a bool or str")
    if any(isinstance(operand, (list, tuple)) for operand in operands):
        operands = tensors(operands)
    for operand in operands:
        if not isinstance(operand, Tensor):
            text = f"einsum: operand: got {type(operand).__name__}; expected a Tensor"
            raise refusal(text, operand)
    plan = _plan(subscripts, tuple([one.shape for one in operands]), optimize)
    dtypes = {operand.dtype for operand in operands}
    if len(dtypes) > 1 and not any(one.kind == "V" and one.itemsize == 1 for one in dtypes):
        # Sums over the indices of one operand would be in its own dtype.
        dtype = result_type(*dtypes)
        operands = [astype(operand, dtype, copy=False) for operand in operands]
    work = list(map(_made, operands, plan.operands))
    for pair in plan.pairs:
        a, b = work[pair.left], work[pair.right]
        del work[max(pair.left, pair.right)], work[min(pair.left, pair.right)]
        value = matmul(_made(a, pair.rows), _made(b, pair.columns), precision=precision)
        work.append(_made(value, pair.result))
    (value,) = work
    value = _made(value, plan.result)
    return value[()] if value is operands[0] else value


def _made(tensor, operations):
    for function, argument in operations:
        tensor = function(tensor, argument)
    return tensor


class _Pair(NamedTuple):
    """One contraction: the operands' places, and operations on them and on their product."""

    left: int
    right: int
    rows: list
    columns: list
    result: list


class _Plan(NamedTuple):
    """Pairs of a function and its argument: for the operands, and for the last value."""

    operands: list
    pairs: list
    result: list


@functools.lru_cache(maxsize=512)
def _plan(subscripts, shapes, optimize):
    """Return the _Plan for operands of given shapes."""
    terms, result = _parse(subscripts, shapes)
    _check_lengths(terms, shapes)
    work, pairs = [_View(*one) for one in zip(terms, shapes, strict=True)], []
    for place, view in enumerate(work):
        others = terms[:place] + terms[place + 1 :]
        view.take_diagonals()
        view.sum_except(set(result).union(*others))
    operands = [view.operations for view in work]
    for i, j in _order(terms, result, shapes, optimize):
        a, b = (_View(work[k].labels, work[k].shape) for k in (i, j))
        del work[max(i, j)], work[min(i, j)]
        value = _contracted(a, b, set(result).union(*(view.labels for view in work)))
        pairs.append(_Pair(i, j, a.operations, b.operations, value.operations))
        work.append(_View(value.labels, value.shape))
    (last,) = work
    if not pairs:
        last = _View(last.labels, last.shape)
    last.sum_except(set(result))
    last.order(result)
    return _Plan(operands, pairs, last.operations)


def _diagonal(tensor, axes):
    return diagonal_view(tensor, *axes)


def _total(tensor, axes):
    return sum_over(tensor, axis=axes, dtype=tensor.dtype)


class _View:
    """A tensor of a plan: its labels and lengths, and the operations that change it."""

    def __init__(self, labels, shape):
        self.labels, self.shape, self.operations = list(labels), list(shape), []

    def lengths(self, labels):
        return [self.shape[self.labels.index(label)] for label in labels]

    def take_diagonals(self):
        """Take the diagonal for labels that occur more than once."""
        for label in [x for x in dict.fromkeys(self.labels) if self.labels.count(x) > 1]:
            while self.labels.count(label) > 1:
                first = self.labels.index(label)
                second = self.labels.index(label, first + 1)
                self.operations.append((_diagonal, (first, second)))
                del self.labels[second], self.shape[second]

    def sum_except(self, needed):
        """Sum over the labels that are no longer needed."""
        axes = tuple(axis for axis, label in enumerate(self.labels) if label not in needed)
        if axes:
            self.operations.append((_total, axes))
            for axis in reversed(axes):
                del self.labels[axis], self.shape[axis]

    def squeeze(self, label):
        """Leave out a label of length 1."""
        axis = self.labels.index(label)
        del self.labels[axis], self.shape[axis]
        self.operations.append((reshape, tuple(self.shape)))

    def order(self, labels):
        if labels != self.labels:
            self.operations.append(
                (permute_dims, tuple([self.labels.index(label) for label in labels]))
            )
            self.labels, self.shape = list(labels), self.lengths(labels)

    def fold(self, shape):
        if shape != self.shape:
            self.operations.append((reshape, tuple(shape)))
            self.shape = shape


def _lettered(given):
    """Return subscripts and operands for operands that alternate with lists of indices."""
    lists = list(given[1::2])
    if len(given) % 2:
        lists.append(given[-1])
    for one in lists:
        if isinstance(one, str) or not hasattr(one, "__iter__") or isinstance(one, Tensor):
            raise TypeError(
                f"einsum: indices: got {type(one).__name__}; expected a list of ints after each "
                "operand"
            )
    lists = [[x if x is ... else int_argument("einsum: indices", x) for x in one] for one in lists]
    wrong = [x for one in lists for x in one if x is not Ellipsis and not 0 <= x < len(LETTERS)]
    if wrong:
        raise ValueError(f"einsum: indices: got {wrong[0]}; expected 0 to {len(LETTERS) - 1}")
    terms = ["".join("..." if x is Ellipsis else LETTERS[x] for x in one) for one in lists]
    result = "->" + terms.pop() if len(given) % 2 else ""
    return ",".join(terms) + result, given[: 2 * len(terms) : 2]


def _parse(subscripts, shapes):
    """Return the labels of each operand and of the result; broadcast dimensions have int labels."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"einsum: subscripts: got {len(terms)} terms in {subscripts!r}; expected "
            f"{len(shapes)}, one for each operand"
        )
    parsed = [
        _labels(term, len(shape), subscripts) for term, shape in zip(terms, shapes, strict=True)
    ]
    broadcast = max((sum(isinstance(x, int) for x in term) for term in parsed), default=0)
    ellipsis = list(range(-broadcast, 0))
    letters = [label for term in parsed for label in term if isinstance(label, str)]
    if not arrow:
        return parsed, ellipsis + sorted(x for x in set(letters) if letters.count(x) == 1)
    result = []
    for label in output.replace("...", "."):
        result += ellipsis if label == "." else [label]
    if len(set(result)) != len(result):
        raise ValueError(
            f"einsum: subscripts: got {subscripts!r}; expected each index of the result once"
        )
    unknown = [x for x in result if isinstance(x, str) and x not in letters]
    if unknown:
        raise ValueError(
            f"einsum: subscripts: got {subscripts!r}; expected an operand with {', '.join(unknown)}"
        )
    return parsed, result


def _labels(term, ndim, subscripts):
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise ValueError(
            f"einsum: subscripts: got {term!r} in {subscripts!r}; expected letters only"
        )
    count = ndim - len(before) - len(after)
    if count < 0 or (count and not dots):
        raise ValueError(
            f"einsum: subscripts: got the term {term!r}; expected one index for each of the "
            f"{ndim} dimensions of its operand"
        )
    return [*before, *range(-count, 0), *after]


def _check_lengths(terms, shapes):
    """Check that an index has one length, or 1 to broadcast, and equal lengths in an operand."""
    lengths = {}
    for term, shape in zip(terms, shapes, strict=True):
        own = {}
        for label, length in zip(term, shape, strict=True):
            if own.setdefault(label, length) != length:
                raise ValueError(
                    f"einsum: operands: got lengths {own[label]} and {length} for index {label!r} "
                    f"in shape {shape}; expected equal lengths"
                )
            known = lengths.setdefault(label, length)
            if known == 1:
                lengths[label] = length
            elif length not in (1, known):
                raise ValueError(
                    f"einsum: operands: got lengths {known} and {length} for index {label!r}; "
                    "expected equal lengths"
                )


def _order(terms, result, shapes, optimize):
    """Return pairs of positions to contract; each result is appended to the list."""
    count = len(shapes)
    if count < 3 or optimize is False or importlib.util.find_spec("opt_einsum") is None:
        # From the second pair on, the last entry is the result so far.
        return [(0, 1)] + [(count - k, 0) for k in range(2, count)] if count > 1 else []
    import opt_einsum

    letters = {
        label: opt_einsum.get_symbol(i)
        for i, label in enumerate(dict.fromkeys(label for term in terms for label in term))
    }
    text = ",".join("".join(letters[label] for label in term) for term in terms)
    text += "->" + "".join(letters[label] for label in result)
    strategy = "auto" if optimize is True else optimize
    try:
        opt_einsum.paths.get_path_fn(strategy)
    except KeyError:
        raise ValueError(
            f"einsum: optimize: got {optimize!r}; expected a strategy of opt_einsum"
        ) from None
    path, _ = opt_einsum.contract_path(
        text, *shapes, shapes=True, optimize=strategy, memory_limit=None
    )
    pairs = []
    left = count
    for step in path:
        # A step with three or more operands is done in pairs; each result goes to the end.
        step = sorted(step)
        while len(step) > 1:
            i, j = step[0], step[1]
            pairs.append((i, j))
            left -= 1
            step = [x - (x > i) - (x > j) for x in step[2:]] + [left - 1]
    return pairs


def _contracted(a, b, needed):
    """Make two views the operands of a matrix product, and return the view of its result."""
    shared = [x for x in a.labels if x in b.labels]
    # A dimension of length 1 against a longer one broadcasts: it belongs to the longer operand.
    for label in list(shared):
        (length_a,), (length_b,) = a.lengths([label]), b.lengths([label])
        if length_a != length_b:
            shared.remove(label)
            (a if length_a == 1 else b).squeeze(label)
    batch = [x for x in shared if x in needed]
    inner = [x for x in shared if x not in needed]
    a.sum_except(needed | set(shared))
    b.sum_except(needed | set(shared))
    rows = [x for x in a.labels if x not in shared]
    columns = [x for x in b.labels if x not in shared]
    batch_shape, row_shape, column_shape = a.lengths(batch), a.lengths(rows), b.lengths(columns)
    terms = math.prod(a.lengths(inner))
    a.order(batch + rows + inner)
    b.order(batch + inner + columns)
    a.fold([*batch_shape, math.prod(row_shape), terms])
    b.fold([*batch_shape, terms, math.prod(column_shape)])
    value = _View(batch + rows + columns, batch_shape + row_shape + column_shape)
    if value.shape != [*batch_shape, math.prod(row_shape), math.prod(column_shape)]:
        value.operations.append((reshape, tuple(value.shape)))
    return value
