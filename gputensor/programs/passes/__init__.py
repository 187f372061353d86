"""The passes over functions, in the order of compile.py, and the plan of an arena."""
