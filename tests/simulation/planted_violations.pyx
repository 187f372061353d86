# distutils: language = c++
"""Breaks the allocator's accounting on purpose, one invariant at a time, for test_debug_build.py.

`plant(device, what)` changes one figure or link of a device that holds objects of every kind, and
`plant(device, what, -1)` restores it. No pointer that the next operation follows is left dangling.
"""

from gputensor._alloc.allocator cimport allocator_find
from gputensor._alloc.model cimport (
    BLOCK_ALLOCATED,
    BLOCK_FREE,
    BLOCK_HELD,
    BLOCK_PENDING,
    FLOW_BYTES,
    FLOW_COUNT,
    FLOW_REQUESTED,
    FLOW_SPLIT_BYTES,
    STAT_RESERVED_BYTES,
    STAT_SEGMENT,
    Block,
    DeviceAllocator,
    Page,
    Segment,
    ThreadCache,
)
from gputensor._alloc.core cimport device_lock, device_unlock

KINDS = {
    "a tile that is too long": "does not touch its next tile",
    "a tile of the wrong size": "not a multiple of 512",
    "a tile of another device": "wrong segment, pool or device",
    "a request larger than its tile": "what was requested does not fit",
    "a held tile in a bin": "is in a bin that is not its own",
    "a wrong split flag": "is_split and its neighbours disagree",
    "a bin without its row bit": "row 0 and its columns disagree",
    "bytes in bins": "bins of stream",
    "a page elsewhere": "says it is mapped at",
    "bytes in a segment": "mapped are",
    "a segment with a late last free": "its last free comes after",
    "a lost hole": "holes are not in its list",
    "bytes of the page pool": "the page pool holds",
    "bytes being made without a maker": "nobody makes memory",
    "pages with a wrong moving cost": "moving pages has cost",
    "reserved bytes": "reserved bytes: ",
    "reserved bytes of a pool": "reserved bytes of a private pool",
    "a pool's scopes": "scopes of a private pool",
    "retired pools": "private pools without holder",
    "allocated bytes": "allocated bytes: ",
    "allocations": "allocation: ",
    "requested bytes": "requested bytes: ",
    "split bytes": "inactive split bytes: ",
    "segments": "segment: ",
    "pending blocks": "active: ",
    "oversize blocks": "oversize blocks: ",
    "oversize segments": "oversize segments: ",
    "a free block that counts as oversize": "it counts as oversize",
    "a wait that is in no queue": "waits of pending blocks",
    "a peak below the current value": "at most",
    "a budget over the peak": "the budgets are",
    "a cached block that is not there": "a cache holds",
    "a view's uses": "uses, counted",
    "a view's bytes": "its pages have",
    "a view too many": "views in the list",
    "a page's views": "views and counts",
    "a part without its flag": "its part at",
    "a part elsewhere": "its parts are not what is mapped there",
}


cdef Block* _in_state(Segment* segment, int state) noexcept nogil:
    cdef Block* block = segment.first
    while block.state != state or block.is_part:
        block = block.next
    return block


cdef Page* _first_page(Segment* segment) noexcept nogil:
    cdef size_t cell = 0
    while segment.pages[cell] == NULL:
        cell += 1
    return segment.pages[cell]


cdef ThreadCache* _cache(DeviceAllocator* a) noexcept nogil:
    cdef ThreadCache* cache = a.caches
    while cache.cached_count == 0:
        cache = cache.next
    return cache


cdef Block* _hidden_hole = NULL


# Swaps the list of holes with an empty one, or swaps it back.
cdef void _hide_holes(Segment* segment) noexcept nogil:
    global _hidden_hole
    cdef Block* holes = segment.holes
    segment.holes = _hidden_hole
    _hidden_hole = holes


