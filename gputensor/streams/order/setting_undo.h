// Undoes the change of a context when a signal handler raises before the `with` statement enters
// the context.
//
// Such a context changes a setting when it is made, so that a plain call sets it. If a signal
// interrupts between the two, the frame drops the object while the exception propagates. Any other
// end of the object leaves the setting as it is. Cython's __dealloc__ hides the exception, so the
// destructor of a member checks for it.
#ifndef GPUTENSOR_STREAMS_SETTING_UNDO_H
#define GPUTENSOR_STREAMS_SETTING_UNDO_H

#include <Python.h>

// For a setting that is an int of one thread.
struct ThreadSettingUndo {
    int* setting = nullptr;     // NULL: entered, or unchanged
    int former = 0;
    int* (*own)() = nullptr;    // the setting's address in the calling thread

    ~ThreadSettingUndo() {
        if (setting && setting == own() && PyErr_Occurred()) *setting = former;
    }
};

#endif
