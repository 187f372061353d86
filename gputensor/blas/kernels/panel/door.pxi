# For the tests' extension: the rule for the shape of a block, and a shape that its tests force. No
# other room calls or changes these.

cdef struct PanelForced:        # 0: the rules decide
    int rows
    int columns

cdef PanelForced panel_forced

cdef struct PanelShape:
    int rows
    int columns
    int row_warps
    int column_warps
    int k_warps
    int slice                   # k, rounded up to whole steps of all warps
    int w_offset
    int vectors_offset
    int shared_nbytes
    double cost

cdef bint panel_choose(const PanelProduct* product, const DeviceFacts* device,
                       PanelShape* best) noexcept nogil