cdef void _plant_tile(DeviceAllocator* a, str what, int sign):
    cdef Segment* segment = a.pools[0].segments
    cdef Block* held = _in_state(segment, BLOCK_ALLOCATED)
    cdef Block* loose
    if what == "a tile that is too long":
        held.nbytes += sign * 512
    elif what == "a tile of the wrong size":
        held.nbytes += sign * 8
    elif what == "a tile of another device":
        held.device -= sign
    elif what == "a request larger than its tile":
        held.requested += sign * (1 << 30)
    elif what == "a held tile in a bin":
        loose = _in_state(segment, BLOCK_FREE if sign > 0 else BLOCK_HELD)
        loose.state = BLOCK_HELD if sign > 0 else BLOCK_FREE
    elif what == "a wrong split flag":
        _in_state(segment, BLOCK_FREE).is_split = sign > 0
    elif what == "a free block that counts as oversize":
        _in_state(segment, BLOCK_FREE).is_oversize = sign > 0
    elif what == "a bin without its row bit":
        a.pools[0].streams.bins.rows ^= 1
    elif what == "bytes in bins":
        a.pools[0].streams.free_nbytes += sign * 512
    elif what == "a page elsewhere":
        _first_page(segment).va += sign * 512
    elif what == "bytes in a segment":
        segment.mapped += sign * 512
    elif what == "a segment with a late last free":
        segment.idle_since = 1 << 62 if sign > 0 else 0
    elif what == "a lost hole":
        _hide_holes(segment)


cdef void _plant_count(DeviceAllocator* a, str what, int sign):
    if what == "bytes of the page pool":
        a.page_pool_nbytes += sign * 512
    elif what == "pages with a wrong moving cost":
        a.moving_us += sign * 1e12
    elif what == "bytes being made without a maker":
        a.making_nbytes += sign * 512
    elif what == "reserved bytes":
        a.stats[STAT_RESERVED_BYTES][2].current -= sign * 512
    elif what == "reserved bytes of a pool":
        a.private_pools.reserved[0].current -= sign * 512
    elif what == "a pool's scopes":
        a.private_pools.scopes += sign
    elif what == "retired pools":
        a.retired_pools += sign
    elif what == "allocated bytes":
        a.counters[0].gone[FLOW_BYTES] += sign * 512
    elif what == "allocations":
        a.counters[0].gone[FLOW_COUNT] += sign
    elif what == "requested bytes":
        a.counters[0].gone[FLOW_REQUESTED] += sign
    elif what == "split bytes":
        a.counters[0].gone[FLOW_SPLIT_BYTES] += sign * 512
    elif what == "segments":
        a.stats[STAT_SEGMENT][1].current += sign
    elif what == "pending blocks":
        a.pending_sums[FLOW_COUNT][0] -= sign
    elif what == "oversize blocks":
        a.oversize_allocations.current += sign
    elif what == "oversize segments":
        a.oversize_segments.current += sign
    elif what == "a wait that is in no queue":
        _in_state(a.pools[0].segments, BLOCK_PENDING).waits += sign
    elif what == "a peak below the current value":
        a.stats[STAT_RESERVED_BYTES][0].peak -= sign * (1 << 40)
    elif what == "a budget over the peak":
        a.counters[0].budgets[0] += sign * (<long long>1 << 40)
    elif what == "a cached block that is not there":
        _cache(a).cached_count += sign


cdef void _plant_view(DeviceAllocator* a, str what, int sign):
    if what == "a view's uses":
        a.views.use_count += sign
    elif what == "a view's bytes":
        a.views.nbytes -= sign * 512
    elif what == "a view too many":
        a.view_count -= sign
    elif what == "a page's views":
        a.views.pages[0].view_count += sign
    elif what == "a part without its flag":
        a.views.blocks.parts.is_part = sign < 0
    elif what == "a part elsewhere":
        a.views.blocks.ptr += sign * 512


def plant(int device, str what, int sign=1):
    """Break one invariant, or restore it with `sign` -1."""
    cdef DeviceAllocator* a = allocator_find(device)
    device_lock(a)
    _plant_tile(a, what, sign)
    _plant_count(a, what, sign)
    _plant_view(a, what, sign)
    device_unlock(a)
