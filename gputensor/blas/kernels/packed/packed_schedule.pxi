"""Cuts a packed product into tiles and shares, in the way with the shortest estimated time.

Three ways are compared for tiles of 256 and of 128 columns. *whole*: each cluster does whole tiles
in turn, and clusters with one tile less do the strips. *strips*: all clusters share the strips.
*all*: they also share the tiles that do not fill a round of all clusters. Dividing balances the
load, at the cost of exchanging sums.

Times were measured on an H200; on another Hopper GPU they shift choices, not results.
"""

cdef enum:
    CLUSTER_ROWS = 256
    STRIP = 32                  # rows or columns left over that make strips
    PACKED_SCHEDULE_TILE_NBYTES = 128           # of K
    WEIGHT_TILE = 8

cdef enum Way:
    WAY_WHOLE = 0
    WAY_STRIPS = 1
    WAY_ALL = 2

# Microseconds of one step of a tile and of a strip, of writing a tile's result, and of exchanging
# sums where tiles are divided and where only strips are; fitted to measured times.
cdef struct Costs:
    double step
    double strip_step
    double result
    double exchange_tiles
    double exchange_strips


cdef Costs costs_of(int columns) noexcept nogil:
    cdef Costs costs
    if columns == 256:
        costs.step, costs.strip_step, costs.result = 0.64, 0.22, 3.0
        costs.exchange_tiles = 20.0
    else:
        costs.step, costs.strip_step, costs.result = 0.34, 0.27, 1.7
        costs.exchange_tiles = 25.0
    costs.exchange_strips = 15.0
    return costs


cdef void cut(int64_t m, int64_t n, int64_t k, int itemsize, int columns,
              Schedule* schedule) noexcept nogil:
    cdef int64_t left_m = m % CLUSTER_ROWS
    cdef int64_t left_n = n % columns
    cdef bint strip_m = 0 < left_m <= STRIP
    cdef bint strip_n = 0 < left_n <= STRIP
    schedule.columns = columns
    schedule.steps = <int>ceil_divide(k * itemsize, PACKED_SCHEDULE_TILE_NBYTES)
    schedule.line = schedule.steps
    schedule.main_m = <int>(m // CLUSTER_ROWS)
    schedule.main_n = <int>(n // columns)
    schedule.edge_m = schedule.main_n if left_m and not strip_m else 0
    schedule.edge_n = 0
    if left_n and not strip_n:
        schedule.edge_n = schedule.main_m + (1 if left_m and not strip_m else 0)
    schedule.strips_n = <int>ceil_divide(m, CLUSTER_ROWS) if strip_n else 0
    schedule.strips_m = 0
    if strip_m:
        schedule.strips_m = <int>ceil_divide(n - left_n if strip_n else n, CLUSTER_ROWS)
    if columns == 256 and schedule.strips_n + schedule.strips_m:
        schedule.line += schedule.steps & 1
    schedule.tiles_a = ceil_divide(m, 128) * schedule.line
    schedule.tiles_b = ceil_divide(n, 128) * schedule.line


cdef void share(Way way, int clusters, Schedule* schedule) noexcept nogil:
    cdef Costs costs = costs_of(schedule.columns)
    cdef int tiles = (schedule.main_m * schedule.main_n + schedule.edge_m + schedule.edge_n)
    cdef int strips = schedule.strips_n + schedule.strips_m
    cdef int rest = tiles % clusters
    cdef double tile = schedule.steps * costs.step + costs.result
    cdef double strip = schedule.steps * costs.strip_step + costs.result / 4
    cdef double other
    schedule.weight_tile = WEIGHT_TILE
    schedule.weight_strip = <int>(WEIGHT_TILE * costs.strip_step / costs.step + 0.5)
    schedule.whole, schedule.divided, schedule.strips_from = tiles, 0, -1
    schedule.units_tiles = schedule.units = 0
    schedule.cost = ceil_divide(tiles, clusters) * tile
    if way == WAY_WHOLE:
        schedule.strips_from = rest
        other = (tiles // clusters) * tile + ceil_divide(strips, clusters - rest) * strip
        if other > schedule.cost:
            schedule.cost = other
        return
    if way == WAY_ALL:
        schedule.whole, schedule.divided = tiles - rest, rest
        schedule.units_tiles = <int64_t>rest * schedule.steps * schedule.weight_tile
        schedule.cost = (schedule.whole // clusters) * tile + costs.result + (
            rest * schedule.steps * costs.step / clusters)
    schedule.units = schedule.units_tiles + (
        <int64_t>strips * schedule.steps * schedule.weight_strip)
    schedule.cost += (costs.exchange_tiles if way == WAY_ALL else costs.exchange_strips) + (
        strips * schedule.steps * costs.strip_step / clusters)


# Finds the schedule of least estimated cost on a device with this number of clusters.
cdef void schedule_choose(int64_t m, int64_t n, int64_t k, int itemsize, int clusters,
                          Schedule* schedule) noexcept nogil:
    cdef Schedule candidate
    cdef int columns, way
    schedule.cost = -1
    for columns in range(256, 0, -128):
        cut(m, n, k, itemsize, columns, &candidate)
        for way in range(WAY_WHOLE, WAY_ALL + 1):
            share(<Way>way, clusters, &candidate)
            if schedule.cost < 0 or candidate.cost < schedule.cost:
                schedule[0] = candidate
