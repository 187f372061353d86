"""The host device's memory against a model, over random programs of valid and invalid calls.

The model records which pages exist, where they are mapped, what they contain and how many bytes are
used. A valid call must do what the model does; an invalid one must be refused and change nothing.
"""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gputensor._driver import registry
from tests.support.driver_calls import UNTOUCHED, Calls

UNIT = 2 << 20
CAPACITY = 24 * UNIT
SLOTS = 8  # units in each reservation
INVALID_VALUE, OUT_OF_MEMORY = 1, 2


class MemoryModel(RuleBasedStateMachine):
    phantom = False

    def __init__(self):
        super().__init__()
        self.device = registry.open_host(capacity=CAPACITY, phantom=self.phantom)
        self.calls = Calls(self.device)
        self.allocations = {}  # ptr -> nbytes
        self.ranges = []  # va of reservations
        self.pages = {}  # handle -> [units, destroyed, content, mappings]
        self.mapped = {}  # va -> handle

    def teardown(self):
        registry.close_host(self.device)

    def used(self):
        return sum(self.allocations.values()) + sum(page[0] * UNIT for page in self.pages.values())

    def slots_taken(self, va, units):
        spans = [(at, at + self.pages[page][0] * UNIT) for at, page in self.mapped.items()]
        return any(start < va + units * UNIT and va < end for start, end in spans)

    def is_one_unit(self, va):
        return va in self.mapped and self.pages[self.mapped[va]][0] == 1

    def drop_if_unused(self, handle):
        if self.pages[handle][1] and not self.pages[handle][3]:
            del self.pages[handle]

    @rule(units=st.integers(1, 20))
    def allocate(self, units):
        status, ptr = self.calls.mem_alloc(units * UNIT)
        if self.used() + units * UNIT > CAPACITY:
            assert (status, ptr) == (OUT_OF_MEMORY, UNTOUCHED)
        else:
            assert status == 0 and ptr not in self.allocations
            self.allocations[ptr] = units * UNIT

    @precondition(lambda self: self.allocations)
    @rule(data=st.data(), offset=st.sampled_from([0, 0, 0, 512]))
    def free(self, data, offset):
        ptr = data.draw(st.sampled_from(sorted(self.allocations)))
        status = self.calls.mem_free(ptr + offset)
        assert status == (INVALID_VALUE if offset else 0)
        if not offset:
            del self.allocations[ptr]

    @precondition(lambda self: len(self.ranges) < 4)
    @rule()
    def reserve(self):
        va = self.calls.make("va_reserve", SLOTS * UNIT, 0)
        assert va % UNIT == 0
        self.ranges.append(va)

    @precondition(lambda self: self.ranges)
    @rule(data=st.data())
    def release(self, data):
        va = data.draw(st.sampled_from(self.ranges))
        refused = self.slots_taken(va, SLOTS)
        assert self.calls.va_release(va, SLOTS * UNIT) == (INVALID_VALUE if refused else 0)
        if not refused:
            self.ranges.remove(va)

    @rule(units=st.integers(1, 4))
    def create(self, units):
        status, page = self.calls.page_create(units * UNIT)
        if self.used() + units * UNIT > CAPACITY:
            assert (status, page) == (OUT_OF_MEMORY, UNTOUCHED)
        else:
            assert status == 0 and page not in self.pages
            self.pages[page] = [units, False, 0, 0]

    @precondition(lambda self: self.pages)
    @rule(data=st.data())
    def destroy(self, data):
        page = data.draw(st.sampled_from(sorted(self.pages)))
        refused = self.pages[page][1]
        assert self.calls.page_destroy(page) == (INVALID_VALUE if refused else 0)
        self.pages[page][1] = True
        self.drop_if_unused(page)

    @precondition(lambda self: self.pages and self.ranges)
    @rule(data=st.data(), slot=st.integers(0, SLOTS - 1))
    def map_page(self, data, slot):
        page = data.draw(st.sampled_from(sorted(self.pages)))
        va = data.draw(st.sampled_from(self.ranges)) + slot * UNIT
        units, destroyed, _, _ = self.pages[page]
        refused = destroyed or slot + units > SLOTS or self.slots_taken(va, units)
        assert self.calls.page_map(va, units * UNIT, page) == (INVALID_VALUE if refused else 0)
        if not refused:
            self.mapped[va] = page
            self.pages[page][3] += 1

    @precondition(lambda self: self.mapped)
    @rule(data=st.data(), count=st.integers(1, 4), excess=st.sampled_from([0, 0, 0, 1, -1]))
    def unmap(self, data, count, excess):
        """Unmap up to `count` adjacent pages in one call, or a unit too many or too few."""
        va = data.draw(st.sampled_from(sorted(self.mapped)))
        covered, end = [], va
        while end in self.mapped and len(covered) < count:
            covered.append(end)
            end += self.pages[self.mapped[end]][0] * UNIT
        nbytes = end - va + excess * UNIT
        refused = excess != 0 and not (excess == 1 and self.is_one_unit(end))
        refused = refused and not (
            excess == -1 and len(covered) > 1 and self.is_one_unit(covered[-1])
        )
        assert self.calls.page_unmap(va, nbytes) == (INVALID_VALUE if refused else 0)
        if refused:
            return
        if excess == 1:
            covered.append(end)
        elif excess == -1:
            covered.pop()
        for start in covered:
            page = self.mapped.pop(start)
            self.pages[page][3] -= 1
            self.drop_if_unused(page)

    @precondition(lambda self: self.mapped)
    @rule(data=st.data(), value=st.integers(1, 2**32 - 1))
    def write(self, data, value):
        va = data.draw(st.sampled_from(sorted(self.mapped)))
        page = self.pages[self.mapped[va]]
        assert self.calls.fill_async(va, value, 4, page[0] * UNIT // 4, 0) == 0
        page[2] = value

    @invariant()
    def mapped_pages_hold_what_was_written(self):
        if self.phantom:
            return
        for va, handle in self.mapped.items():
            units, _, content, _ = self.pages[handle]
            ends = np.empty(2, np.uint32)
            for i, at in enumerate((va, va + units * UNIT - 4)):
                self.calls.copy_async(ends[i:].ctypes.data, at, 4, 0)
            assert (ends == content).all()

    @invariant()
    def the_accounting_agrees(self):
        assert self.calls.mem_info() == (0, CAPACITY - self.used(), CAPACITY)
        live = registry.leaks(self.device)
        assert live["used_bytes"] == self.used()
        assert live["allocations"] == len(self.allocations)
        assert live["mappings"] == len(self.mapped)
        assert live["va_ranges"] == len(self.ranges)
        assert live["pages"] == sum(not destroyed for _, destroyed, _, _ in self.pages.values())


class PhantomMemoryModel(MemoryModel):
    phantom = True


@pytest.mark.parametrize("model", [MemoryModel, PhantomMemoryModel])
def test_memory_follows_the_model(model):
    case = model.TestCase
    case.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
    case().runTest()
