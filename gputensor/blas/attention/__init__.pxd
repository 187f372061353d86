# What other rooms may call of blas/attention.

from libc.stdint cimport int64_t, uint32_t, uint64_t

from gputensor._arrays cimport Operand

# softmax(scale * query @ key.T, masked) @ value. The caller has checked shapes and types.
cdef struct Attention:
    const Operand* query        # [batch, heads, queries, size]
    const Operand* key          # [batch, kept heads, keys, size]; kept heads divide the heads
    const Operand* value        # [batch, kept heads, keys, width]
    const Operand* out          # [batch, heads, queries, width], shares nothing with the others
    const Operand* mask         # [batch, heads, queries, keys], of bool or real numbers; or NULL
    const Operand* length       # [batch], of integers; or NULL: all keys
    double scale
    double soft_cap             # 0: none
    int64_t window              # 0: none; otherwise is_causal is set
    int is_causal               # the last query is at the last key
    uint32_t precision          # flags of blas/plan

# Queues the work; no extent is 0.
cdef int attend(int device, uint64_t stream, const Attention* given) except -1
