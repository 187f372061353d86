/* For the fake driver in a process without Python: no interpreter, so its lock is never held. */
int Py_IsInitialized(void) { return 0; }
int PyGILState_Check(void) { return 0; }
void* PyEval_SaveThread(void) { return 0; }
void PyEval_RestoreThread(void* state) { (void)state; }
