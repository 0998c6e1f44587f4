"""No pod is left waiting that the pure cycle would place; nothing is leaked or given twice."""

from __future__ import annotations

from random import Random

import pytest

from tests.scheduler.live.histories import run_live_history


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_every_pod_that_fits_is_placed(seed: int) -> None:
    run_live_history(Random(seed), steps=40)


@pytest.mark.parametrize("seed", range(25))
def test_the_same_with_faults_of_the_server(seed: int) -> None:
    run_live_history(Random(1000 + seed), steps=40, faults=0.15)


@pytest.mark.parametrize("seed", range(15))
def test_the_same_with_two_schedulers(seed: int) -> None:
    run_live_history(Random(2000 + seed), steps=30, schedulers=2)
