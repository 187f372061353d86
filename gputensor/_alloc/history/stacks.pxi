"""Interned call stacks: one number for each distinct stack, cheap enough for every allocation.

A stack is a sequence of (code object, instruction offset). Capturing one walks the frames into a
buffer on the C stack while hashing, and looks the sequence up; only a stack never seen before is
stored, and its code objects are kept alive from then on, so an address in the table always means
the same code. Names and line numbers are made for a snapshot.

The table is guarded by the GIL and never shrinks: blocks and history records hold ids. It stops
growing at 8 million frames (128 MiB); a stack that is new after that gets id 0, "not known".
"""

cdef extern from "gputensor/_alloc/history/frames.h" nogil:
    ctypedef struct gt_frame:
        PyObject* code
        int64_t offset
    int GT_DIRECT_FRAMES
    int gt_walk_direct(gt_frame* out, int limit)
    int gt_walk_public(gt_frame* out, int limit)
    int gt_walk_native(gt_frame* out, int limit)

cdef extern from "gputensor/_alloc/history/stacks.h" namespace "gputensor" nogil:
    cdef cppclass StackTable:
        uint32_t number_of(const gt_frame* walked, uint32_t depth)
        uint32_t depth(uint32_t stack)
        gt_frame frame(uint32_t stack, uint32_t index)
        uint32_t size()

cdef extern from "Python.h":
    int PyCode_Addr2Line(PyObject* code, int offset)

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

cdef StackTable* table = new StackTable()   # never freed: threads may outlive the interpreter
cdef bint use_direct = False


# The id of the caller's stack (> 0), or 0 when there is none or the table is full. The thread must
# hold the GIL ("nogil" says only that callers without Python objects may call it). No string and
# no line number is made. `native` adds the C frames.
cdef uint32_t stack_capture(bint native) noexcept nogil:
    cdef gt_frame walked[MAX_NATIVE + MAX_DEPTH]
    cdef int depth = gt_walk_native(walked, MAX_NATIVE) if native else 0
    if use_direct:
        depth += gt_walk_direct(walked + depth, MAX_DEPTH)
    else:
        depth += gt_walk_public(walked + depth, MAX_DEPTH)
    return table.number_of(walked, depth) if depth > 0 else 0


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
            name = hex(<uint64_t>frame.offset - <uintptr_t>info.dli_fbase)  # what addr2line takes
        if info.dli_sname != NULL:
            name = plain_name(info.dli_sname)
    return {"filename": filename, "line": 0, "name": name}


cdef class StackFormatter:
    """Turns stack ids into lists of frame dicts; equal stacks share one list.

    Make one for each snapshot: its lists belong to the caller, which may change them.
    """

    def __cinit__(self):
        self._lists = [None] * table.size()
        self._frames = {}
        self._empty = []

    cdef list frames_of(self, uint32_t stack):
        cdef list made
        cdef gt_frame frame
        cdef uint32_t i
        if stack == 0 or stack >= <uint32_t>len(self._lists):
            return self._empty
        known = self._lists[stack]
        if known is not None:
            return <list>known
        made = []
        for i in range(table.depth(stack)):
            frame = table.frame(stack, i)
            key = (<uintptr_t>frame.code, frame.offset)
            formatted = self._frames.get(key)
            if formatted is None:
                formatted = self._frames[key] = _format(&frame)
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
