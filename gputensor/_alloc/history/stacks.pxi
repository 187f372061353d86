"""Interned call stacks: one number for each distinct stack, cheap enough for every allocation.

A stack is a sequence of (code object, instruction offset). Capturing one walks the frames into a
buffer on the C stack while hashing, and looks the sequence up; only a stack never seen before is
stored, and its code objects are kept alive from then on, so an address in the table means the same
code for ever. Names and line numbers are made when a snapshot asks for them.

The table is guarded by the GIL and never shrinks: blocks and history records hold ids. It stops
growing at MAX_FRAMES frames (128 MiB); a stack that is new after that gets id 0, "not known".
"""

cdef extern from "gputensor/_alloc/history/frames.h" nogil:
    ctypedef struct gt_frame:
        PyObject* code
        int64_t offset
    int GT_DIRECT_FRAMES
    int gt_walk_direct(gt_frame* out, int limit)
    int gt_walk_public(gt_frame* out, int limit)
    int gt_walk_native(gt_frame* out, int limit)

cdef extern from "Python.h":
    int PyCode_Addr2Line(PyObject* code, int offset)
    void Py_INCREF(PyObject* value) nogil

cdef extern from "<dlfcn.h>" nogil:
    ctypedef struct Dl_info:
        const char* dli_fname
        void* dli_fbase
        const char* dli_sname
        void* dli_saddr
    int dladdr(void* address, Dl_info* info)

cdef extern from "<cxxabi.h>" nogil:
    char* demangle "abi::__cxa_demangle"(const char* symbol, char* buffer, size_t* length,
                                         int* status)

cdef enum:
    MAX_DEPTH = 192             # deeper stacks lose their outermost frames
    MAX_NATIVE = 64
    MAX_FRAMES = 8 << 20        # over all stacks

cdef struct Stack:
    uint64_t hash
    uint32_t first              # index of its innermost frame in `frames`
    uint32_t depth

cdef gt_frame* frames = NULL    # the frames of all stacks, one after the other
cdef size_t frame_count = 0
cdef size_t frame_capacity = 0
cdef Stack* stacks = NULL       # by id; id 0 is never used
cdef uint32_t stack_count = 1
cdef size_t stack_capacity = 0
cdef uint32_t* slots = NULL     # open addressing: ids by hash, 0 is empty
cdef size_t slot_mask = 0
cdef bint use_direct = False


cdef inline uint64_t _mix(uint64_t value) noexcept nogil:
    value ^= value >> 32
    value *= <uint64_t>0x9E3779B97F4A7C15
    return value ^ (value >> 29)


cdef inline uint64_t _hash(const gt_frame* walked, int depth) noexcept nogil:
    # Each frame is mixed on its own, so that the multiplications overlap; the position enters
    # through the rotation.
    cdef uint64_t value = <uint64_t>depth
    cdef int i
    for i in range(depth):
        value = ((value << 7) | (value >> 57)) ^ (
            (<uint64_t><uintptr_t>walked[i].code + <uint64_t>walked[i].offset)
            * <uint64_t>0x9E3779B97F4A7C15)
    return _mix(value)


cdef bint _grow_slots() noexcept nogil:
    global slots, slot_mask
    cdef size_t count = 4096 if slots == NULL else (slot_mask + 1) * 2
    cdef uint32_t* grown = <uint32_t*>calloc(count, sizeof(uint32_t))
    cdef size_t place
    cdef uint32_t stack
    if grown == NULL:
        return False
    for stack in range(1, stack_count):
        place = stacks[stack].hash & (count - 1)
        while grown[place]:
            place = (place + 1) & (count - 1)
        grown[place] = stack
    free(slots)
    slots = grown
    slot_mask = count - 1
    return True


cdef bint _make_room(int depth) noexcept nogil:
    """Make room for one more stack; False when the table is full or memory is short."""
    global frames, frame_capacity, stacks, stack_capacity
    cdef size_t wanted
    if frame_count + depth > MAX_FRAMES:
        return False
    if frame_count + depth > frame_capacity:
        wanted = frame_capacity * 2 if frame_capacity else 16384
        grown = realloc(frames, wanted * sizeof(gt_frame))
        if grown == NULL:
            return False
        frames = <gt_frame*>grown
        frame_capacity = wanted
    if stack_count == stack_capacity or stacks == NULL:
        wanted = stack_capacity * 2 if stack_capacity else 1024
        grown = realloc(stacks, wanted * sizeof(Stack))
        if grown == NULL:
            return False
        stacks = <Stack*>grown
        stack_capacity = wanted
    if slots == NULL or stack_count * <size_t>2 > slot_mask:
        return _grow_slots()
    return True


