"""The device itself, its context and its code: facts, modules, functions and occupancy."""

import pytest

from gputensor._driver import registry
from tests.support.driver_calls import UNTOUCHED, Calls

INVALID_VALUE, INVALID_HANDLE, NOT_FOUND, UNKNOWN, NOT_SUPPORTED = 1, 400, 500, 999, 801
MULTIPROCESSORS, MAJOR, MINOR, SHARED = 16, 75, 76, 81
REGISTERS, DYNAMIC = 4, 8  # attributes of functions
IMAGE = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry kernel(.param .u64 unused)
{
    ret;
}
\0"""


def is_host(calls):
    return calls.device < 0


def load(calls):
    if is_host(calls):
        pytest.skip("a host device has no device code")
    return calls.make("module_load", IMAGE)


def test_facts_of_a_gpu_are_those_that_the_registry_reports(calls):
    if is_host(calls):
        for attribute in (MULTIPROCESSORS, MAJOR, MINOR, SHARED):
            assert calls.device_attribute(attribute) == (NOT_SUPPORTED, UNTOUCHED)
        return
    info = registry.device_info(calls.device)
    found = [calls.make("device_attribute", a) for a in (MULTIPROCESSORS, MAJOR, MINOR, SHARED)]
    assert found[0] == info["multiprocessors"]
    assert tuple(found[1:3]) == info["compute_capability"]
    assert found[3] == info["shared_nbytes_per_multiprocessor"]


def test_an_entered_context_is_left_as_it_was(calls):
    outer = calls.make("context_enter")
    inner = calls.make("context_enter")
    assert (inner == 0) is is_host(calls)
    assert calls.context_leave(inner) == 0
    assert calls.context_leave(outer) == 0
    assert calls.mem_info()[0] == 0


def test_a_host_device_has_no_code(calls):
    if not is_host(calls):
        pytest.skip("about host devices")
    assert calls.module_load(IMAGE) == (NOT_SUPPORTED, UNTOUCHED)
    assert calls.module_function(1, b"kernel") == (NOT_SUPPORTED, UNTOUCHED)
    assert calls.function_occupancy(1, 128, 0) == (NOT_SUPPORTED, UNTOUCHED)
    assert calls.function_attribute(1, REGISTERS) == (NOT_SUPPORTED, UNTOUCHED)
    assert calls.function_attribute_set(1, DYNAMIC, 0) == NOT_SUPPORTED
    assert calls.function_allow_shared(1, 0) == calls.module_unload(1) == NOT_SUPPORTED


def test_a_module_gives_its_functions_by_name(calls):
    module = load(calls)
    function = calls.make("module_function", module, b"kernel")
    assert calls.module_function(module, b"no such kernel") == (NOT_FOUND, UNTOUCHED)
    assert calls.function_allow_shared(function, 4096) == 0
    few, many = (calls.make("function_occupancy", function, n, 0) for n in (1024, 64))
    assert 1 <= few <= many
    assert calls.make("function_attribute", function, REGISTERS) > 0
    assert calls.make("function_attribute", function, DYNAMIC) == 4096
    assert calls.function_attribute_set(function, DYNAMIC, 2048) == 0
    assert calls.make("function_attribute", function, DYNAMIC) == 2048
    assert calls.module_unload(module) == 0


def test_wrong_arguments_about_code_are_refused(calls):
    module = load(calls)
    assert calls.module_load(None) == (INVALID_VALUE, UNTOUCHED)
    assert calls.module_function(0, b"kernel") == (INVALID_HANDLE, UNTOUCHED)
    assert calls.module_function(module, None) == (INVALID_VALUE, UNTOUCHED)
    assert calls.function_allow_shared(0, 0) == INVALID_HANDLE
    assert calls.function_occupancy(0, 128, 0) == (INVALID_HANDLE, UNTOUCHED)
    assert calls.module_unload(0) == INVALID_HANDLE
    function = calls.make("module_function", module, b"kernel")
    assert calls.function_occupancy(function, 0, 0) == (INVALID_VALUE, UNTOUCHED)
    assert calls.function_attribute(0, REGISTERS) == (INVALID_HANDLE, UNTOUCHED)
    assert calls.function_attribute(function, -1) == (INVALID_VALUE, UNTOUCHED)
    assert calls.function_attribute_set(0, DYNAMIC, 0) == INVALID_HANDLE
    assert calls.function_attribute_set(function, DYNAMIC, -5) == INVALID_VALUE
    assert calls.module_unload(module) == 0


def test_code_is_loaded_during_a_capture(calls):
    stream = calls.make("stream_create", 0)
    assert calls.capture_begin(stream, 0) == 0
    if not is_host(calls):
        module = load(calls)
        function = calls.make("module_function", module, b"kernel")
        assert calls.function_allow_shared(function, 1024) == 0
        assert calls.module_unload(module) == 0
    status, graph = calls.capture_end(stream)
    assert status == 0
    assert calls.graph_destroy(graph) == calls.stream_destroy(stream) == 0


def test_each_call_about_code_can_fail_without_a_leak(calls):
    """Fail call 1, 2, 3, ... until the scenario completes; failed calls leave outputs alone."""
    load(calls)  # skips on host devices

    def scenario():
        module = None
        try:
            for entry, arguments in [
                ("device_attribute", (MAJOR,)),
                ("context_enter", ()),
                ("module_load", (IMAGE,)),
            ]:
                status, made = getattr(calls, entry)(*arguments)
                if status:
                    assert (status, made) == (UNKNOWN, UNTOUCHED)
                    return False
            module = made
            status, function = calls.module_function(module, b"kernel")
            if status:
                assert (status, function) == (UNKNOWN, UNTOUCHED)
                return False
            status, blocks = calls.function_occupancy(function, 256, 0)
            if status:
                assert (status, blocks) == (UNKNOWN, UNTOUCHED)
                return False
            return calls.function_allow_shared(function, 1024) == 0
        finally:
            registry.fail_call(calls.device, 0)
            if module is not None:
                assert calls.module_unload(module) == 0

    for k in range(1, 100):
        registry.fail_call(calls.device, k, status=UNKNOWN)
        if scenario():
            break
    else:
        pytest.fail("the scenario never completed")
    assert k == 7


def test_calls_about_code_are_counted_and_traced(calls):
    registry.reset_counts(calls.device)
    registry.start_trace(calls.device)
    status, module = calls.module_load(IMAGE)
    trace = registry.take_trace(calls.device)
    assert registry.counts(calls.device)["module_load"] == 1
    (name, traced, arguments) = trace[0]
    assert (name, traced, arguments[1]) == ("module_load", status, module if status == 0 else 0)
    if status == 0:
        assert Calls(calls.device).module_unload(module) == 0
