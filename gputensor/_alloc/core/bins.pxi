"""Free blocks by size, best fit in constant time.

A size in units of 512 bytes falls into a row by its highest bit and into one of 32 columns by the
next five bits: sizes below 32 KiB have a column of their own, above it a column spans 1/32 of the
size. Finding the next non-empty column is two bit scans. Within a column the list is searched for
the smallest block that fits, lowest address first, but at most SCAN records deep: a column of a
million near-equal blocks costs no more than one of SCAN, and gives away at most 1/32 of the size.

Guarded by the device lock.
"""

cdef enum:
    SCAN = 32


cdef inline void _place(size_t nbytes, int* row, int* column) noexcept nogil:
    cdef uint64_t units = nbytes >> UNIT_SHIFT
    cdef int high
    if units < 32:
        row[0] = 0
        column[0] = <int>units
    else:
        high = gt_highest_bit(units)
        row[0] = high - 4
        column[0] = <int>((units >> (high - 5)) & 31)


cdef void bins_insert(Bins* bins, Block* block) noexcept nogil:
    cdef int row, column
    _place(block.nbytes, &row, &column)
    link_push(&bins.heads[row][column], block)
    bins.columns[row] |= <uint32_t>1 << column
    bins.rows |= <uint64_t>1 << row


cdef void bins_remove(Bins* bins, Block* block) noexcept nogil:
    cdef int row, column
    if block.link_previous != NULL:
        link_remove(NULL, block)
        return
    _place(block.nbytes, &row, &column)
    link_remove(&bins.heads[row][column], block)
    if bins.heads[row][column] == NULL:
        bins.columns[row] &= ~(<uint32_t>1 << column)
        if bins.columns[row] == 0:
            bins.rows &= ~(<uint64_t>1 << row)


cdef inline Block* _smallest(Block* head, size_t nbytes) noexcept nogil:
    cdef Block* best = NULL
    cdef int left = SCAN
    while head != NULL and left > 0:
        if head.nbytes >= nbytes and (
                best == NULL or head.nbytes < best.nbytes
                or (head.nbytes == best.nbytes and head.ptr < best.ptr)):
            best = head
        head = head.link_next
        left -= 1
    return best


cdef Block* bins_best_fit(Bins* bins, size_t nbytes) noexcept nogil:
    cdef int row, column
    cdef uint32_t columns
    cdef uint64_t rows
    _place(nbytes, &row, &column)
    best = _smallest(bins.heads[row][column], nbytes)
    if best != NULL:
        return best
    columns = 0 if column == 31 else bins.columns[row] & (<uint32_t>0xFFFFFFFF << (column + 1))
    if columns == 0:
        rows = bins.rows & (<uint64_t>0xFFFFFFFFFFFFFFFF << (row + 1))
        if rows == 0:
            return NULL
        row = gt_lowest_bit(rows)
        columns = bins.columns[row]
    return _smallest(bins.heads[row][gt_lowest_bit(columns)], nbytes)


cdef Block* bins_largest(Bins* bins) noexcept nogil:
    cdef int row
    if bins.rows == 0:
        return NULL
    row = gt_highest_bit(bins.rows)
    return bins.heads[row][gt_highest_bit(bins.columns[row])]


cdef Block* bins_below(Bins* bins, Block* block) noexcept nogil:
    cdef int row, column
    cdef uint32_t columns
    cdef uint64_t rows
    _place(block.nbytes, &row, &column)
    columns = bins.columns[row] & ((<uint32_t>1 << column) - 1)
    if columns == 0:
        rows = bins.rows & ((<uint64_t>1 << row) - 1)
        if rows == 0:
            return NULL
        row = gt_highest_bit(rows)
        columns = bins.columns[row]
    return bins.heads[row][gt_highest_bit(columns)]
