# What a page costs, in microseconds measured on an H200, and when one more is no waste. The rules
# of views and of moves between pools weigh the driver's time against memory by these.

cdef extern from *:
    """
    static const double gt_map_us = 31.5;       // cuMemMap and cuMemSetAccess
    static const double gt_unmap_us = 18.5;
    static const double gt_close = 1.01;        // pages are whole: so much over what was requested
    """
    const double MAP_US "gt_map_us"
    const double UNMAP_US "gt_unmap_us"
    const double CLOSE "gt_close"
