# This room has no C functions for other rooms, which use only the doors of its calls.
