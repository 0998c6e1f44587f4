"""Parts of a cluster that are left out, because another program takes their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.cluster.cluster_processes import ClusterPlan, cluster_processes, server_process


@pytest.mark.parametrize(
    ("without", "profiles", "parts"),
    [
        ((), (), ["scheduler", "controllers"]),
        (("scheduler",), (), ["controllers"]),
        (("controllers",), (), ["scheduler"]),
        (("scheduler", "controllers"), (), []),
        # The loops of simulated nodes run beside the controllers.
        (("scheduler", "controllers"), ("dgx-h100",), ["controllers"]),
    ],
)
def test_parts_that_are_left_out_are_not_awaited(
    without: tuple[str, ...], profiles: tuple[str, ...], parts: list[str]
) -> None:
    plan = ClusterPlan(folder=Path("x"), without=without, profiles=profiles)
    process = server_process(plan)
    assert [part.name for part in process.more] == parts
    words = " ".join(process.arguments)
    assert all(f"--without {name}" in words for name in without)


@pytest.mark.parametrize(
    ("without", "names"),
    [
        (("scheduler",), ["server", "controllers"]),
        (("controllers",), ["server", "scheduler"]),
    ],
)
def test_isolated_parts_that_are_left_out_are_no_processes(
    without: tuple[str, ...], names: list[str]
) -> None:
    plan = ClusterPlan(folder=Path("x"), without=without, is_isolated=True)
    assert [each.name for each in cluster_processes(plan)] == names


def test_isolated_simulated_nodes_stay_without_the_controllers() -> None:
    plan = ClusterPlan(
        folder=Path("x"), without=("controllers",), profiles=("dgx-h100",), is_isolated=True
    )
    (process,) = [each for each in cluster_processes(plan) if each.name == "controllers"]
    at = process.arguments.index("--controllers")
    assert process.arguments[at + 1] == ""
