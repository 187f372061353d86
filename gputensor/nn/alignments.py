"""The loss of connectionist temporal classification: sequences aligned with shorter targets.

Graves et al. (2006): the probability of a target is the sum over all ways to stretch it over the
frames, with blanks between its labels. It is computed with logarithms, frame by frame, for all
sequences at once.
"""

import math

from gputensor._arrays.dtypes import float32, int64, isdtype
from gputensor.errors import Described, argument_error, int_argument
from gputensor.nn.losses import check_reduction
from gputensor.tensor import functions as fn
from gputensor.tensor.core import Tensor, tensor_argument
from gputensor.tensor.interop import asarray, astype
from gputensor.tensor.manipulation import arange, broadcast_to, expand_dims, full, reshape
from gputensor.tensor.manipulation.composed import logaddexp
from gputensor.tensor.manipulation.joining import concat, stack
from gputensor.tensor.manipulation.picking import take_along_axis

__all__ = ["ctc_loss"]

NAME = "ctc_loss"


def _integers(name, value, device):
    """Return lengths or labels as an int64 tensor on `device`."""
    value = value if isinstance(value, Tensor) else asarray(value, device=device)
    if value.size and not isdtype(value.dtype, "integral"):
        got = Described(value.dtype.name)
        raise argument_error(TypeError, f"{NAME}: dtype of {name}", got, "an integer dtype")
    return astype(value, int64, copy=False)


def _lengths(name, value, count, device):
    value = _integers(name, value, device)
    if value.shape not in ((count,), ()) or value.ndim == 0 and count != 1:
        rule = f"({count},), one for each sequence"
        raise argument_error(ValueError, f"{NAME}: shape of {name}", value.shape, rule)
    return reshape(value, (count,))


def _check_known(name, value, most):
    """Refuse lengths above `most`, or below 0, if the host knows them."""
    if isinstance(value, Tensor):
        return
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(one, int) and not 0 <= one <= most:
            raise argument_error(ValueError, f"{NAME}: {name}", one, f"0 to {most}")


def _rows(targets, lengths):
    """Return joined targets as rows of equal length; waits for the device."""
    counts = lengths.tolist()
    if sum(counts) != targets.size or min(counts, default=0) < 0:
        rule = f"numbers of 0 or more with the sum {targets.size}, the size of targets"
        raise argument_error(ValueError, f"{NAME}: target_lengths", counts, rule)
    starts = [sum(counts[:i]) for i in range(len(counts))]
    column = arange(max(counts, default=0), device=targets.device)
    places = expand_dims(asarray(starts, dtype=int64, device=targets.device), 1) + column
    if targets.size == 0:
        return reshape(targets, (len(counts), 0))
    return targets[fn.minimum(places, targets.size - 1)]


def _with_blanks(targets, lengths, blank):
    """Return the labels with blanks around each, and which may follow the label before a blank."""
    count, longest = targets.shape
    is_label = arange(longest, device=targets.device) < expand_dims(lengths, 1)
    labels = fn.where(is_label, targets, blank)
    pairs = stack([full(labels.shape, blank, dtype=int64, device=targets.device), labels], -1)
    ends = full((count, 1), blank, dtype=int64, device=targets.device)
    path = concat([reshape(pairs, (count, 2 * longest)), ends], 1)
    before = concat([full((count, 2), blank, dtype=int64, device=path.device), path], 1)
    return path, fn.logical_and(path != blank, path != before[:, :-2])


def _moved(scores, steps):
    """Return the scores `steps` places before each; before the first there is none."""
    count = scores.shape[0]
    edge = full((count, steps), -math.inf, dtype=scores.dtype, device=scores.device)
    return concat([edge, scores], 1)[:, : scores.shape[1]]


