"""Random programs over pools, captures, replays and addresses on a real GPU, against the model."""

import random

from tests.support.models.pool_programs import run_programs


def test_random_programs_over_pools_and_graphs_follow_the_model(cuda):
    seed = random.SystemRandom().getrandbits(48)
    print(f"seed {seed}")
    run_programs(seed, 100, "cuda")
