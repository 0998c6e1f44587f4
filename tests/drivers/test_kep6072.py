"""KEP-6072's cases, as drivers publish them: how nodes are numbered, near, and missing."""

from __future__ import annotations

import pytest

from moorage.api.resource.v1 import Device
from moorage.drivers.cpu import CpuDriver, CpuSettings
from moorage.drivers.memory import MemoryDriver
from moorage.drivers.net import NetDriver, SriovDriver
from moorage.drivers.nvidia import NvidiaDriver
from moorage.drivers.nvme import NvmeDriver
from moorage.hardware.attributes import NUMA_NODE, PCIE_ROOT, NumaNodeForm
from tests.drivers.fakenvml import FakeGpu, FakeNvml
from tests.drivers.machines import (
    Entries,
    board_host,
    cpus,
    devices_of,
    host_of,
    nic,
    node,
    online,
)

LIST, SCALAR = NumaNodeForm.LIST, NumaNodeForm.SCALAR


def nodes_of(device: Device) -> int | tuple[int, ...] | None:
    attribute = device.attributes.get(NUMA_NODE)
    if attribute is None:
        return None
    return attribute.int_values or attribute.int_value


def lists(board: str, form: NumaNodeForm = LIST) -> set[object]:
    """Return what all NICs of a board say."""
    host = board_host(board, form)
    found = {**devices_of(NetDriver(host)), **devices_of(SriovDriver(host))}
    return set(map(nodes_of, found.values()))


# --- boards -----------------------------------------------------------------------------------


def own_first(own: int, socket: range) -> tuple[int, ...]:
    return (own, *(each for each in socket if each != own))


NPS4 = {own_first(own, range(own // 4 * 4, own // 4 * 4 + 4)) for own in range(8)}
# Board, what its NICs publish as scalars, and as lists.
BOARDS = [
    ("as-8126gs", {0, 1}, {(0,), (1,)}),  # NPS1: a socket is a node
    ("as-8126gs-nps4", set(range(8)), NPS4),
    ("r7725", {1, 4, 6}, {(1, 0, 2, 3), (4, 5, 6, 7), (6, 4, 5, 7)}),  # NPS4
    ("xeon6-snc3", {0, 2, 3, 5}, {(0, 1), (2, 1), (3, 4), (5, 4)}),  # unequal distances
]


@pytest.mark.parametrize(("board", "scalars", "expected"), BOARDS)
def test_boards_publish_the_nodes_of_the_tables(
    board: str, scalars: set[int], expected: set[tuple[int, ...]]
) -> None:
    assert lists(board, SCALAR) == scalars
    assert lists(board) == expected


def test_the_examples_of_nps4_have_their_values() -> None:
    host = board_host("r7725", LIST)
    assert nodes_of(devices_of(CpuDriver(host))["cpudevnuma004"]) == 4
    assert nodes_of(devices_of(MemoryDriver(host))["memory-numa4"]) == 4
    assert nodes_of(devices_of(NvmeDriver(host))["nvme0"]) == (0, 1, 2, 3)
    assert nodes_of(devices_of(SriovDriver(host))["0001-3f-00-2"]) == (6, 4, 5, 7)


def test_cpus_and_memory_have_no_root() -> None:
    host = board_host("r7725", LIST)
    for driver in (CpuDriver(host), CpuDriver(host, CpuSettings(True)), MemoryDriver(host)):
        assert all(PCIE_ROOT not in device.attributes for device in devices_of(driver).values())


# --- machines made by hand --------------------------------------------------------------------


def four_nodes(*rows: str) -> Entries:
    """Return two sockets of two nodes with one CPU each, and a NIC in node 1."""
    found: Entries = {**online("0-3", "0-3"), **nic("eth0", "0000:05:00.0", node=1)}
    for id_, row in enumerate(rows):
        found |= node(id_, str(id_), distances=row)
        found |= cpus(id_, range(id_, id_ + 1), socket=id_ // 2)
    return found


NEAR = "12 10 12 20"  # node 2, of the other socket, is as near as node 0
CASES = [
    ("the other socket is left out", four_nodes("10 12 20 20", NEAR, "", ""), (1, 0)),
    ("the nearest is on the other socket", four_nodes("", "20 10 12 20", "", ""), (1,)),
    ("no distances", four_nodes("", "", "", ""), (1,)),
    ("distances that are no numbers", four_nodes("", "12 ten 12 20", "", ""), (1,)),
    ("one node only", {**online("0", "1"), **nic("eth0", "0000:05:00.0", node=1)}, (1,)),
]


@pytest.mark.parametrize(("case", "entries", "expected"), CASES)
def test_distances_and_sockets_decide_the_list(
    case: str, entries: Entries, expected: tuple[int, ...]
) -> None:
    (device,) = devices_of(NetDriver(host_of(entries, form=LIST))).values()
    assert nodes_of(device) == expected, case


def test_one_node_is_node_0_for_all() -> None:
    entries = {
        **online("0-1", "0"),
        **node(0, "0-1", distances="10"),
        **cpus(0, range(2)),
        **nic("eth0", "0000:05:00.0", node=0),
    }
    host = host_of(entries, form=LIST)
    assert nodes_of(devices_of(CpuDriver(host))["cpudevnuma000"]) == 0
    assert nodes_of(devices_of(MemoryDriver(host))["memory-numa0"]) == 0
    assert nodes_of(devices_of(NetDriver(host))["pci-0000-05-00-0"]) == (0,)


def test_without_numa_nothing_says_a_node_and_all_is_there() -> None:
    entries = {**online("0-1"), **cpus(None, range(2)), **nic("eth0", "0000:05:00.0", node=-1)}
    host = host_of(entries, {"meminfo": "MemTotal: 1048576 kB\n"})
    nvml = FakeNvml([FakeGpu(0, "00000000:05:00.0")])
    for driver in (
        CpuDriver(host),
        CpuDriver(host, CpuSettings(True)),
        MemoryDriver(host),
        NetDriver(host),
        NvidiaDriver(host, library=nvml),
    ):
        found = devices_of(driver)
        assert found
        for device in found.values():
            assert not [name for name in device.attributes if "numa" in name.lower()]


def test_offline_nodes_have_no_memory_and_no_cpus() -> None:
    entries = {
        **online("0-1", "0"),
        **node(0, "0-1"),
        **node(1, "2-3"),
        **cpus(0, range(2)),
        **cpus(1, range(2, 4)),
    }
    host = host_of(entries)
    assert list(devices_of(CpuDriver(host))) == ["cpudevnuma000"]
    assert list(devices_of(MemoryDriver(host))) == ["memory-numa0"]


# A file that may be missing, and what is left of the NIC without it.
MISSING = [
    ("numa_node", "pci-0000-05-00-0", {PCIE_ROOT}),
    ("bus/pci/devices/0000:05:00.0", "pci-0000-05-00-0", set()),
    ("vendor", "pci-0000-05-00-0", {PCIE_ROOT, NUMA_NODE}),
    ("mtu", "pci-0000-05-00-0", {PCIE_ROOT, NUMA_NODE}),
    ("type", None, set()),  # it has just gone
]


@pytest.mark.parametrize(("file", "name", "standard"), MISSING)
def test_what_cannot_be_read_is_left_out(file: str, name: str | None, standard: set[str]) -> None:
    entries = nic("eth0", "0000:05:00.0", node=0)
    left = {path: entry for path, entry in entries.items() if not path.endswith(file)}
    found = devices_of(NetDriver(host_of(left)))
    assert list(found) == ([name] if name else [])
    for device in found.values():
        assert {PCIE_ROOT, NUMA_NODE} & set(device.attributes) == standard
