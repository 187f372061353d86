"""The doors of the calls. They check that operands are row-major and skip empty calls."""


cdef int64_t dense_count(str name, Operand* operand) except -1:
    """Return the number of elements of a row-major operand; raise ValueError for other layouts."""
    cdef int64_t size = 1
    cdef int axis
    for axis in range(operand.ndim - 1, -1, -1):
        if operand.shape[axis] > 1 and operand.strides[axis] != size and size:
            raise argument_error(ValueError, f"{name}: strides", Described("gaps"),
                                 "row-major memory")
        size *= operand.shape[axis]
    return size


cdef Operand* of(object given) except NULL:
    return &(<CallOperand?>given).c


cdef bint on_host(int device, uint64_t stream, object row, tuple arguments) except -1:
    """Queue the call if the device is a host device; return whether it is."""
    if device_kind(device) != DEVICE_HOST:
        return False
    host_call(device, stream, row, tuple([
        call_argument(device, &(<CallOperand>one).c) if type(one) is CallOperand else one
        for one in arguments]))
    return True


def _sort_door(int device, uint64_t stream, tuple arguments):
    is_descending, out, x = arguments
    dense_count("sort", of(out))
    if dense_count("sort", of(x)) and not (
            host_sorted(device, stream, of(out), of(x), is_descending)
            or on_host(device, stream, SORT_CALL, arguments)):
        cuda_sort(device, stream, of(x), of(out).ptr, 0, is_descending)


def _argsort_door(int device, uint64_t stream, tuple arguments):
    is_descending, out, x = arguments
    dense_count("argsort", of(out))
    if dense_count("argsort", of(x)) and not (
            host_argsorted(device, stream, of(out), of(x), is_descending)
            or on_host(device, stream, ARGSORT_CALL, arguments)):
        cuda_sort(device, stream, of(x), 0, of(out).ptr, is_descending)


def _partition_door(int device, uint64_t stream, tuple arguments):
    _places, out, x = arguments
    dense_count("partition", of(out))
    if dense_count("partition", of(x)) and not (
            host_partitioned(device, stream, of(out), of(x))
            or on_host(device, stream, PARTITION_CALL, arguments)):
        cuda_sort(device, stream, of(x), of(out).ptr, 0, False)


def _topk_door(int device, uint64_t stream, tuple arguments):
    is_largest, values, order, x = arguments
    dense_count("topk", of(values))
    dense_count("topk", of(x))
    if dense_count("topk", of(order)) and not (
            host_selected(device, stream, of(values), of(order), of(x), is_largest)
            or on_host(device, stream, TOPK_CALL, arguments)):
        cuda_topk(device, stream, of(x), of(values), of(order), is_largest)


def _search_door(int device, uint64_t stream, tuple arguments):
    is_right, out, x, values = arguments
    dense_count("search", of(out))
    dense_count("search", of(x))
    if dense_count("search", of(values)) and not (
            host_searched(device, stream, of(out), of(x), of(values), is_right)
            or on_host(device, stream, SEARCH_CALL, arguments)):
        cuda_search(device, stream, of(x), of(values), of(out).ptr, is_right)


def _count_door(int device, uint64_t stream, tuple arguments):
    counts, x = arguments
    if not dense_count("count", of(counts)) or not dense_count("count", of(x)):
        return
    if not (host_counted(device, stream, of(counts), of(x))
            or on_host(device, stream, COUNT_CALL, arguments)):
        cuda_count(device, stream, of(counts), of(x), NULL, False)


def _histogram_door(int device, uint64_t stream, tuple arguments):
    is_even, counts, x, edges = arguments
    dense_count("histogram", of(edges))
    if not dense_count("histogram", of(counts)) or not dense_count("histogram", of(x)):
        return
    if not on_host(device, stream, HISTOGRAM_CALL, arguments):
        cuda_count(device, stream, of(counts), of(x), of(edges), is_even)


def _add_at_door(int device, uint64_t stream, tuple arguments):
    target, index, source = arguments
    dense_count("add_at", of(index))
    if not dense_count("add_at", of(source)) or not dense_count("add_at", of(target)):
        return
    if not (host_added(device, stream, of(target), of(index), of(source))
            or on_host(device, stream, ADD_AT_CALL, arguments)):
        cuda_add(device, stream, of(target), of(index), of(source))


def _mark_door(int device, uint64_t stream, tuple arguments):
    rule, bits, starts, x = arguments
    dense_count("mark", of(bits))
    dense_count("mark", of(starts))
    if dense_count("mark", of(x)) and not (
            host_marked(device, stream, of(bits), of(starts), of(x), rule)
            or on_host(device, stream, MARK_CALL, arguments)):
        cuda_mark(device, stream, of(bits), of(starts), of(x), MARK_RULES.index(rule))


def _seen_door(int device, uint64_t stream, tuple arguments):
    bits, starts, x, least = arguments
    dense_count("seen", of(starts))
    dense_count("seen", of(x))
    if dense_count("seen", of(bits)) and not on_host(device, stream, SEEN_CALL, arguments):
        cuda_seen(device, stream, of(bits), of(starts), of(x), of(least).ptr)


def _pick_door(int device, uint64_t stream, tuple arguments):
    out, x, bits, starts = arguments
    dense_count("pick", of(x))
    dense_count("pick", of(bits))
    dense_count("pick", of(starts))
    if dense_count("pick", of(out)) and not (
            host_picked(device, stream, of(out), of(x), of(bits))
            or on_host(device, stream, PICK_CALL, arguments)):
        cuda_pick(device, stream, of(out), of(bits), of(starts), of(x).ptr,
                  (of(x).shape[0],))


def _places_door(int device, uint64_t stream, tuple arguments):
    shape, out, bits, starts = arguments
    dense_count("places", of(bits))
    dense_count("places", of(starts))
    if dense_count("places", of(out)) and not (
            host_placed(device, stream, of(out), of(bits), shape)
            or on_host(device, stream, PLACES_CALL, arguments)):
        cuda_pick(device, stream, of(out), of(bits), of(starts), 0, shape)


def _cumulate_door(int device, uint64_t stream, tuple arguments):
    op, out, x = arguments
    dense_count("cumulate", of(out))
    if dense_count("cumulate", of(x)) and not (
            host_scanned(device, stream, of(out), of(x), SCANS.index(op))
            or on_host(device, stream, CUMULATE_CALL, arguments)):
        cuda_scan(device, stream, of(out), of(x), SCANS.index(op))


cdef object SORT_CALL = bind("sort", host_orders.run_sort, _sort_door)
cdef object ARGSORT_CALL = bind("argsort", host_orders.run_argsort, _argsort_door)
cdef object PARTITION_CALL = bind("partition", host_orders.run_partition, _partition_door)
cdef object TOPK_CALL = bind("topk", host_orders.run_topk, _topk_door)
cdef object SEARCH_CALL = bind("search", host_orders.run_search, _search_door)
cdef object COUNT_CALL = bind("count", host_orders.run_count, _count_door)
cdef object CUMULATE_CALL = bind("cumulate", host_orders.run_scan, _cumulate_door)
cdef object HISTOGRAM_CALL = bind("histogram", host_orders.run_histogram, _histogram_door)
cdef object ADD_AT_CALL = bind("add_at", host_orders.run_add_at, _add_at_door)
cdef object MARK_CALL = bind("mark", host_orders.run_mark, _mark_door)
cdef object SEEN_CALL = bind("seen", host_orders.run_seen, _seen_door)
cdef object PICK_CALL = bind("pick", host_orders.run_pick, _pick_door)
cdef object PLACES_CALL = bind("places", host_orders.run_places, _places_door)
