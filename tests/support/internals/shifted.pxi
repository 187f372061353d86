"""The plans of a convolution by shifted patches and by tensor maps."""


def shifted(x, weight, out, stride, padding, dilation, groups, multiprocessors):
    """Return the kernel's parameters for these operands as a dict, or None if it does not fit.

    Parameters
    ----------
    x, weight, out : tuple
        ``(address, dtype code, shape, strides)`` with two spatial axes, strides in elements.
    stride, padding, dilation : (int, int)
    groups, multiprocessors : int
    """
    cdef Operand x_operand, weight_operand, out_operand
    cdef Convolution given
    cdef ShiftedParameters s
    cdef ShiftedForm form
    cdef int axis
    read_operand(x, &x_operand)
    read_operand(weight, &weight_operand)
    read_operand(out, &out_operand)
    memset(&given, 0, sizeof(given))
    memset(&s, 0, sizeof(s))
    memset(&form, 0, sizeof(form))
    given.x, given.weight, given.out = &x_operand, &weight_operand, &out_operand
    given.groups = groups
    given.stride[0] = given.dilation[0] = 1
    for axis in range(2):
        given.stride[1 + axis], given.padding[1 + axis] = stride[axis], padding[axis]
        given.dilation[1 + axis] = dilation[axis]
    convolution_parameters(&s.common, &given)
    if not shifted_plan(&form, &s, x_operand.shape[0], multiprocessors):
        return None
    return {
        "outputs": form.outputs, "columns": form.columns, "stages": form.stages,
        "places": form.places, "splits": form.splits, "sharing": form.sharing,
        "positions": s.positions, "pitch": s.pitch, "image": s.image, "lead": s.lead,
        "rows": s.rows, "patch": s.patch, "steps": s.steps, "tiles": s.tiles,
        "column_tiles": s.common.column_tiles, "each": s.common.steps,
        "taps": [(s.tap[i].shift, s.tap[i].number, s.tap[i].is_first, s.tap[i].y, s.tap[i].x)
                 for i in range(s.taps)],
    }


def mapped(images, channels, outputs, extents, kernel, multiprocessors, shared_nbytes):
    """Return the plan of a convolution by tensor maps, or None if no form fits.

    Parameters
    ----------
    images, channels, outputs : int
    extents, kernel : (int, int)
        Results of an image, and taps.
    multiprocessors, shared_nbytes : int
    """
    cdef MappedParameters m
    cdef MappedForm form
    memset(&m, 0, sizeof(m))
    memset(&form, 0, sizeof(form))
    m.common.channels, m.common.outputs = channels, outputs
    m.common.pixels = images * extents[0] * extents[1]
    m.common.axes[1].kernel, m.common.axes[2].kernel = kernel
    if not mapped_plan(&form, &m, multiprocessors, shared_nbytes):
        return None
    return {
        "outputs": form.outputs, "columns": form.columns, "stages": form.stages,
        "splits": form.splits, "blocks": form.blocks, "steps": m.steps, "tiles": m.tiles,
        "column_tiles": m.common.column_tiles, "each": m.common.steps,
    }