def _forward(frames, path, may_skip, input_lengths):
    """Return the logarithms of the probabilities of all beginnings of the paths."""
    count, places = path.shape
    # Before the first frame, a path stands at its first blank.
    scores = fn.where(arange(places, device=path.device) == 0, 0.0, -math.inf)
    scores = broadcast_to(astype(scores, frames.dtype), (count, places))
    for i in range(frames.shape[0]):
        two = fn.where(may_skip, _moved(scores, 2), -math.inf)
        reached = logaddexp(logaddexp(scores, _moved(scores, 1)), two)
        found = reached + take_along_axis(frames[i], path, 1)
        scores = fn.where(expand_dims(input_lengths > i, 1), found, scores)
    return scores


def _losses(frames, path, may_skip, lengths):
    """Return the loss of each sequence; `lengths` are those of inputs and of targets."""
    input_lengths, target_lengths = lengths
    scores = _forward(frames, path, may_skip, input_lengths)
    end = expand_dims(2 * target_lengths, 1)
    at_label = take_along_axis(scores, fn.maximum(end - 1, 0), 1)
    at_label = fn.where(end > 0, at_label, -math.inf)
    return -logaddexp(take_along_axis(scores, end, 1), at_label)[:, 0]


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean",
    zero_infinity=False,
):  # fmt: skip
    """Return the loss of connectionist temporal classification.

    Parameters
    ----------
    log_probs : Tensor
        Logarithms of probabilities: (frames, sequences, classes), or (frames, classes) of one
        sequence.
    targets : Tensor
        Integers: labels as rows (sequences, labels), or all labels one after another, which waits
        for the device.
    input_lengths, target_lengths : Tensor or sequence of int
        The number of frames and of labels of each sequence. Those of a sequence are checked; those
        of a Tensor must not exceed the extents.
    blank : int
        The class of blanks.
    reduction : {"mean", "sum", "none"}
        "mean" divides each loss by the number of its labels, at least 1, and averages.
    zero_infinity : bool
        Return 0 in place of inf, the loss of targets that do not fit the frames.

    >>> x = gt.log(gt.asarray([[0.25, 0.75], [0.5, 0.5]], device="host"))
    >>> round(ctc_loss(x, gt.asarray([1], device="host"), 2, 1).exp().item() ** -1, 3)
    0.875
    """
    check_reduction(NAME, reduction)
    x = tensor_argument(log_probs, NAME)
    if not isdtype(x.dtype, "real floating") or x.ndim not in (2, 3):
        got = Described(f"{x.dtype.name} with {x.ndim} dimensions")
        raise argument_error(ValueError, f"{NAME}: log_probs", got, "2 or 3 of floats")
    is_single = x.ndim == 2
    frames = expand_dims(x, 1) if is_single else x
    frames = astype(frames, float32) if x.dtype.itemsize == 2 else frames
    count, classes = frames.shape[1:]
    blank = int_argument(f"{NAME}: blank", blank)
    if not 0 <= blank < classes:
        raise argument_error(ValueError, f"{NAME}: blank", blank, f"0 to {classes - 1}")
    targets = _integers("targets", targets, x.device)
    lengths = tuple(
        _lengths(name, value, count, x.device)
        for name, value in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    )
    if targets.ndim == 1:
        targets = reshape(targets, (1, -1)) if is_single else _rows(targets, lengths[1])
    if targets.ndim != 2 or targets.shape[0] != count:
        rule = f"({count}, labels) or one dimension"
        raise argument_error(ValueError, f"{NAME}: shape of targets", targets.shape, rule)
    _check_known("input_lengths", input_lengths, frames.shape[0])
    _check_known("target_lengths", target_lengths, targets.shape[1])
    losses = _losses(frames, *_with_blanks(targets, lengths[1], blank), lengths)
    if zero_infinity:
        losses = fn.where(losses == math.inf, 0.0, losses)
    if reduction == "mean":
        losses = fn.mean(losses / astype(fn.maximum(lengths[1], 1), losses.dtype))
    elif reduction == "sum":
        losses = fn.sum(losses)
    elif is_single:
        losses = losses[0]
    return astype(losses, x.dtype, copy=False)
