"""Names of GPUs, and the compiler's list of architectures."""

import pytest

from gputensor._kernels.launch import nvrtc
from gputensor.programs.targets import TARGETS, Target, listed, parse
from tests.support.nvrtc_library import needs_nvrtc

# Compute capabilities by NVIDIA's list (developer.nvidia.com/cuda-gpus).
KNOWN = {
    "P100": 60, "P4": 61, "GTX 1080 Ti": 61, "V100": 70, "Xavier": 72, "T4": 75, "RTX 2080": 75,
    "GTX 1650": 75, "A100": 80, "A30": 80, "A10": 86, "A40": 86, "RTX 3090": 86, "Orin": 87,
    "L4": 89, "L40S": 89, "NVIDIA GeForce RTX 4090": 89, "H100": 90, "H200": 90, "GH200": 90,
    "B200": 100, "GB200": 100, "B300": 103, "Thor": 110, "sm-101": 110, "RTX 5090": 120,
    "RTX PRO 6000": 120, "GB10": 121, "DGX-Spark": 121, "Ampere": 80, "hopper": 90, "SM_90a": 90,
}  # fmt: skip


# All names that the documentation promises, by architecture.
NAMES = {
    60: "pascal p100", 61: "p4 p40 gtx10xx", 70: "volta v100", 72: "xavier",
    75: "turing t4 rtx20xx gtx16xx", 80: "ampere a100 a30", 86: "a10 a40 rtx30xx", 87: "orin",
    89: "ada l4 l40 l40s rtx40xx", 90: "90a hopper h100 h200 h800 gh200",
    100: "100a blackwell b200 gb200", 103: "b300 gb300", 110: "101 thor",
    120: "rtx50xx rtxpro6000", 121: "gb10 dgxspark",
}  # fmt: skip


def test_the_table_has_these_names_and_no_others():
    wanted = {f"sm_{number}": number for number in NAMES}
    for number, names in NAMES.items():
        wanted |= {f"sm_{n}" if n[:2].isdigit() else n: number for n in names.split()}
    assert {name: target.capability for name, target in TARGETS.items()} == wanted
    for name, number in wanted.items():
        spelled = name.upper().replace("_", "-"), f" {name[:3]} {name[3:]} ", f"{name} + PTX"
        for one in spelled:
            made = parse(one)[0]
            assert (made.capability, made.has_ptx) == (number, "PTX" in one), one


@pytest.mark.parametrize("name", KNOWN)
def test_names_of_products_have_their_capability(name):
    assert parse(name)[0].capability == KNOWN[name]


def test_a_list_keeps_order_and_drops_repetitions():
    assert [str(one) for one in parse(["h200, a100+ptx", "sm_90"])] == ["sm_90", "sm_80+ptx"]


def test_native_is_the_device_or_an_older_gpu_with_ptx():
    assert parse("native") == parse("native", -1) == parse("sm_80+ptx")


@pytest.mark.parametrize("name, near", [("a1000", "a100"), ("hoper", "hopper"), ("sm_91", "sm_9")])
def test_a_wrong_name_gives_an_error_with_similar_names(name, near):
    with pytest.raises(ValueError, match=f"target: got '{name}'; expected .*{near}"):
        parse(name)


@pytest.mark.parametrize("given", [[], 7, ["a100", 1], "a100+cubin", ""])
def test_malformed_names_are_refused(given):
    with pytest.raises((TypeError, ValueError), match="target: got"):
        parse(given)


def test_a_list_of_all_names_has_each_architecture_once():
    lines = listed()
    assert len(lines) == len({target.capability for target in TARGETS.values()})
    assert "sm_80: a100 a30 ampere" in lines
    assert all(parse(name) == [TARGETS[name]] for name in TARGETS)


@needs_nvrtc
def test_architectures_are_those_of_the_compiler():
    """The table has the compiler's architectures from sm_60 on; CUDA 13 renames 101 to 110."""
    known = set(nvrtc._known_architectures())
    table = {target.capability for target in TARGETS.values()}
    if 101 in known:
        known = known - {101} | {110}
    if nvrtc.version() < (13, 0):
        assert {one for one in known if one >= 60} - {62} <= table | {53, 88}
    assert {one for one in table if one >= 75} <= known | {60, 61, 70, 72, 110}


def test_facts_are_those_of_a_device():
    assert TARGETS["h200"] == Target(90, 132, 228 << 10)
    assert TARGETS["a100"].facts == (80, 108, 164 << 10)
