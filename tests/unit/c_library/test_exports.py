"""libgputensor_program.so exports the functions of its header, and nothing else."""

import re
import shutil
import subprocess

import pytest

from tests.support.programs.c_caller import LIBRARIES
from tests.support.simulated_gpu import ROOT

NM = shutil.which("nm")
HEADER = ROOT / "gputensor/programs/c_entry/gputensor_program.h"


@pytest.mark.skipif(NM is None, reason="needs nm on the path")
def test_the_library_exports_the_functions_of_its_header_only():
    declared = re.findall(r"^\w[^;{]*?\b(gputensor_\w+)\(", HEADER.read_text(), re.MULTILINE)
    command = [NM, "-D", "--defined-only", "--format=posix", LIBRARIES["alone"]()]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert sorted(line.split()[0] for line in listed.splitlines()) == sorted(declared)
    assert len(declared) > 5
