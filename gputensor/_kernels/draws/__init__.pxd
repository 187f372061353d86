# No C face: the door of the call is all that other rooms use.
