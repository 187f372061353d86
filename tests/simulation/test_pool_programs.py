"""A few random programs over pools, captures, replays and addresses; see pool_programs.py."""

import random

import pytest

from tests.support.models.pool_programs import run_programs


@pytest.mark.parametrize("part", range(6))
def test_random_programs_over_pools_and_graphs_follow_the_model(part):
    seed = random.SystemRandom().getrandbits(48)
    print(f"seed {seed}")
    run_programs(seed, 15)
