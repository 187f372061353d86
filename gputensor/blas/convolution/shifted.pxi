"""Convolution by shifted patches (shifted.cuh): 16-bit floats, one or two axes, on Hopper.

A model of a tile's cost decides its size, how its terms are cut, and which taps share a patch: all
taps whose places differ by whole strides, at the price of positions without results between rows
and images; the taps of a column of the kernel; or none.
"""

from libc.math cimport fmax

cdef enum:
    HOPPER = 90
    SHIFTED_SHARED = 226 << 10  # of a block, beside its barriers
    MOST_TAPS = 64
    FARTHEST = 30000            # places along an axis, in 16 bits
    LEAST_CHANNELS = 32         # of a group: fewer leave most of a chunk empty
    SHARED_BY_PHASE = 0
    SHARED_BY_COLUMN = 1
    SHARED_BY_NONE = 2

# Microseconds, measured on an H200 and fitted to 123 forms of 21 convolutions, of: 64 x 64 sums of
# a chunk; a byte of a patch and of weights; the shortest step; a tile; 128 of its results; a
# cluster. Then how much longer a step takes with 64 outputs and with four stages.
cdef double SUM_COST = .069, BYTE_COST = 3.03e-5, WEIGHT_COST = 1.4e-5, LEAST_COST = .158
cdef double TILE_COST = 1.8, RESULT_COST = .0211, CLUSTER_COST = .93
cdef double FEWER_OUTPUTS = 1.064, FEWER_STAGES = 1.079

cdef struct Reach:              # of taps along an axis, in strides, and the phases they have
    int64_t least
    int64_t most
    int64_t extent              # places of x of the longest phase
    int phases

cdef struct ShiftedKey:
    ConvolutionAxis[2] axes
    int64_t images
    int32_t channels
    int32_t outputs
    int32_t groups
    int32_t multiprocessors

cdef struct ShiftedChoice:      # the form of a convolution, remembered
    ShiftedKey key
    ShiftedForm form
    int is_known
    int fits

cdef struct ShiftedCandidate:
    double cost                 # of shifted_cost; negative: left out
    ShiftedForm form

cdef enum:
    REMEMBERED = 256
    MOST_FORMS = 3 * 2 * 15 * 4     # sharing, outputs, columns, splits

cdef ShiftedChoice[REMEMBERED] shifted_choices     # by hash; used with the GIL held
cdef KernelTable shifted_kernels


cdef inline int64_t floor_of(int64_t a, int64_t b) noexcept nogil:
    """a / b, rounded down."""
    return a // b if a >= 0 else -((b - 1 - a) // b)


cdef Reach reach_along(const ConvolutionAxis* axis, bint is_shared) noexcept nogil:
    cdef Reach reach
    cdef int64_t tap, place, phase, extent
    cdef uint64_t seen = 0
    reach.least = reach.most = reach.extent = reach.phases = 0
    if not is_shared:
        reach.phases = axis.kernel
        return reach
    for tap in range(axis.kernel):
        place = floor_of(tap * axis.dilation - axis.padding, axis.stride)
        phase = tap * axis.dilation - axis.padding - place * axis.stride
        reach.least = place if tap == 0 else min(reach.least, place)
        reach.most = place if tap == 0 else max(reach.most, place)
        extent = (axis.x - phase + axis.stride - 1) // axis.stride
        reach.extent = max(reach.extent, extent)
        if not seen >> phase & 1:
            seen |= <uint64_t>1 << phase
            reach.phases += 1
    return reach


cdef int64_t pitch_along(const ConvolutionAxis* axis, const Reach* reach) noexcept nogil:
    """Count positions of results, and zeros before and after them that taps reach."""
    if reach.least == 0 and reach.most == 0:
        return axis.out
    return max(reach.extent + max(<int64_t>0, -reach.least),
               axis.out + max(<int64_t>0, reach.most))


