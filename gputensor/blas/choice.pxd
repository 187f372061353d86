# A Choice is the outcome of tuning for one product: how to pad it, which library, which algorithm.

cdef enum:
    CONFIG_COUNT = 9            # the CONFIG_* attributes of library.pxd, indexed by their numbers
    CHOICE_ANY = -1             # as the cost model or the library's heuristic says

cdef struct Choice:
    int pad                     # a mask of PAD_*, or CHOICE_ANY
    int backend                 # a Backend, or CHOICE_ANY
    int has_config              # whether `config` names a cuBLASLt algorithm
    int config[CONFIG_COUNT]
