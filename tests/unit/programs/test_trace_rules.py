"""The rules of tracing, one test each: what a traced function may do, and the errors it gets."""

import threading

import numpy as np
import pytest

import gputensor as gt
from gputensor import blas, graphs
from gputensor import device as devices
from gputensor._driver.registry import close_host, open_host
from gputensor.errors import TraceError
from gputensor.programs.function import Number
from gputensor.programs.trace_device import active
from tests.support.programs.traced import both, data_of, traced

F32 = gt.float32


def refused(match, function, *specs, **trees):
    """Check that tracing raises, and that the error names a line of this file."""
    with pytest.raises(TraceError, match=match) as caught:
        traced(function, *specs, **trees)
    assert caught.value.line.startswith("test_trace_rules.py:"), caught.value
    assert str(caught.value).startswith(f"{caught.value.line}: ")
    assert active() is None


def names(function):
    return [call.name for call in function.calls]


# ---- Python values, loops, shapes


def test_python_code_runs_while_tracing_and_only_its_calls_remain():
    def model(x, times):
        for _turn in range(times):
            x = x + x.shape[0]
        return x if times > 2 else -x

    assert len(traced(model, gt.spec((4,)), 3).calls) == 3
    assert len(traced(model, gt.spec((4,)), 1).calls) == 2
    both(model, gt.ones(4, device="host"), 3)


def test_each_call_keeps_the_line_that_made_it():
    def model(x):
        y = x + 1
        return gt.sum(y * x)

    lines = [call.line for call in traced(model, gt.spec((4,))).calls]
    first = int(lines[0].split(":")[1])
    assert lines == [f"test_trace_rules.py:{first + step}" for step in (0, 1, 1)]


def test_a_dim_is_the_sample_at_hand():
    sizes = []

    def model(x):
        sizes.append(x.shape[0])
        return x / x.shape[0]

    function = traced(model, gt.spec((gt.Dim("n", 1, 100), 3)))
    assert len(sizes) >= 5 and {1, 2, 100} <= set(sizes)
    assert any(size % 2 for size in sizes if 2 < size < 100)
    assert function.calls[0].reads[1].value == ("dim", "n")
    both(model, gt.ones((7, 3), device="host"), dims={"n": (1, 100)})


# ---- facts


def test_facts_are_those_of_the_target_and_are_recorded():
    def model(x):
        assert x.device == gt.Device("host") and x.device.type == "host"
        if devices.is_available() or devices.device_count() > 0:
            return x
        return x + 1 if devices.is_bf16_supported() else x

    function = traced(model, gt.spec((2,)))
    wanted = {"is_available": False, "device_count": 0, "is_bf16_supported": True}
    assert function.facts == wanted
    assert len(function.calls) == 1


def test_a_fact_that_differs_is_refused_when_the_program_is_opened():
    from gputensor.errors import ProgramError
    from gputensor.programs import facts

    facts.check({"is_available": False, "current_device": -1}, -1, "main")
    rule = "is_available: got False; expected True, with which 'main' was traced"
    with pytest.raises(ProgramError, match=rule):
        facts.check({"is_available": True}, -1, "main")
    with pytest.raises(ProgramError, match="no answer"):
        facts.check({"get_device_capability": [9, 0]}, -1, "main")
    with pytest.raises(ProgramError, match=r"main\.facts: got something"):
        facts.check({"something": 1}, -1, "main")


def test_other_questions_about_the_device_are_refused():
    refused("mem_get_info", lambda x: devices.mem_get_info() and x, gt.spec((2,)))


# ---- lifting


