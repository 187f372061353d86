"""The allocator against a shadow model over random programs, on deferred and immediate devices.

`allocator_shadow` describes what is compared. The seeded programs are longer and print their seed;
the state machine shrinks a failure to a few steps.
"""

import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gputensor._alloc import observe as report
from gputensor._driver import registry
from tests.support.models.allocator_shadow import MIB, Shadow, fragment, random_program

CAPACITY = 192 * MIB
STREAMS = 4
SIZES = st.one_of(
    st.integers(1, 4096),
    st.sampled_from([512, 1 << 19, MIB, MIB + 1, 2 * MIB, 20 * MIB, 40 * MIB]),
    st.integers(MIB, 24 * MIB),
)
CONFIGURATIONS = {
    "default": "",
    "no-thread-cache": "thread_cache:False",
    "no-page-reuse": "page_reuse:False",
    "plain-segments": "expandable_segments:False",
    "small-pages": "page_size_mb:2",
    "collecting": "garbage_collection_threshold:0.6,memory_limit_mb:160",
    "split-limit": "expandable_segments:False,max_split_size_mb:24",
}


@pytest.fixture(params=CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def configured(request, conf):
    if request.param:
        conf(request.param)


@pytest.mark.parametrize("mode", ["deferred", "immediate"])
def test_random_programs_never_see_a_block_that_is_in_use(configured, mode):
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}, mode {mode}")
    number = registry.open_host(capacity=CAPACITY, seed=seed if mode == "deferred" else None)
    try:
        random_program(number, seed, steps=250)
    finally:
        registry.close_host(number)


@pytest.mark.parametrize("mode", ["deferred", "immediate"])
def test_blocks_in_views_are_as_safe_as_others(mode):
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}, mode {mode}")
    number = registry.open_host(capacity=CAPACITY, seed=seed if mode == "deferred" else None)
    try:
        shadow = Shadow(number, rng=random.Random(seed))
        blocks = [shadow.malloc(20 * MIB, 1) for _ in range(8)]
        for block in blocks[::2]:
            shadow.free(block)
        shadow.use(shadow.malloc(40 * MIB, 1), 2)
        views = shadow.views()
        shadow.free_on(shadow.held[-1], 3)
        for block in list(shadow.held):
            shadow.free(block)
        for _ in range(25):
            fragment(shadow, shadow.rng)
            views += shadow.views()
            shadow.check()
            for block in list(shadow.held):
                if shadow.rng.random() < 0.5:
                    shadow.use(block, shadow.rng.randrange(STREAMS))
                if shadow.rng.random() < 0.6:
                    shadow.free(block)
                    shadow.check()
        assert views > 0, "no request was served by a view: the test shows nothing"
        shadow.finish()
    finally:
        registry.close_host(number)


class AllocatorMachine(RuleBasedStateMachine):
    seed = 0

    def __init__(self):
        super().__init__()
        self.number = registry.open_host(capacity=CAPACITY, seed=self.seed)
        self.shadow = Shadow(self.number, streams=STREAMS - 1, rng=random.Random(0))

    def teardown(self):
        try:
            self.shadow.finish()
        finally:
            registry.close_host(self.number)

    def pick(self, data):
        return self.shadow.held[data.draw(st.integers(0, len(self.shadow.held) - 1))]

    @rule(nbytes=SIZES, stream=st.integers(0, STREAMS - 1))
    def malloc(self, nbytes, stream):
        self.shadow.malloc(nbytes, stream)

    @rule(nbytes=st.integers(MIB, 8 * MIB), stream=st.integers(0, STREAMS - 1))
    def malloc_a_row(self, nbytes, stream):
        for _ in range(6):
            self.shadow.malloc(nbytes, stream)

    @precondition(lambda self: self.shadow.held)
    @rule(data=st.data())
    def free(self, data):
        self.shadow.free(self.pick(data))

    @precondition(lambda self: self.shadow.held)
    @rule(data=st.data(), stream=st.integers(0, STREAMS - 1))
    def free_on_another_stream(self, data, stream):
        self.shadow.free_on(self.pick(data), stream)

    @precondition(lambda self: len(self.shadow.held) > 3)
    @rule(step=st.integers(2, 3))
    def free_every_other(self, step):
        for block in self.shadow.held[::step]:
            self.shadow.free(block)

    @precondition(lambda self: self.shadow.held)
    @rule(data=st.data(), stream=st.integers(0, STREAMS - 1), early=st.booleans())
    def use(self, data, stream, early):
        self.shadow.use(self.pick(data), stream, early)

    @precondition(lambda self: self.shadow.held)
    @rule(data=st.data())
    def the_same_size_again(self, data):
        block = self.pick(data)
        self.shadow.free(block)
        self.shadow.malloc(block.nbytes, block.stream)

    @rule(stream=st.integers(0, STREAMS - 1))
    def wait_for_a_stream(self, stream):
        self.shadow.succeed("stream_synchronize", self.shadow.streams[stream])

    @rule()
    def compare(self):
        self.shadow.compare()

    @rule()
    def empty_cache(self):
        report.empty_cache(self.number)

    @invariant()
    def the_accounting_agrees(self):
        self.shadow.check()


class ImmediateAllocatorMachine(AllocatorMachine):
    seed = None


class OtherOrderAllocatorMachine(AllocatorMachine):
    seed = 12345


@pytest.mark.parametrize(
    "machine", [AllocatorMachine, OtherOrderAllocatorMachine, ImmediateAllocatorMachine]
)
def test_the_allocator_follows_its_model(machine):
    case = machine.TestCase
    case.settings = settings(
        max_examples=15,
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    case().runTest()
