"""The entry of attention: a host call, the fused kernel, or products and a formula."""


cdef int attend(int device, uint64_t stream, const Attention* given) except -1:
    if device_kind(device) == DEVICE_HOST:
        return host_call(device, stream, ATTENTION_CALL, (
            given.scale, bool(given.is_causal), given.window, given.soft_cap, given.precision,
            call_argument(device, given.out), call_argument(device, given.query),
            call_argument(device, given.key), call_argument(device, given.value),
            call_argument(device, given.mask), call_argument(device, given.length)))
    if fused_fits(given, device_facts(device).capability):
        return fused_launch(device, stream, given)
    return plain_attention(device, stream, given)


def _door(int device, uint64_t stream, tuple arguments):
    cdef Attention given
    given.scale, given.is_causal, given.window, given.soft_cap, given.precision = arguments[:5]
    out, query, key, value, mask, length = arguments[5:]
    given.out, given.query, given.key = (
        operand_or_null(out), operand_or_null(query), operand_or_null(key))
    given.value, given.mask, given.length = (
        operand_or_null(value), operand_or_null(mask), operand_or_null(length))
    attend(device, stream, &given)


cdef object ATTENTION_CALL = bind("attention", attention_host.run, _door)