cdef uint32_t _add(const gt_frame* walked, int depth, uint64_t hash) noexcept nogil:
    global frame_count, stack_count
    cdef size_t place
    cdef int i
    if not _make_room(depth):
        return 0
    for i in range(depth):
        if walked[i].code != NULL:
            Py_INCREF(walked[i].code)
    memcpy(frames + frame_count, walked, depth * sizeof(gt_frame))
    stacks[stack_count].hash = hash
    stacks[stack_count].first = <uint32_t>frame_count
    stacks[stack_count].depth = <uint32_t>depth
    place = hash & slot_mask
    while slots[place]:
        place = (place + 1) & slot_mask
    slots[place] = stack_count
    frame_count += depth
    stack_count += 1
    return stack_count - 1


# The id of the caller's stack (> 0), or 0 when there is none or the table is full. The thread must
# hold the GIL ("nogil" says only that callers without Python objects may call it). No string and
# no line number is made. `native` adds the C frames.
cdef uint32_t stack_capture(bint native) noexcept nogil:
    cdef gt_frame walked[MAX_NATIVE + MAX_DEPTH]
    cdef int depth = gt_walk_native(walked, MAX_NATIVE) if native else 0
    cdef uint64_t hash
    cdef size_t place
    cdef uint32_t stack
    if use_direct:
        depth += gt_walk_direct(walked + depth, MAX_DEPTH)
    else:
        depth += gt_walk_public(walked + depth, MAX_DEPTH)
    if depth == 0:
        return 0
    hash = _hash(walked, depth)
    if slots != NULL:
        place = hash & slot_mask
        while slots[place]:
            stack = slots[place]
            if (stacks[stack].hash == hash and stacks[stack].depth == <uint32_t>depth
                    and memcmp(frames + stacks[stack].first, walked,
                               depth * sizeof(gt_frame)) == 0):
                return stack
            place = (place + 1) & slot_mask
    return _add(walked, depth, hash)


# The name of a C or C++ function as its source has it.
cdef str plain_name(const char* symbol):
    cdef int status = 0
    cdef char* made = demangle(symbol, NULL, NULL, &status)
    name = (symbol if made == NULL else made).decode("utf-8", "replace")
    free(made)
    return name


cdef dict _format(const gt_frame* frame):
    cdef Dl_info info
    if frame.code != NULL:
        code = <object>frame.code
        return {
            "filename": code.co_filename,
            "line": PyCode_Addr2Line(frame.code, <int>frame.offset),
            "name": code.co_name,
        }
    filename = "??"
    name = hex(<uint64_t>frame.offset)
    # The return address may belong to the next function; one byte before it never does.
    if dladdr(<void*><uintptr_t>(frame.offset - 1), &info):
        if info.dli_fname != NULL:
            filename = info.dli_fname.decode("utf-8", "replace")
        if info.dli_sname != NULL:
            name = plain_name(info.dli_sname)
    return {"filename": filename, "line": 0, "name": name}


cdef class StackFormatter:
    """Turns stack ids into lists of frame dicts; equal stacks share one list.

    Make one for each snapshot: its lists belong to the caller, who may change them.
    """

    def __cinit__(self):
        self._lists = [None] * stack_count
        self._frames = {}
        self._empty = []

    cdef list frames_of(self, uint32_t stack):
        cdef list made
        cdef Stack* record
        cdef gt_frame* frame
        cdef uint32_t i
        if stack == 0 or stack >= <uint32_t>len(self._lists):
            return self._empty
        known = self._lists[stack]
        if known is not None:
            return <list>known
        made = []
        for i in range(stacks[stack].depth):
            # Formatting runs Python code, during which another thread may grow the tables.
            record = &stacks[stack]
            frame = &frames[record.first + i]
            key = (<uintptr_t>frame.code, frame.offset)
            formatted = self._frames.get(key)
            if formatted is None:
                formatted = _format(&frames[record.first + i])
                self._frames[key] = formatted
            made.append(formatted)
        self._lists[stack] = made
        return made

    def frames(self, stack):
        """Return the frames of a stack id, innermost first; an empty list for an unknown one."""
        return self.frames_of(stack)


def capture(native=False):
    """Return the id of the caller's stack.

    >>> capture() == 0
    False
    """
    return stack_capture(native)


cdef bint _agree() noexcept:
    """Whether both ways of walking see the same frames here."""
    cdef gt_frame direct[32]
    cdef gt_frame public[32]
    cdef int i
    cdef int count = gt_walk_public(public, 32)
    if gt_walk_direct(direct, 32) != count:
        return False
    for i in range(count):
        if direct[i].code != public[i].code or direct[i].offset != public[i].offset:
            return False
    return True


cdef bint stacks_walk_directly() noexcept:
    return use_direct


cdef void stacks_choose_walk(bint is_public) noexcept:
    global use_direct
    use_direct = not is_public and GT_DIRECT_FRAMES and _agree()


stacks_choose_walk(False)