def test_a_tensor_from_outside_is_a_constant_where_it_meets_a_traced_one():
    outside = gt.arange(4, dtype=F32, device="host")
    for function in (
        lambda x: x + outside,
        lambda x: outside - x,
        lambda x: gt.where(x > 0, outside, x),
        lambda x: gt.concat([x, outside]),
        lambda x: gt.clip(x, outside, outside + 1),
        lambda x: gt.dot(x, outside),
        lambda x: gt.linear(x, gt.reshape(outside, (1, 4)), gt.ones(1, device="host")),
        lambda x: gt.reshape(x, (2, 2)) @ gt.reshape(outside, (2, 2)).T,
        lambda x: gt.take(outside, gt.astype(x, gt.int64)),
        lambda x: gt.take(x, gt.astype(outside, gt.int64)),
        lambda x: gt.add(outside, outside, out=gt.empty_like(x)),
        lambda x: gt.sum(outside, out=gt.zeros((), device="host")) + x,
    ):
        data = data_of(function, gt.spec((4,)))
        assert any(name.startswith("constant.") for name in data.weights), data.weights
        both(function, gt.asarray([1.0, 0.0, 3.0, 2.0], device="host"))


def test_a_leaf_of_the_weights_is_that_weight_wherever_it_is_met():
    w = gt.ones((3, 4), device="host")

    def model(x, *, weights):
        return x @ w.T + gt.sum(weights["layers"][0]["q"] * w[1])

    data = data_of(model, gt.spec((2, 4)), weights={"layers": [{"q": w}]})
    assert set(data.weights) == {"layers.0.q"}
    both(model, gt.ones((2, 4), device="host"), weights={"layers": [{"q": w}]})


def test_views_of_one_tensor_from_outside_keep_their_strides():
    outside = gt.reshape(gt.arange(12, dtype=F32, device="host"), (3, 4))

    def model(x):
        return x + outside.T[1:, ::-1] + outside[:, 1:].T

    data = data_of(model, gt.spec((3, 3)))
    both(model, gt.ones((3, 3), device="host"))
    assert all(weight.source.flags.c_contiguous for weight in data.weights.values())


def test_tensors_from_outside_alone_are_computed_now():
    outside = gt.ones(4, device="host")

    def model(x):
        folded = outside * 2 + gt.zeros_like(outside)
        folded += 1
        folded[0] = 5
        assert folded.numpy()[1] == 3 and bool(folded[0] > 4)
        return x + folded

    function = traced(model, gt.spec((4,)))
    assert len(function.calls) == 1
    both(model, gt.ones(4, device="host"))


def test_numpy_arrays_and_numbers_are_constants_that_may_be_written_to():
    table = np.arange(4, dtype=np.float32)

    def model(x):
        total = gt.asarray(table)
        total += x
        row = gt.asarray([1.0, 2.0, 3.0, 4.0])
        row[1:3] = x[:2]
        return total, row, x * gt.asarray(3)

    data = data_of(model, gt.spec((4,)))
    assert sorted(data.weights) == ["constant.0", "constant.1", "constant.2"]
    table[:] = -1  # the trace has a copy
    assert data.weights["constant.0"].source.tolist() == [0, 1, 2, 3]
    both(model, gt.ones(4, device="host"))


def test_equal_constants_of_several_functions_are_one():
    outside = gt.ones(4, device="host")
    spec = gt.spec((4,))
    functions = {"one": (lambda x: x + outside, spec), "two": (lambda x: x * outside, spec)}
    assert list(data_of(functions).weights) == ["constant.0"]


# ---- writes


def test_writing_to_a_tensor_from_outside_is_refused():
    outside = gt.zeros(4, device="host")

    def in_place(x):
        outside[1:] += x[1:]
        return x

    def assigned(x):
        outside[...] = x
        return x

    def alone(x):
        outside[0] = 3
        return x

    def output(x):
        return gt.add(x, 1, out=outside)

    def reduced(x):
        return gt.sum(x, axis=0, out=outside[0])

    def product(x):
        return gt.matmul(x, x, out=outside[0])

    def scattered(x):
        outside[gt.asarray([1, 2])] = x[:2]
        return x

    for function in (in_place, assigned, alone, output, reduced, product, scattered):
        refused("a write to a tensor from outside; pass it in state", function, gt.spec((4,)))
    assert outside.tolist() == [0, 0, 0, 0]


def test_writing_to_an_argument_or_weight_is_refused():
    def argument(x):
        x += 1
        return x

    def weight(x, *, weights):
        weights["w"][0] = 1
        return x

    refused("a write to the argument 'x'; copy it first, or pass", argument, gt.spec((4,)))
    w = {"w": gt.ones(4, device="host")}
    refused("a write to the weight 'w'; copy it first", weight, gt.spec((4,)), weights=w)
    refused("a write to the constant", lambda x: lifted(x, w["w"]), gt.spec((4,)))


