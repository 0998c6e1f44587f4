"""The tables of KEP-6072, row by row, and its stories, on the boards that it names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from moorage.allocator import Allocated, Unsatisfied
from moorage.api.resource.v1 import Device, ResourceSlice
from moorage.hardware.attributes import NUMA_NODE, PCIE_ROOT, NumaNodeForm
from tests.hardware.boards import Bench, claim, devices_of, fleet_of

GPU, NIC, CPU = "gpu.nvidia.com", "sriovnetwork.k8snetworkplumbingwg.io", "dra.cpu"
MEMORY, DISK, NET = "dra.memory", "dra.nvme", "dra.net"


def named(devices: list[Device], name: str) -> Device:
    (found,) = (device for device in devices if device.name == name)
    return found


# --- "Examples (AMD EPYC 9825, NPS4, 8 NUMA nodes)" ---------------------------------------------

EXAMPLES = [
    (CPU, "cpudevnuma004", 4, None),
    (MEMORY, "memory-numa4", 4, None),
    (DISK, "nvme0", 0, (0, 1, 2, 3)),
    (NIC, "0001-3f-00-2", 6, (6, 4, 5, 7)),
]


@pytest.mark.parametrize(("driver", "name", "node", "nodes"), EXAMPLES)
def test_examples_have_their_values(
    driver: str, name: str, node: int, nodes: tuple[int, ...] | None
) -> None:
    scalar = named(devices_of("r7725", driver, NumaNodeForm.SCALAR), name).attributes[NUMA_NODE]
    assert (scalar.int_value, scalar.int_values) == (node, None)
    listed = named(devices_of("r7725", driver), name).attributes[NUMA_NODE]
    # CPU and memory are in a NUMA node themselves: they publish it as it is.
    assert listed.int_values == nodes if nodes else listed.int_value == node


@pytest.mark.parametrize(
    ("node", "row"),
    [(0, "10, 12, 12, 12, 32, 32, 32, 32"), (6, "32, 32, 32, 32, 12, 12, 10, 12")],
)
def test_distances_are_those_of_the_examples(node: int, row: str) -> None:
    distances = fleet_of("r7725").profile.board.numa.distances[node]
    assert ", ".join(map(str, distances)) == row


# --- "matchAttribute matching" ------------------------------------------------------------------

# CPU, NIC's NUMA node, form, whether they match. NICs of the board are in nodes 1, 4 and 6.
MATCHING = [
    ("cpudevnuma004", "0001:3f:00.0", NumaNodeForm.SCALAR, False),  # 4 ≠ 6
    ("cpudevnuma004", "0001:c5:00.0", NumaNodeForm.SCALAR, True),  # 4 = 4
    ("cpudevnuma004", "0001:3f:00.0", NumaNodeForm.LIST, True),  # {4} ∩ {6, 4, 5, 7}
    ("cpudevnuma000", "0001:3f:00.0", NumaNodeForm.LIST, False),  # {0} ∩ {6, 4, 5, 7}
]


@pytest.mark.parametrize(("cpu", "nic", "form", "matches"), MATCHING)
def test_pairs_match_as_the_tables_say(
    cpu: str, nic: str, form: NumaNodeForm, matches: bool
) -> None:
    fleet = fleet_of("r7725", form)
    is_virtual = nic == "0001:3f:00.0"
    driver = NIC if is_virtual else NET
    name = "0001-3f-00-2" if is_virtual else "pci-0001-c5-00-0"
    wanted = {CPU: cpu, driver: name}
    wanted_claim = claim("pair", {"cpu": CPU, "nic": driver}, NUMA_NODE)
    answer = Bench(fleet, only(fleet.slices, wanted)).ask(wanted_claim)
    assert isinstance(answer, Allocated if matches else Unsatisfied)


def only(slices: Iterable[ResourceSlice], wanted: dict[str, str]) -> Iterator[ResourceSlice]:
    """Give the slices of these drivers with these devices only."""
    for each in slices:
        name = wanted.get(each.spec.driver)
        if name is not None:
            devices = (named(list(each.spec.devices or ()), name),)
            yield replace(each, spec=replace(each.spec, devices=devices))


# --- "Why Not pcieRoot Alone" -------------------------------------------------------------------

# Board, driver of its GPUs, and how many share a PCIe root with a NIC.
COVERAGE = [
    ("xe8640", GPU, 1, 4),
    ("r760xa", GPU, 0, 2),
    ("as-8126gs", "gpu.amd.com", 8, 8),
    ("r7725", GPU, 0, 4),
]


@pytest.mark.parametrize(("board", "driver", "sharing", "total"), COVERAGE)
def test_so_many_gpus_share_a_root_with_a_nic(
    board: str, driver: str, sharing: int, total: int
) -> None:
    nics = [*devices_of(board, NET), *devices_of(board, NIC)]
    roots = {nic.attributes[PCIE_ROOT].string_value for nic in nics}
    gpus = [gpu.attributes[PCIE_ROOT].string_value for gpu in devices_of(board, driver)]
    assert (sum(root in roots for root in gpus), len(gpus)) == (sharing, total)


@pytest.mark.parametrize("board", ["r7725", "as-8126gs"])
def test_cpus_and_memory_have_no_root_so_a_constraint_on_it_cannot_be_met(board: str) -> None:
    for device in (*devices_of(board, CPU), *devices_of(board, MEMORY)):
        assert PCIE_ROOT not in device.attributes
    wanted = claim("rooted", {"cpu": CPU, "nic": NET}, PCIE_ROOT)
    assert isinstance(Bench(fleet_of(board)).ask(wanted), Unsatisfied)


def test_a_list_of_nodes_brings_together_what_a_root_does_not() -> None:
    """On the R7725 no GPU shares a root with a NIC; on the AS-8126GS every GPU does."""
    for board, driver, nic, by_root in (
        ("r7725", GPU, NIC, Unsatisfied),
        ("as-8126gs", "gpu.amd.com", NET, Allocated),
    ):
        bench = Bench(fleet_of(board))
        requests = {"gpu": driver, "nic": nic}
        assert isinstance(bench.ask(claim("root", requests, PCIE_ROOT)), by_root)
        assert isinstance(bench.ask(claim("numa", requests, NUMA_NODE)), Allocated)


# --- "Current Driver Attribute Names" -----------------------------------------------------------

# Board, driver, the primary name, and the names kept for compatibility.
NAMES = [
    ("r760xa-vfio", GPU, "numa", ()),
    ("xe9680-mi300x", "gpu.amd.com", "numaNode", ()),
    ("r760xa", NET, "dra.net/numaNode", ()),
    ("r7725", NIC, "dra.net/numaNode", ()),
    ("r7725", CPU, "dra.cpu/numaNodeID", ("dra.net/numaNode",)),
    ("r7725", MEMORY, "dra.memory/numaNode", ("dra.cpu/numaNodeID", "dra.net/numaNode")),
]


@pytest.mark.parametrize(("board", "driver", "primary", "aliases"), NAMES)
def test_drivers_keep_their_names_beside_the_standard_one(
    board: str, driver: str, primary: str, aliases: tuple[str, ...]
) -> None:
    for device in devices_of(board, driver, NumaNodeForm.SCALAR):
        own = {name for name in device.attributes if "numa" in name.lower()}
        assert own == {NUMA_NODE, primary, *aliases}
        assert len({device.attributes[name].int_value for name in own}) == 1


def test_nvidia_has_a_name_of_its_own_for_vfio_only() -> None:
    for device in devices_of("r760xa", GPU):
        assert {name for name in device.attributes if "numa" in name.lower()} == {NUMA_NODE}


# --- stories ------------------------------------------------------------------------------------


def test_story_1_one_constraint_brings_three_drivers_to_one_socket() -> None:
    """GPU and NIC publish [0, 1, 2, 3], the CPU publishes 0: all go to socket 0."""
    board, gpu = "as-8126gs-nps4", "gpu.amd.com"
    first_gpu, first_nic = devices_of(board, gpu)[0], devices_of(board, NET)[0]
    for device in (first_gpu, first_nic):
        assert device.attributes[NUMA_NODE].int_values == (0, 1, 2, 3)
    requests = {"gpu": gpu, "nic": NET, "cpu": CPU}
    bench = Bench(fleet_of(board))
    given = bench.give(claim("vllm", requests, NUMA_NODE))
    assert given == {"gpu": first_gpu.name, "nic": first_nic.name, "cpu": "cpudevnuma000"}


def test_story_2_consumable_cpus_spread_pods_over_numa_nodes() -> None:
    """Four pods with a GPU, a virtual function and 60 CPUs each; a NUMA node has 72."""
    bench = Bench(fleet_of("r7725"))
    requests = {"gpu": GPU, "nic": NIC, "cpu": CPU}
    pods = [bench.give(claim(f"pod-{index}", requests, NUMA_NODE, cpus=60)) for index in range(4)]
    assert [pod["cpu"] for pod in pods] == [f"cpudevnuma00{node}" for node in (4, 5, 6, 7)]
    for request in ("gpu", "nic"):
        assert len({pod[request] for pod in pods}) == 4
    fifth = claim("pod-4", requests, NUMA_NODE, cpus=60)
    assert isinstance(bench.ask(fifth), Unsatisfied)


def test_story_2_pods_share_a_cpu_device_while_it_lasts() -> None:
    bench = Bench(fleet_of("r7725"))
    requests = {"gpu": GPU, "nic": NIC, "cpu": CPU}
    pods = [bench.give(claim(f"pod-{index}", requests, NUMA_NODE, cpus=30)) for index in range(4)]
    assert [pod["cpu"][-1] for pod in pods] == ["4", "4", "5", "5"]


@pytest.mark.parametrize(
    ("form", "answer"), [(NumaNodeForm.SCALAR, Unsatisfied), (NumaNodeForm.LIST, Allocated)]
)
def test_story_3_lists_bring_quadrants_together(form: NumaNodeForm, answer: type) -> None:
    """GPUs are in NUMA node 5 and NICs in node 6 of one socket."""
    gpus, nics = devices_of("r7725", GPU), devices_of("r7725", NIC)
    for gpu, nic in product(gpus, nics):
        assert gpu.attributes[NUMA_NODE].int_values == (5, 4, 6, 7)
        assert nic.attributes[NUMA_NODE].int_values == (6, 4, 5, 7)
    wanted = claim("pair", {"gpu": GPU, "nic": NIC}, NUMA_NODE)
    assert isinstance(Bench(fleet_of("r7725", form)).ask(wanted), answer)


# --- "Risks and Mitigations" --------------------------------------------------------------------


def test_under_nps1_the_list_is_the_node_itself() -> None:
    lists = {gpu.attributes[NUMA_NODE].int_values for gpu in devices_of("as-8126gs", "gpu.amd.com")}
    assert lists == {(0,), (1,)}


def test_unequal_distances_narrow_the_list_below_the_socket() -> None:
    lists = {nic.attributes[NUMA_NODE].int_values for nic in devices_of("xeon6-snc3", NIC)}
    assert lists == {(0, 1), (2, 1), (3, 4), (5, 4)}
