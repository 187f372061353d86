# For the tests' extension: a shape of blocks that its tests and measurements force. No other room
# reads or changes it.

cdef struct NarrowForced:       # 0: the rules decide
    int rows                    # below 0: no product goes here
    int features
    int warps
    int splits

cdef NarrowForced narrow_forced