def lifted(x, outside):
    inside = outside.to_device("cuda")
    inside += x
    return inside


def test_state_is_written_in_place():
    def model(x, *, state):
        state["count"] += 1
        state["row"][1:3] = x
        state["row"][...] = state["row"] * 2
        return state["row"] + state["count"]

    state = {"count": gt.spec((), gt.int32), "row": gt.ones(4, device="host")}
    function = traced(model, gt.spec((2,)), state=state)
    first, last = function.states["row"]
    assert function.values[first].base is None
    chain = [last]
    while function.values[chain[-1]].base is not None:
        chain.append(function.values[chain[-1]].base)
    assert chain[-1] == first and len(chain) == 3
    both(model, gt.full((2,), 3.0, device="host"), state=state, times=3)


def test_state_that_is_replaced_is_refused():
    def model(x, *, state):
        state["count"] = state["count"] + 1
        return x

    with pytest.raises(TraceError, match=r"the state 'count' was replaced; write to it"):
        traced(model, gt.spec((2,)), state={"count": gt.spec((), gt.int32)})


# ---- values


def test_uses_of_a_value_are_refused_with_advice():
    for what, way_out, function in (
        (r"bool\(\)", "gt.cond", lambda x: x if gt.sum(x) > 0 else -x),
        (r"item\(\)", "Python value", lambda x: x.item()),
        (r"int\(\)", "Python value", lambda x: int(x[0])),
        (r"float\(\)", "Python value", lambda x: float(x[0])),
        (r"numpy\(\)", "read it outside", lambda x: x.numpy()),
        (r"numpy\(\)", "read it outside", lambda x: x.tolist()),
        (r"numpy\(\)", "read it outside", lambda x: np.asarray(x)),
        (r"nonzero\(\)", "gt.where", lambda x: gt.nonzero(x)),
        ("a mask as an index", "gt.where", lambda x: x[x > 0]),
        ("a mask as an index", "gt.where", lambda x: put(x + 0, x > 0, x[1:])),
        ("print", "shape and dtype", lambda x: print(x)),
        (r"index\(\)", "gt.take", lambda x: range(4)[gt.argmax(x)]),
        ("DLPack", "share", lambda x: np.from_dlpack(x)),
        (r"data_ptr\(\)", "share", lambda x: x.data_ptr()),
    ):
        refused(f"{what} needs a value; .*{way_out}", function, gt.spec((1,)))


def put(x, key, value):
    x[key] = value
    return x


def test_work_outside_of_registered_calls_is_refused():
    for name, function in (
        ("sort", lambda x: gt.sort(x.astype("complex64"))),
        ("argsort", lambda x: gt.argsort(x.astype("complex64"))),
    ):
        refused(rf"{name}\(\) in a program; call it outside", function, gt.spec((4,)))


def test_a_mask_that_takes_a_number_needs_no_value():
    both(lambda x: put(gt.copy(x), x > 1, 0), gt.arange(4, dtype=F32, device="host"))


# ---- precision, streams, devices


def test_precision_contexts_are_resolved_into_each_product():
    def model(x):
        with blas.precision(allow_tf32=True, deterministic=True):
            fast = x @ x
        return fast + x @ x

    products = [call for call in traced(model, gt.spec((3, 3))).calls if call.name == "product"]
    flags = [call.attributes["precision"] for call in products]
    assert flags[0] != flags[1] and len(flags) == 2


def test_calls_carry_their_stream():
    outside = gt.Stream("host")

    def model(x):
        inside = gt.Stream()
        with gt.stream(inside):
            y = x + 1
        with gt.stream(outside):
            z = x * 2
            assert active() is None or gt.current_stream() is not outside
        inside.wait_stream(outside)
        event = gt.Event()
        event.record(inside)
        event.wait()
        gt.current_stream().wait_event(event)
        gt.synchronize()
        event.synchronize()
        with gt.ordering("manual"):
            return y + z

    assert [call.stream for call in traced(model, gt.spec((3,))).calls] == [1, 2, 0]
    both(model, gt.ones(3, device="host"))


