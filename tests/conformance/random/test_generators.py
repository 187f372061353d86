"""Generators: seeds, states, spawning, captures, streams, choices, and what is refused."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gputensor as gt
from gputensor import graphs
from gputensor._driver import registry
from gputensor.random import states


@pytest.fixture
def made(place):
    return gt.random.generator(seed=11, device=place)


def test_seeds_and_states_repeat_numbers(place, made):
    before = made.get_state()
    first = made.normal(size=33).tolist()
    second = made.normal(size=33).tolist()
    assert first != second
    made.set_state(before)
    assert made.normal(size=33).tolist() == first
    other = gt.random.generator(seed=11, device=place)
    other.set_state(made.state)
    assert other.normal(size=33).tolist() == second
    assert made.manual_seed(11).normal(size=33).tolist() == first
    assert (
        gt.random.generator(device=place).get_state()[0]
        != (gt.random.generator(device=place).get_state()[0])
    )


def test_default_generator(place):
    gt.random.seed(5)
    first = gt.random.uniform(size=7, device=place).tolist()
    state = gt.random.get_state(place)
    second = gt.random.rand(7, device=place).tolist()
    gt.random.manual_seed(5)
    assert gt.random.uniform(size=7, device=place).tolist() == first != second
    gt.random.set_state(state, place)
    assert gt.random.random(7, device=place).tolist() == second
    assert gt.random.generator(5, device=place).uniform(size=7).tolist() == first
    gt.random.seed()


def test_copies_continue_independently(made):
    first = copy.deepcopy(made)
    second = pickle.loads(pickle.dumps(made))
    want = made.random(5).tolist()
    assert first.device == made.device
    assert first.random(5).tolist() == want == second.random(5).tolist()


def test_the_offset_counts_words_and_can_be_set(place, made):
    first = made.random(7, dtype="float64").tolist()  # 14 words
    assert made.get_offset() == 16
    second = made.random(5, dtype="float32").tolist()
    assert made.get_offset() == 24
    for offset, numbers, dtype in ((16, second, "float32"), (0, first, "float64")):
        made.set_offset(offset)
        assert made.random(len(numbers), dtype=dtype).tolist() == numbers
    for offset in (4 * ((1 << 64) - 1), (1 << 130) - 4):  # the halves of the counter
        made.set_offset(offset)
        assert made.get_offset() == offset and made.initial_seed() == 11
        made.random(3)
        assert made.get_offset() == (offset + 4) % (1 << 130)
    seeds = {made.seed() for _ in range(3)}
    assert len(seeds) == 3 and made.initial_seed() in seeds and made.get_offset() == 0
    assert made.manual_seed(-3).initial_seed() == 2**64 - 3


def test_states_are_exchanged_in_a_capture_as_outside(place):
    with gt.Device(place):
        eager, captured = (gt.random.generator(seed=4) for _ in range(2))

        def draw(rng, old, new):
            rng.graphsafe_set_state(new)
            numbers = [rng.normal(size=5)]
            rng.graphsafe_set_state(old)
            return numbers + [rng.normal(size=5) for _ in range(2)]

        states = [(rng, rng.graphsafe_get_state(), rng.clone_state()) for rng in (eager, captured)]
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            held = draw(*states[1])
        for _ in range(3):
            want = [x.tolist() for x in draw(*states[0])]
            graph.replay()
            assert [x.tolist() for x in held] == want
            offsets = [[state.get_offset() for state in part] for part in states]
            assert offsets[0] == offsets[1] and offsets[0][1] == 2 * offsets[0][2] > 0


@pytest.mark.parametrize("is_captured", [False, True])
def test_the_default_generator_is_in_no_pool_of_the_program(is_captured):
    number = registry.open_host(capacity=64 << 20, seed=5)
    try:
        with gt.Device(number):
            gt.random.manual_seed(8)
            pool, graph = gt.memory.MemPool(), graphs.CUDAGraph()
            with gt.memory.use_mem_pool(pool):
                if is_captured:
                    with graphs.graph(graph, pool=pool):
                        x = gt.random.normal(size=5)
                    graph.replay()
                else:
                    x = gt.random.normal(size=5)
            assert x.tolist() == gt.random.generator(8).normal(size=5).tolist()
            pool_id = pool.id
            del x, pool
            graph.reset()
            gt.memory.empty_cache(number)
            assert gt.memory.memory_snapshot(pool_id) == []
            second = gt.random.normal(size=5).tolist()  # the state is still there
            both = gt.random.generator(8)
            assert [both.normal(size=5).tolist() for _ in range(2)][1] == second
    finally:
        gt.random.seed()
        registry.close_host(number)


def test_spawned_generators_follow_from_the_seed(place, made):
    one = [child.random(4).tolist() for child in made.spawn(3)]
    two = [child.random(4).tolist() for child in gt.random.generator(11, place).spawn(3)]
    assert one == two and len({tuple(part) for part in one}) == 3


def test_state_is_updated_in_place(place, made):
    target = gt.zeros((2, 4), dtype="uint64", device=place)
    target[1] = made
    assert target.tolist() == [[0] * 4, [11, 0, 0, 0]]
    got = gt.random.uniform(size=3, generator=target[1])
    assert got.tolist() == made.uniform(size=3).tolist()
    assert target[1].tolist() == made.get_state().tolist()


def test_each_replay_of_a_graph_draws_new_numbers(place):
    if place < -1:
        pytest.skip("captures of deferred devices are in tests/simulation")
    with gt.Device(place):
        made, again = (gt.random.generator(seed=3) for _ in range(2))
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            x = made.normal(size=(70, 9))
            y = made.integers(0, 100, size=5000)
        for _ in range(3):
            graph.replay()
            want = again.normal(size=(70, 9)), again.integers(0, 100, size=5000)
            assert np.array_equal(x.numpy(), want[0].numpy())
            assert np.array_equal(y.numpy(), want[1].numpy())


def test_default_generator_may_be_new_in_a_capture(place, monkeypatch):
    """Its state is made outside the graph, so replays go on drawing, and it outlives the graph."""
    monkeypatch.setattr(states, "_defaults", {})
    gt.random.manual_seed(77)
    again = gt.random.generator(seed=77, device="host")
    with gt.Device(place):
        graph = graphs.CUDAGraph()
        with graphs.graph(graph):
            x = gt.random.uniform(size=700)
            k = gt.random.integers(1000, size=5)
        for _ in range(3):
            graph.replay()
            assert np.array_equal(x.numpy(), again.uniform(size=700).numpy())
            assert np.array_equal(k.numpy(), again.integers(1000, size=5).numpy())
        del graph, x, k
        later = gt.zeros(4096, dtype="uint64")  # would take the memory of a state that was freed
        assert gt.random.uniform(size=9).tolist() == again.uniform(size=9).tolist()
        assert not later.numpy().any()
    gt.random.seed()


def test_seeds_in_a_capture_are_work_of_the_graph(place, monkeypatch):
    """Each replay begins with the seed, whether or not the generator existed before."""
    monkeypatch.setattr(states, "_defaults", {})
    want = gt.random.generator(seed=5, device="host").uniform(size=9).tolist()
    with gt.Device(place):
        for _ in range(2):
            graph = graphs.CUDAGraph()
            with graphs.graph(graph):
                gt.random.manual_seed(5)
                x = gt.random.uniform(size=9)
                y = gt.random.generator(seed=5).uniform(size=9)
            for _ in range(2):
                graph.replay()
                assert x.tolist() == want == y.tolist()
    gt.random.seed()


def test_threads_share_one_new_default_generator(place, monkeypatch):
    monkeypatch.setattr(states, "_defaults", {})
    gate = threading.Barrier(4)

    def draw(_):
        gate.wait()
        return gt.random.integers(1 << 62, size=50, device=place)

    with ThreadPoolExecutor(4) as pool:
        drawn = [x.tolist() for x in pool.map(draw, range(4))]
    assert len({number for part in drawn for number in part}) == 200


def test_draws_on_other_streams_follow_each_other(place, made):
    again = gt.random.generator(seed=11, device=place)
    parts = []
    for _ in range(6):
        with gt.stream(gt.Stream(place)):
            parts.append(made.uniform(size=1000))
    want = [again.uniform(size=1000) for _ in range(6)]
    assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in zip(parts, want, strict=True))


def test_tensors_as_parameters(place, made):
    loc = gt.asarray([0.0, 100.0], device=place)
    got = made.normal(loc, 0.5, (1000, 2)).numpy()
    assert got.dtype == np.float32 and abs(got.mean(axis=0) - [0, 100]).max() < 0.1
    got = made.uniform(loc, loc + 2, (1000, 2)).numpy()
    assert (got >= [0, 100]).all() and (got <= [2, 102]).all()
    assert made.exponential(gt.asarray([1.0, 50.0], device=place)).shape == (2,)


def test_orders_and_choices(place, made):
    x = gt.arange(30, device=place).reshape(10, 3)
    for axis in (0, 1):
        mixed = made.permutation(x, axis).numpy()
        assert np.array_equal(np.sort(mixed, axis), x.numpy())
    y = gt.copy(x)
    made.shuffle(y)
    assert np.array_equal(np.sort(y.numpy(), 0), x.numpy())
    assert made.choice(5, (2, 3)).shape == (2, 3) and made.choice(5).shape == ()
    assert sorted(made.choice(x[:, 0], 10, replace=False).tolist()) == list(range(0, 30, 3))
    assert made.choice(x, 2, axis=1).shape == (10, 2)
    assert made.randperm(4).shape == (4,) and made.randint(7, (2, 2)).shape == (2, 2)


def test_weighted_choices(place, made):
    if place >= 0:
        pytest.importorskip("cupy", reason="needs CuPy")
    p = gt.asarray([0.0, 3.0, 1.0], device=place)
    counts = np.bincount(made.choice(3, 8000, p=p).numpy(), minlength=3)
    assert counts[0] == 0 and abs(counts[1] / 8000 - 0.75) < 0.03
    assert sorted(made.choice(3, 2, replace=False, p=p).tolist()) == [1, 2]
    rows = gt.asarray([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], device=place)
    got = made.multinomial(rows, 100, replacement=True).numpy()
    assert got.shape == (2, 100) and set(got[0]) == {1, 2} and not got[1].any()
    assert sorted(made.multinomial(rows[0], 2).tolist()) == [1, 2]


def test_categories_of_rows(place, made):
    logits = np.full((3, 4, 5), -np.inf, np.float32)
    want = np.arange(15).reshape(3, 5) % 4
    np.put_along_axis(logits, want[:, None], 0.0, 1)
    x = gt.asarray(logits, device=place)
    assert np.array_equal(made.categorical(x, 1).numpy(), want)
    got = gt.random.categorical(made.state, x, 1, shape=(2, 3, 5)).numpy()
    assert np.array_equal(got, np.stack([want, want]))
    assert gt.random.categorical(None, x, -1).shape == (3, 4)


def test_nothing_is_drawn_for_no_elements(made):
    before = made.get_state().tolist()
    assert made.random((3, 0)).shape == (3, 0) and made.permutation(0).shape == (0,)
    assert made.get_state().tolist() == before


def ones(rng, shape, dtype="float32"):
    return gt.ones(shape, dtype=dtype, device=rng.device)


def uniform(generator):
    return gt.random.uniform(generator=generator)


REFUSED = {
    "low above high": (ValueError, "uniform: high: got 1", lambda g: g.uniform(2, 1)),
    "infinite end": (ValueError, "uniform: high: got inf", lambda g: g.uniform(2, gt.inf)),
    "deviation": (ValueError, "normal: scale: got -1", lambda g: g.normal(0, -1)),
    "dtype": (TypeError, "normal: dtype: got int32", lambda g: g.normal(dtype="int32")),
    "complex": (TypeError, "random: dtype: got complex64", lambda g: g.random(dtype="complex64")),
    "float integers": (TypeError, "integers: dtype: got", lambda g: g.integers(3, dtype="float32")),
    "no integer": (ValueError, "integers: ends: got 3 to 2", lambda g: g.integers(3, 3)),
    "beyond int8": (ValueError, "integers: ends: got 128", lambda g: g.integers(129, dtype="int8")),
    "shape of gamma": (ValueError, "gamma: shape: got 0", lambda g: g.gamma(0)),
    "trials": (ValueError, "binomial: n: got -1", lambda g: g.binomial(-1, 0.5)),
    "share": (ValueError, "binomial: p: got 1.5", lambda g: g.binomial(5, 1.5)),
    "alpha": (TypeError, "dirichlet: alpha: got float", lambda g: g.dirichlet(2.0)),
    "chance": (ValueError, "bernoulli: p: got 1.5", lambda g: g.bernoulli(1.5)),
    "seed": (ValueError, "seed: got 18446744073709551616", lambda g: g.manual_seed(1 << 64)),
    "offset": (ValueError, "offset: got 6; expected a multiple of 4", lambda g: g.set_offset(6)),
    "no offset": (TypeError, "offset: got float", lambda g: g.set_offset(4.0)),
    "none": (TypeError, "graphsafe_set_state", lambda g: g.graphsafe_set_state(5)),
    "state": (ValueError, "state: got float64", lambda g: g.set_state(np.zeros(4))),
    "too many": (ValueError, "choice: size: got 4", lambda g: g.choice(3, 4, replace=False)),
    "no axis": (IndexError, "permutation", lambda g: g.permutation(ones(g, 3), 1)),
    "negative weight": (ValueError, "choice: p: got -1; ", lambda g: g.choice(2, p=[-1, 2])),
    "NaN weight": (ValueError, "choice: p: got nan; ", lambda g: g.choice(2, p=[gt.nan, 2])),
    "no weight": (ValueError, "choice: p: got .0, 0.; ", lambda g: g.choice(2, p=[0, 0])),
    "text": (TypeError, "choice: p: got str; ", lambda g: g.choice(2, p=["1", 2])),
    "few weights": (
        ValueError,
        "choice: size: got 2; expected at most 1, the elements of weights above 0",
        lambda g: g.choice(3, 2, replace=False, p=[1, 0, 0]),
    ),
    "share of trials": (ValueError, "pvals: got -1; ", lambda g: g.multinomial(3, [2, -1])),
    "children": (TypeError, "spawn: n_children: got float", lambda g: g.spawn(1.5)),
    "logits": (TypeError, "categorical: logits: got", lambda g: g.categorical(ones(g, 3, "int8"))),
    "shape": (ValueError, "shape", lambda g: g.categorical(ones(g, (2, 3)), shape=(3,))),
    "generator": (TypeError, "uniform: generator: got int", lambda g: uniform(5)),
    "three": (ValueError, "generator: got uint64", lambda g: uniform(ones(g, 3, "uint64"))),
    "samples": (ValueError, "num_samples: got 4", lambda g: g.multinomial(ones(g, 3), 4)),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_change_nothing(made, case):
    kind, text, use = REFUSED[case]
    before = made.get_state().tolist()
    with pytest.raises(kind, match=text):
        use(made)
    assert made.get_state().tolist() == before


def test_draw_without_a_generator_is_refused_in_a_program(place):
    with pytest.raises(gt.TraceError, match="generator"):
        gt.compile(lambda x: x + gt.random.uniform(size=3), gt.spec((3,)))


def test_state_of_a_program_draws_the_numbers_of_a_generator(place):
    def step(x, *, state):
        y = x + gt.random.normal(size=(3,), generator=state["random"])
        return y, gt.random.categorical(state["random"], x, shape=(2,))

    with gt.Device(place):
        program = gt.compile(step, gt.spec((3,)), state={"random": gt.random.spec()})
        x = gt.asarray([0.5, 0.0, 1.0])
        with program.session() as session:
            session.state["random"][...] = gt.random.generator(seed=4)
            rng = gt.random.generator(seed=4)
            for _ in range(3):
                got = session(x)
                want = x + rng.normal(size=3), rng.categorical(x, shape=(2,))
                pairs = zip(got, want, strict=True)
                assert all(np.array_equal(a.numpy(), b.numpy()) for a, b in pairs)


def test_seeds_may_be_those_of_numpy(where):
    sequence = gt.random.SeedSequence(5)
    first, second = (gt.random.default_rng(one, where) for one in sequence.spawn(2))
    want = np.random.SeedSequence(5).spawn(2)[1].generate_state(1, np.uint64)[0]
    assert second.initial_seed() == want != first.initial_seed()
    draws = gt.random.default_rng([3, 2**70], where).random(4)
    again = gt.random.default_rng(np.random.SeedSequence([3, 2**70]), where).random(4)
    np.testing.assert_array_equal(draws.numpy(), again.numpy())
    one = gt.random.Generator(np.array([1, 2]), where).initial_seed()
    assert one == gt.random.Generator((1, 2), where).initial_seed()
    with pytest.raises(TypeError, match="seed: got PCG64; expected an int, ints, a SeedSequence"):
        gt.random.default_rng(np.random.PCG64(3), where)
    for wrong, kind in (([], TypeError), (["1"], TypeError), ([-1], ValueError)):
        with pytest.raises(kind, match="seed: got .*; expected (one of )?ints of 0 or more"):
            gt.random.seed(wrong)


def test_draws_into_a_tensor_and_numpys_names(where):
    rng = gt.random.default_rng(4, where)
    same = gt.random.default_rng(4, where)
    x = gt.zeros((2, 3), "float64", device=where)
    for name, given in (
        ("random", ()), ("standard_normal", ()), ("standard_exponential", ()),
        ("standard_gamma", (2.0,)),
    ):  # fmt: skip
        assert getattr(rng, name)(*given, out=x) is x
        want = getattr(same, name)(*given, size=(2, 3), dtype="float64")
        np.testing.assert_array_equal(x.numpy(), want.numpy())
    kept = x.numpy()
    with pytest.raises(ValueError, match=r"random: out: got \(2, 3\); expected shape \(4,\)"):
        rng.random((4,), out=x)
    with pytest.raises(TypeError, match="standard_normal: out: got list"):
        rng.standard_normal(out=[1.0])
    np.testing.assert_array_equal(x.numpy(), kept)
    np.testing.assert_array_equal(rng.random(3).numpy(), same.random(3).numpy())
    y = gt.arange(5, device=where)
    assert sorted(rng.permuted(x=y, out=y).tolist()) == [0, 1, 2, 3, 4]
    assert int(rng.multinomial(n=5, pvals=[0.5, 0.5]).sum()) == 5
    assert rng.choice(5, 2, replace=False, shuffle=False).shape == (2,)
    assert rng.multivariate_normal([0, 0], [[1, 0], [0, 1]], method="cholesky").shape == (2,)
    gt.random.seed(seed=3)


def test_lists_are_parameters_as_in_numpy(place):
    rng = gt.random.generator(3, device=place)
    assert sorted(rng.permutation([5, 6, 7]).tolist()) == [5, 6, 7]
    for call in ("normal", "uniform", "laplace", "gamma"):
        twin = gt.random.generator(3, device=place)
        rng = gt.random.generator(3, device=place)
        got = getattr(rng, call)([1.0, 100.0], [2.0, 200.0])
        want = getattr(twin, call)(
            *(gt.asarray(one, device=place) for one in ([1.0, 100.0], [2.0, 200.0]))
        )
        assert got.tolist() == want.tolist() and str(got.device) == str(rng.device)
    assert rng.poisson([0.0, 1e4]).tolist()[0] == 0 and rng.exponential([0.0, 1.0]).tolist()[0] == 0
    assert gt.random.normal([0.0, 1e6], 1.0, (5, 2), device=place).shape == (5, 2)


def test_dtypes_by_position_as_in_numpy(place):
    rng = gt.random.generator(3, device=place)
    for call in (rng.random, rng.standard_normal, rng.standard_exponential):
        assert call((2, 3), "float64").dtype == call(3, np.float64).dtype == gt.float64
    assert rng.standard_gamma(2.0, (2,), "float64").dtype == gt.float64
    dice = rng.integers(1, 6, (50,), "int8", True)
    assert dice.dtype == gt.int8 and 1 <= int(dice.min()) and int(dice.max()) == 6
    assert gt.random.randint(0, 5, (2,), "int32", device=place).dtype == gt.int32
