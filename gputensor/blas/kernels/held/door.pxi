# For the tests' extension: the rule for the shape of a block, and a shape that its tests force. No
# other room calls or changes these.

cdef struct HeldForced:
    int columns                 # of a block; 0: the rules decide, -1: no such block

cdef HeldForced held_forced

cdef struct HeldShape:
    int columns
    int stages
    int chunks                  # of terms
    int panels                  # of weights
    int groups                  # blocks with the same panel
    int shared_nbytes
    double cost

cdef bint held_choose(const PanelProduct* product, const DeviceFacts* device,
                      HeldShape* best) noexcept nogil
