"""The workloads of the simulation, tiny: all pods get a node, and one more costs what changed."""

import pytest

from benchmarks._workloads import PLAIN, WORKLOADS, Variation, Workload, find
from benchmarks.simulation import Figures, main, simulate

NODES = 5
VARIATIONS = (PLAIN, Variation(shapes=7), Variation(seed=3), Variation(shapes=7, seed=5))


def run(name: str, nodes: int, variation: Variation = PLAIN) -> Figures:
    (workload,) = find([name])
    return simulate(workload.make(nodes, variation))


@pytest.mark.parametrize("variation", VARIATIONS, ids=str)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_all_pods_of_a_workload_get_a_node(workload: Workload, variation: Variation) -> None:
    figures = simulate(workload.make(NODES, variation))

    assert figures.pods > 0
    assert figures.placed == figures.pods


@pytest.mark.parametrize("name", ["template-500", "selector-500", "match-500", "consumable-500"])
def test_one_more_pod_of_a_kind_looks_at_the_nodes_that_changed(name: str) -> None:
    nodes = 120  # more than are asked one by one
    figures = run(name, nodes)

    assert figures.nodes_judged <= nodes + figures.pods
    assert figures.nodes_asked <= figures.pods + nodes


def test_a_fleet_of_another_size_costs_one_look_at_each_node_more() -> None:
    small, large = run("steady-half-500", 120), run("steady-half-500", 240)

    assert small.pods * 2 == large.pods
    assert (small.nodes_judged - 120) / small.pods == pytest.approx(
        (large.nodes_judged - 240) / large.pods, rel=0.05
    )


def test_many_kinds_of_pods_each_look_at_what_the_others_changed() -> None:
    nodes, shapes = 120, 10
    figures = run("template-500", nodes, Variation(shapes=shapes))

    assert figures.nodes_judged <= shapes * (nodes + figures.pods)
    assert figures.nodes_asked <= figures.pods + shapes * nodes


def test_full_nodes_are_not_asked_again_by_pods_of_the_same_kind() -> None:
    nodes = 120
    figures = run("match-500", nodes)  # the last pod fills the last node

    assert figures.nodes_asked <= figures.pods + nodes


def test_the_command_prints_a_line_for_each_workload(capsys: pytest.CaptureFixture[str]) -> None:
    main(["partitionable-500", "--nodes", "3", "--shapes", "2", "--shuffled", "--runs", "1"])

    out = capsys.readouterr().out
    assert "2 shapes of pods, mutated fleets" in out
    assert out.splitlines()[-1].startswith("partitionable-500")


def test_names_choose_workloads_whole_or_by_their_beginning() -> None:
    assert [each.name for each in find(["match-500"])] == ["match-500"]
    assert {each.name for each in find(["steady"])} == {
        "steady-empty-500",
        "steady-half-500",
        "steady-full-500",
    }
    assert find([]) == list(WORKLOADS)
