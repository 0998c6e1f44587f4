"""KEP-6072: the standard attribute numaNode, on the board of its stories."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.tellers import explain, plan, run, story, the_one

BOARD = ("--profile", "r7725")
LISTS = (*BOARD, "--numa-node", "list")
ALIGNED = {"gpu": "gpu-0", "nic": "0001-3f-00-2", "cpu": "cpudevnuma004"}

FOUR = "003-31-numa-node-four-drivers"
THREE = "003-32-numa-node-inference"


def test_one_constraint_works_across_four_drivers() -> None:
    told = the_one(*story("numa-node", seeds=[FOUR]), *LISTS)
    assert told.devices == {**ALIGNED, "mem": "memory-numa4"}


def test_story_1_as_it_is_written_all_are_on_socket_0() -> None:
    told = the_one(*story("inference", seeds=[THREE]))
    assert told.devices == {"gpu": "gpu-socket0", "nic": "nic-socket0", "cpu": "cpu-numa0"}


def test_story_1_on_the_board() -> None:
    assert the_one(*story("numa-node", seeds=[THREE]), *LISTS).devices == ALIGNED


def test_story_2_pods_spread_over_numa_nodes_as_each_fills_up() -> None:
    told = plan(*story("numa-node", "four-pods"), *LISTS)
    assert [each.devices for each in told.values()] == [
        {"gpu": f"gpu-{n}", "nic": f"0001-3f-00-{2 + n}", "cpu": f"cpudevnuma00{4 + n}"}
        for n in range(4)
    ]


def test_story_3_lists_bring_quadrants_together() -> None:
    told = the_one(*story("numa-node", "quadrants"), *LISTS)
    assert told.devices == {"gpu": "gpu-0", "nic": "0001-3f-00-2"}


def test_story_3_scalars_do_not() -> None:
    text = explain(*story("numa-node", "quadrants"), *BOARD)
    assert "gpu: 5 on gpu-0 gpu-1 gpu-2 1 more; nic: 6 on 0001-3f-00-2" in text
    assert "numaNode fits all requests: gpu has 5, nic has 6" in text
    assert "give up the constraint on resource.kubernetes.io/numaNode" in text


@pytest.mark.parametrize("seed", [FOUR, THREE])
def test_with_scalars_a_gpu_and_a_nic_of_other_quadrants_never_meet(seed: str) -> None:
    text = explain(*story("numa-node", seeds=[seed]), *BOARD)
    assert "numaNode fits all requests: gpu has 5, nic has 6" in text


def test_a_pcie_root_does_not_bring_them_together() -> None:
    text = explain(*story("numa-node", "by-root"), *LISTS)
    assert "gpu: pci0001:00 on gpu-0 gpu-1 gpu-2 1 more; nic: pci0001:3e on" in text


OFF = ("--feature-gates", "DRAListTypeAttributes=false")


def test_lists_are_not_published_where_the_feature_is_off() -> None:
    result = run("plan", *story("numa-node", "quadrants"), *LISTS, *OFF)
    assert result.exit_code == 2
    remedy = "use --numa-node scalar, or --feature-gates DRAListTypeAttributes=true"
    assert remedy in " ".join(result.stderr.split())


def test_slices_whose_lists_are_dropped_are_refused(tmp_path: Path) -> None:
    """The lists are dropped, and an attribute without a value is invalid."""
    assert run("profiles", "r7725", "--numa-node", "list", "--write", str(tmp_path)).exit_code == 0
    result = run("devices", "--on", str(tmp_path), *OFF)
    assert result.exit_code == 1
    assert 'numaNode]: Invalid value: "": must specify one of' in result.stderr
    assert "fields of DRAListTypeAttributes are dropped" in result.stderr
