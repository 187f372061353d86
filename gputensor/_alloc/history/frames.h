// Walks the Python frames of this thread without making objects, strings or line numbers.
//
// A frame is identified by its code object and the offset of its instruction; both are borrowed.
// CPython's public functions make a frame object for every frame they visit (50-100 ns each, and
// it slows the frame's own exit), so on 3.11 to 3.13 the interpreter's frame records are read
// directly. Their layout is fixed within a minor version and mirrored below as far as it is read.
// stacks.pxi compares both ways once, when it is imported, and keeps the public one when they
// differ; other versions always use the public one. The GIL must be held.
#pragma once
#include <Python.h>
#include <frameobject.h>
#include <stdint.h>
#include <unwind.h>

typedef struct {
    PyCodeObject* code;  // NULL: a C frame, and offset is its address
    int64_t offset;      // what PyCode_Addr2Line takes
} gt_frame;

typedef int (*gt_walk_t)(gt_frame* out, int limit);

// Innermost first; gives the number of frames written.
static int gt_walk_public(gt_frame* out, int limit) {
    int count = 0;
    PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame != NULL && count < limit) {
        PyCodeObject* code = PyFrame_GetCode(frame);
#if PY_VERSION_HEX >= 0x030B0000
        out[count].offset = PyFrame_GetLasti(frame);
#else
        out[count].offset = frame->f_lasti * 2;
#endif
        out[count].code = code;
        count++;
        Py_DECREF(code);  // the frame keeps it
        PyFrameObject* back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    return count;
}

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
#define GT_DIRECT_FRAMES 1

typedef struct gt_interpreter_frame {
#if PY_VERSION_HEX < 0x030C0000
    void* function_and_scopes[4];
    PyCodeObject* code;
    void* frame_object;
    struct gt_interpreter_frame* previous;
    char* instruction;
    int stack_top;
    char is_entry;
    char owner;
#else
    PyCodeObject* code;
    struct gt_interpreter_frame* previous;
    void* function_and_scopes[5];
    char* instruction;
    int stack_top;
    uint16_t return_offset;
    char owner;
#endif
} gt_interpreter_frame;

// Owners of frame records, and the bytes of one instruction word.
enum { GT_OWNED_BY_GENERATOR = 1, GT_OWNED_BY_C_STACK = 3, GT_CODE_UNIT = 2 };

static int gt_walk_direct(gt_frame* out, int limit) {
    int count = 0;
    PyThreadState* state = PyThreadState_Get();
#if PY_VERSION_HEX < 0x030D0000
    gt_interpreter_frame* frame = (gt_interpreter_frame*)state->cframe->current_frame;
#else
    gt_interpreter_frame* frame = (gt_interpreter_frame*)state->current_frame;
#endif
    for (; frame != NULL && count < limit; frame = frame->previous) {
        // The interpreter's own entry records stand for no Python code.
        if (frame->owner == GT_OWNED_BY_C_STACK) continue;
        PyCodeObject* code = frame->code;
        int64_t offset = frame->instruction - code->co_code_adaptive;
        // A frame that has not reached its first instruction is not visible.
        if (frame->owner != GT_OWNED_BY_GENERATOR &&
            offset < code->_co_firsttraceable * (int64_t)GT_CODE_UNIT)
            continue;
        out[count].code = code;
        out[count].offset = offset;
        count++;
    }
    return count;
}

#elif PY_VERSION_HEX < 0x030B0000
#define GT_DIRECT_FRAMES 1

// Frame objects always exist here, and their fields are public.
static int gt_walk_direct(gt_frame* out, int limit) {
    int count = 0;
    PyFrameObject* frame = PyThreadState_Get()->frame;
    for (; frame != NULL && count < limit; frame = frame->f_back, count++) {
        out[count].code = frame->f_code;
        out[count].offset = frame->f_lasti * 2;
    }
    return count;
}

#else
#define GT_DIRECT_FRAMES 0
#define gt_walk_direct gt_walk_public
#endif

typedef struct {
    gt_frame* out;
    int count, limit;
} gt_native_walk;

static _Unwind_Reason_Code gt_native_step(struct _Unwind_Context* context, void* argument) {
    gt_native_walk* walk = (gt_native_walk*)argument;
    if (walk->count == walk->limit) return _URC_END_OF_STACK;
    walk->out[walk->count].code = NULL;
    walk->out[walk->count].offset = (int64_t)_Unwind_GetIP(context);
    walk->count++;
    return _URC_NO_REASON;
}

// The C frames of this thread, as addresses, innermost first.
static int gt_walk_native(gt_frame* out, int limit) {
    gt_native_walk walk = {out, 0, limit};
    _Unwind_Backtrace(gt_native_step, &walk);
    return walk.count;
}