def test_times_of_events_and_graphs_are_refused():
    def timed(x):
        first, last = gt.Event(enable_timing=True), gt.Event(enable_timing=True)
        first.record()
        last.record()
        return first.elapsed_time(last)

    def captured(x):
        with graphs.graph(graphs.CUDAGraph()):
            return x + 1

    refused("the time between events", timed, gt.spec((2,)))
    refused("a graph", captured, gt.spec((2,)))


def test_devices_are_the_trace_device_or_refused():
    def model(x):
        names = (None, "host", "cuda", "cuda:0", x.device, gt.Device("host"))
        made = [gt.full((2,), index, dtype=F32, device=name) for index, name in enumerate(names)]
        with gt.Device("cuda"):
            made.append(gt.ones(2))
        gt.set_device("host")
        return sum(made, x)

    assert len(traced(model, gt.spec((2,))).calls) == 14
    other = open_host()
    try:
        refused("device 'host:", lambda x: gt.ones(2, device=other) + x, gt.spec((2,)))
    finally:
        close_host(other)
    refused("device 'cuda:1'", lambda x: x.to_device("cuda:1"), gt.spec((2,)))


def test_a_program_cannot_be_called_with_traced_tensors():
    program = gt.compile(lambda x: x + 1, gt.spec((2,)), target="host")
    outside = gt.ones(2, device="host")
    assert len(traced(lambda x: program(outside) * x, gt.spec((2,))).calls) == 1
    refused("a call of a program; call the function", lambda x: program(x), gt.spec((2,)))


def test_a_tensor_of_a_trace_is_closed_afterwards():
    kept = []
    traced(lambda x: kept.append(x) or x + 1, gt.spec((2,)))
    with pytest.raises(gt.DeviceError, match="closed"):
        kept[0] + 1


def test_a_trace_belongs_to_its_thread_and_does_not_nest():
    def elsewhere(x):
        caught = []

        def work():
            try:
                x + 1
            except TraceError as error:
                caught.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        raise caught[0]

    with pytest.raises(TraceError, match="in another thread"):
        traced(elsewhere, gt.spec((2,)))
    refused("a trace inside", lambda x: gt.trace(lambda y: y, gt.spec((2,))), gt.spec((2,)))


def test_other_threads_compute_meanwhile():
    results = []

    def model(x):
        def work():
            a = gt.ones(3, device="host")
            a += 1
            results.append(a.tolist())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return x

    traced(model, gt.spec((2,)))
    assert results == [[2, 2, 2]]


# ---- versions, aliases, views


def test_aliases_views_and_out_are_versions_of_memory():
    def model(x):
        y = gt.empty((4, 4))
        y[:2] = x
        y[2:] = x * 2
        view = y[1:3].T
        view += 1
        gt.multiply(y, 2, out=y)
        gt.add(y[0], y[3], out=view[:, 0][:4])
        return y, view

    both(model, gt.reshape(gt.arange(8, dtype=F32, device="host"), (2, 4)))


def test_unwritten_memory_is_zeros():
    function = traced(lambda x: x + gt.empty(3), gt.spec((3,)))
    assert function.calls[0].reads == (Number(0, "uint8"),)


def test_outputs_are_whole_temporaries_of_their_own():
    def model(x):
        y = x + 1
        return y, y, y.T, y[:1], x, gt.zeros((0, 3)), {"z": [y[1, 2]]}

    both(model, gt.ones((2, 3), device="host"))
    function = traced(model, gt.spec((2, 3)))
    used = [argument.operand.value for argument in function.outputs]
    assert len(set(used)) == len(used)


def test_a_failed_trace_leaves_nothing_open():
    before = gt.current_stream("host")
    for _turn in range(40):  # more often than there are host devices
        with pytest.raises(ZeroDivisionError):
            traced(lambda x: 1 // 0, gt.spec((2,)))
    assert active() is None and gt.current_stream("host") == before
    assert gt.ones(2, device="host").tolist() == [1, 1]
