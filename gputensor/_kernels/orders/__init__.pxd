# No C face: the doors of the calls are all that other rooms use.
