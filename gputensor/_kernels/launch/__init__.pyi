from gputensor._kernels.program import Program

class Kernel:
    program: Program
    def __init__(self, program: Program) -> None: ...

class KernelTable:
    def __init__(self) -> None: ...

def loaded_programs(device: int) -> list[Program]: ...