cdef int fill_taps(ShiftedParameters* s, int sharing) noexcept nogil:
    """Fill pitches and taps, those of a patch one after the other. Returns how many patches."""
    cdef ConvolutionAxis* rows = &s.common.axes[1]
    cdef ConvolutionAxis* columns = &s.common.axes[2]
    cdef Reach down_rows = reach_along(rows, sharing != SHARED_BY_NONE)
    cdef Reach along = reach_along(columns, sharing == SHARED_BY_PHASE)
    cdef int64_t count = 0, height = pitch_along(rows, &down_rows), places = 1
    cdef int64_t first_row, first, i, j, y, x, patches = 0
    cdef ShiftedTap* tap
    cdef bint is_first
    s.pitch = <int32_t>pitch_along(columns, &along)
    s.image = <int32_t>(height * s.pitch)
    s.lead = <int32_t>max(<int64_t>0, -(down_rows.least * s.pitch + along.least))
    for first_row in range(rows.kernel if sharing == SHARED_BY_NONE else rows.stride):
        for first in range(columns.stride if sharing == SHARED_BY_PHASE else columns.kernel):
            is_first = True
            for i in range(rows.kernel):
                y = i * rows.dilation - rows.padding
                if sharing == SHARED_BY_NONE:
                    if i != first_row:
                        continue
                elif y - floor_of(y, rows.stride) * rows.stride != first_row:
                    continue
                for j in range(columns.kernel):
                    x = j * columns.dilation - columns.padding
                    if sharing != SHARED_BY_PHASE:
                        if j != first:
                            continue
                    elif x - floor_of(x, columns.stride) * columns.stride != first:
                        continue
                    tap = &s.tap[count]
                    tap.number, tap.is_first = <int16_t>(i * columns.kernel + j), is_first
                    tap.y = <int16_t>(y if sharing == SHARED_BY_NONE else first_row)
                    tap.x = <int16_t>(first if sharing == SHARED_BY_PHASE else x)
                    places = 0
                    if sharing != SHARED_BY_NONE:
                        places += floor_of(y, rows.stride) * s.pitch
                    if sharing == SHARED_BY_PHASE:
                        places += floor_of(x, columns.stride)
                    tap.shift = <int32_t>(s.lead + places)
                    patches += is_first
                    is_first = False
                    count += 1
    s.taps = <int32_t>count
    return <int>patches


cdef int64_t farthest_shift(const ShiftedParameters* s) noexcept nogil:
    cdef int64_t most = 0
    cdef int i
    for i in range(s.taps):
        most = max(most, <int64_t>s.tap[i].shift)
    return most


cdef inline int64_t patch_of(int64_t rows) noexcept nogil:
    """Return the bytes of a patch, whose swizzle repeats after 8 rows."""
    return (rows + 7) // 8 * 1024


