// Undoes the change that a context made, when a signal handler raises before the `with`
// statement enters the context.
//
// A context that changes a setting when it is made, so that a plain call sets it, is interrupted
// between the two like this: the frame drops the object while the exception is on its way. Any other
// end of the object leaves the setting as it is. Cython's __dealloc__ puts the exception aside, so
// the destructor of a member asks the question.
#ifndef GPUTENSOR_STREAMS_SETTING_UNDO_H
#define GPUTENSOR_STREAMS_SETTING_UNDO_H

#include <Python.h>

// For a setting that is an int of one thread.
struct ThreadSettingUndo {
    int* setting = nullptr;     // NULL: entered, or nothing was changed
    int former = 0;
    int* (*own)() = nullptr;    // the setting's address in the calling thread

    ~ThreadSettingUndo() {
        if (setting && setting == own() && PyErr_Occurred()) *setting = former;
    }
};

#endif