cdef int64_t shifted_nbytes(const ShiftedForm* form, int64_t rows) noexcept nogil:
    return (form.stages * form.outputs * 128 + form.places * patch_of(rows) + SHIFTED_TABLES
            + 2 * form.columns // form.splits * 16 + (rows + 128) * 8)


cdef double shifted_cost(const ShiftedParameters* s, const ShiftedForm* form, int64_t rows,
                         int patches, int multiprocessors) noexcept nogil:
    """Return microseconds on an H200, without the part that is the same for all forms."""
    cdef int64_t across = form.columns * (2 if form.outputs == 64 else 1)
    cdef int64_t tiles = ((s.positions + across - 1) // across
                          * ((s.common.outputs + form.outputs - 1) // form.outputs)
                          * s.common.groups)
    # Clusters of 4 and 8 leave some multiprocessors idle.
    cdef int64_t room = multiprocessors if form.splits < 4 else multiprocessors * 10 // 11
    cdef int64_t rounds = (tiles * form.splits + room - 1) // max(<int64_t>1, room)
    cdef int64_t steps = (s.steps + form.splits - 1) // form.splits
    cdef double sums = SUM_COST * form.outputs * across / 4096
    cdef double copies = (form.outputs * 128 * WEIGHT_COST
                          + <double>rows * 128 * patches / s.taps * BYTE_COST)
    cdef double step = fmax(fmax(sums, copies), LEAST_COST)
    if form.outputs == 64:
        step *= FEWER_OUTPUTS
    if form.stages == 4:
        step *= FEWER_STAGES
    return (rounds * (steps * step + TILE_COST + RESULT_COST * across * form.outputs / 128)
            + (CLUSTER_COST if form.splits > 1 else 0))


cdef bint choose_rings(ShiftedForm* form, int64_t rows, bint is_one) noexcept nogil:
    """Choose stages and places that fit; `is_one` tells whether one patch serves several taps.

    Otherwise a third place gains more than more stages (256 -> 256 at stride 2, 28 x 28, batch 256:
    144 us with two places, 118 with three, 121 with three and four stages instead of six).
    """
    cdef int most = 2 if is_one else 4
    form.stages, form.splits, form.places = 6, 1, most
    while form.places > min(most, 3) and shifted_nbytes(form, rows) > SHIFTED_SHARED:
        form.places -= 1
    if shifted_nbytes(form, rows) > SHIFTED_SHARED:
        form.stages, form.places = 4, most
    while form.places > 2 and shifted_nbytes(form, rows) > SHIFTED_SHARED:
        form.places -= 1
    return shifted_nbytes(form, rows) <= SHIFTED_SHARED


cdef int list_shifted(ShiftedCandidate* found, const ShiftedForm* given, ShiftedParameters* s,
                      int64_t images, int multiprocessors) noexcept nogil:
    """Store all forms that fit, with their costs. Returns their number."""
    cdef ShiftedForm tried = given[0]
    cdef ShiftedParameters plan
    cdef int64_t rows, tail
    cdef int sharing, patches, columns, count = 0
    for sharing in range(3):
        if sharing and s.common.axes[1].kernel * s.common.axes[2].kernel == 1:
            break
        plan = s[0]
        patches = fill_taps(&plan, sharing)
        plan.positions = images * plan.image
        plan.steps = plan.taps * ((s.common.channels + 63) // 64)
        if (plan.positions > 0x7fffffff
                or plan.image // plan.pitch * s.common.axes[1].stride > FARTHEST
                or <int64_t>plan.pitch * s.common.axes[2].stride > FARTHEST):
            continue
        tail = farthest_shift(&plan)
        tried.sharing = sharing
        for tried.outputs in range(64, 129, 64):
            if tried.outputs == 128 and s.common.outputs <= 64:
                break
            for columns in range(32, 257, 16):
                tried.columns = columns
                rows = columns * (2 if tried.outputs == 64 else 1) + tail
                if not choose_rings(&tried, rows, patches == 1 and plan.taps > 1):
                    continue
                while tried.splits <= 8 and columns // 8 % tried.splits == 0 and (
                        tried.splits <= plan.steps):
                    found[count].cost = shifted_cost(&plan, &tried, rows, patches, multiprocessors)
                    found[count].form = tried
                    count += 1
                    tried.splits *= 2
    return count


cdef int cheapest_of(const ShiftedCandidate* found, int count) noexcept nogil:
    """Return the place of the first form of least cost; -1 where all costs are negative."""
    cdef int place, best = -1
    for place in range(count):
        if found[place].cost >= 0 and (best < 0 or found[place].cost < found[best].cost):
            best = place
    return best


cdef bint choose_shifted(ShiftedForm* form, ShiftedParameters* s, int64_t images,
                         int multiprocessors) noexcept nogil:
    """Choose the form of least cost. Returns False where none fits."""
    cdef ShiftedCandidate[MOST_FORMS] found
    cdef int best = cheapest_of(found, list_shifted(found, form, s, images, multiprocessors))
    if best >= 0:
        form[0] = found[best].form
    return best >= 0


cdef int take_form_at_hand(ShiftedForm* form, ShiftedParameters* s, int64_t images, int device,
                           object has) except -1:
    """Choose the form of least cost whose program `has` accepts. Without one, `form` stays."""
    cdef ShiftedCandidate[MOST_FORMS] found
    cdef int best, count
    count = list_shifted(found, form, s, images, max(1, device_facts(device).multiprocessors))
    while True:
        best = cheapest_of(found, count)
        if best < 0:
            return 0
        if has(shifted_program(&found[best].form)):
            form[0] = found[best].form
            return 0
        found[best].cost = -1


cdef bint remembered_form(ShiftedForm* form, ShiftedParameters* s, int64_t images,
                          int multiprocessors) noexcept:
    """Call `choose_shifted`, which takes some microseconds, once for each convolution."""
    cdef ShiftedKey key
    cdef ShiftedChoice* known
    cdef uint64_t hashed = 0
    cdef size_t i
    memset(&key, 0, sizeof(key))
    key.axes[0], key.axes[1], key.images = s.common.axes[1], s.common.axes[2], images
    key.channels, key.outputs = s.common.channels, s.common.outputs
    key.groups, key.multiprocessors = s.common.groups, multiprocessors
    for i in range(sizeof(key) // 8):
        hashed = (hashed ^ (<uint64_t*>&key)[i]) * <uint64_t>0x9e3779b97f4a7c15
    known = &shifted_choices[hashed >> 56]
    if not known.is_known or memcmp(&known.key, &key, sizeof(key)) != 0:
        known.key, known.form, known.is_known = key, form[0], True
        known.fits = choose_shifted(&known.form, s, images, multiprocessors)
    form.outputs, form.columns = known.form.outputs, known.form.columns
    form.stages, form.places = known.form.stages, known.form.places
    form.splits, form.sharing = known.form.splits, known.form.sharing
    return known.fits


cdef bint shifted_plan(ShiftedForm* form, ShiftedParameters* s, int64_t images,
                       int multiprocessors) noexcept:
    """Fill the form and all parameters that follow from it. Returns False where none fits."""
    if not remembered_form(form, s, images, multiprocessors):
        return False
    return shifted_follow(form, s, images)


cdef bint shifted_follow(const ShiftedForm* form, ShiftedParameters* s,
                         int64_t images) noexcept nogil:
    """All parameters that follow from a form. Returns False where there are too many tiles."""
    cdef int64_t columns, tiles
    fill_taps(s, form.sharing)
    s.positions = images * s.image
    s.steps = s.taps * ((s.common.channels + 63) // 64)
    columns = form.columns * (2 if form.outputs == 64 else 1)
    s.rows = <int32_t>(columns + farthest_shift(s))
    s.patch = <int32_t>patch_of(s.rows)
    s.common.column_tiles = (s.common.outputs + form.outputs - 1) // form.outputs
    s.common.steps = (s.steps + form.splits - 1) // form.splits
    tiles = (s.positions + columns - 1) // columns * s.common.column_tiles * s.common.groups
    s.tiles = <uint32_t>tiles
    return tiles * form.splits <= 0x7fffffff


cdef bint shifted_plan_on(int device, ShiftedForm* form, ShiftedParameters* s,
                          int64_t images) except -1:
    """Choose the form on a device; a phantom GPU may prefer forms whose program is available."""
    if not remembered_form(form, s, images, max(1, device_facts(device).multiprocessors)):
        return False
    if programs_at_hand and device in programs_at_hand:
        take_form_at_hand(form, s, images, device, programs_at_hand[device])
    return shifted_follow(form, s, images)


# Number of a phantom GPU -> a function that returns whether a program's kernel is available.
cdef dict programs_at_hand = {}


def plan_phantom_among(int device, has):
    """Make a phantom GPU prefer kernels whose program `has` accepts; None means the cheapest ones.

    `has` is called where many forms of one kernel have similar costs.
    """
    if has is None:
        programs_at_hand.pop(device, None)
    else:
        programs_at_hand[device] = has


cdef int shifted_fits(const Convolution* given, int device) except -1:
    cdef int64_t taps = 1
    cdef int axis
    if device_facts(device).capability != HOPPER or not dtype_is_half(given.x.dtype):
        return False
    if device_facts(device).shared_nbytes <= SHIFTED_SHARED or given.x.ndim > 4:
        return False
    for axis in range(2, given.x.ndim):
        taps *= given.weight.shape[axis]
        if (given.x.shape[axis] > FARTHEST or given.weight.shape[axis] > MOST_TAPS
                or given.stride[5 - given.x.ndim + axis - 2] > MOST_TAPS
                or given.dilation[5 - given.x.ndim + axis - 2] > FARTHEST // MOST_TAPS
                or given.padding[5 - given.x.ndim + axis - 2] > FARTHEST):
            return False
    return (taps <= MOST_TAPS and given.weight.shape[1] >= LEAST_CHANNELS
            and given.weight.shape[0] // given.groups >= LEAST_CHANNELS)


cdef object shifted_program(const void* variant):
    cdef const ShiftedForm* form = <const ShiftedForm*>variant
    return convolution_programs.shifted(
        form.dtype, form.activation, (form.outputs, form.columns), stages=form.stages,
        places=form.places, splits=form.splits, is_vectored=bool(form.is_vectored))


cdef int shifted_launch(int device, uint64_t stream, ShiftedParameters* s,
                        ShiftedForm* form) except -1:
    cdef Launch launch
    cdef uint64_t key = (form.dtype << 3 | form.activation) << 5 | form.columns // 16
    cdef int64_t blocks = <int64_t>s.tiles * form.splits
    key = ((key << 1 | (form.outputs == 64)) << 1 | (form.stages == 4)) << 3 | form.places
    key = (key << 4 | form.splits) << 1 | form.is_vectored
    if form.splits == 1:
        blocks = min(blocks, <int64_t>max(1, device_facts(device).multiprocessors))
    launch_init(&launch, device, stream, <uint32_t>blocks, 384, s, sizeof(s[0]))
    launch.shared_nbytes = <uint32_t>shifted_nbytes(form, s.rows)
    launch.most_shared_nbytes = SHIFTED_SHARED
    return launch_kernel(kernel_of(&shifted_kernels, key, shifted_program, form), &launch)


cdef int SHIFTED_TABLES = convolution_programs.SHIFTED_TABLES
