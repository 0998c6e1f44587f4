"""The helpers of KEP-6072 and of the deviceattribute library, with all their errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.resource.v1 import DeviceAttribute
from moorage.hardware.attributes import (
    NUMA_NODE,
    PCI_BUS_ID,
    PCIE_ROOT,
    NumaNodeForm,
    numa_node,
    numa_node_of_cpu,
    numa_node_of_pci,
    pci_bus_id,
    pcie_root,
    physical_numa_node,
)
from moorage.hardware.errors import NoAttributeError
from moorage.hardware.numbers import format_cpu_list
from moorage.hardware.sysfs_tree import Link, MemoryEntries, SysfsTree, folder_tree, write_entries

DEVICE = "0000:02:00.0"
NUMA_FILE = f"bus/pci/devices/{DEVICE}/numa_node"


@pytest.fixture(params=["memory", "folder"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """Make trees of entries, in memory and in a folder."""

    def tree(entries: dict[str, str | Link]) -> SysfsTree:
        if request.param == "memory":
            return SysfsTree(MemoryEntries(entries))
        write_entries(tmp_path, entries)
        return folder_tree(tmp_path)

    return tree


def tree_of(entries: dict[str, str | Link]) -> SysfsTree:
    return SysfsTree(MemoryEntries(entries))


def distance(node: int, row: str, online: str = "") -> dict[str, str | Link]:
    """Return the distances of a node; without a list, the nodes 0, 1, 2 … are online."""
    return {
        f"devices/system/node/node{node}/distance": f"{row}\n",
        "devices/system/node/online": f"{online or f'0-{max(len(row.split()) - 1, 0)}'}\n",
    }


def socket(node: int, cpus: str, package: str) -> dict[str, str | Link]:
    first = cpus.split("-")[0].split(",")[0]
    return {
        f"devices/system/node/node{node}/cpulist": f"{cpus}\n",
        f"devices/system/cpu/cpu{first}/topology/physical_package_id": f"{package}\n",
    }


# --- pciBusID and pcieRoot ----------------------------------------------------------------------


def test_bus_id_is_the_address() -> None:
    assert pci_bus_id("0123:45:1e.7") == (PCI_BUS_ID, DeviceAttribute(string_value="0123:45:1e.7"))


@pytest.mark.parametrize(
    ("bus_id", "message"),
    [
        ("", "PCI Bus ID cannot be empty"),
        ("0000:02:00", "invalid PCI Bus ID format: 0000:02:00"),
        ("0000:AB:00.0", "invalid PCI Bus ID format: 0000:AB:00.0"),
        ("0000:02:00.0\n", "invalid PCI Bus ID format: 0000:02:00.0\n"),
        ("../../../etc/pwd", "invalid PCI Bus ID format: ../../../etc/pwd"),
        ("٠٠٠٠:02:00.0", "invalid PCI Bus ID format: ٠٠٠٠:02:00.0"),
    ],
)
def test_bad_bus_ids_are_refused_by_every_helper(bus_id: str, message: str) -> None:
    helpers: tuple[Callable[[], object], ...] = (
        lambda: pci_bus_id(bus_id),
        lambda: pcie_root(tree_of({}), bus_id),
        lambda: numa_node_of_pci(tree_of({}), bus_id),
    )
    for helper in helpers:
        with pytest.raises(NoAttributeError) as caught:
            helper()
        assert str(caught.value) == message


def test_root_is_the_first_folder_on_the_way() -> None:
    target = f"../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/{DEVICE}"
    tree = tree_of({f"bus/pci/devices/{DEVICE}": Link(target)})
    assert pcie_root(tree, DEVICE) == (PCIE_ROOT, DeviceAttribute(string_value="pci0000:00"))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Link("../../../devices/virtual/0000:02:00.0"), "it must start with devices/pci: "),
        (Link("/sys/devices/pci0000:00/0000:02:00.0"), "it must start with devices/pci: /sys"),
        (Link("../../../../../etc/0000:02:00.0"), "it must start with devices/pci: ../../etc"),
        (Link("../../../devices/pci0000:00/0000:03:00.0"), "it must end with 0000:02:00.0: "),
        ("a file", "bus/pci/devices/0000:02:00.0: is not a link"),
        (None, "bus/pci/devices/0000:02:00.0: no such file or directory"),
    ],
)
def test_links_that_lead_to_no_root_are_errors(entry: str | Link | None, message: str) -> None:
    tree = tree_of({} if entry is None else {f"bus/pci/devices/{DEVICE}": entry})
    with pytest.raises(NoAttributeError) as caught:
        pcie_root(tree, DEVICE)
    intro = f"failed to resolve PCIe Root Complex for PCI Bus ID {DEVICE}: "
    assert str(caught.value).startswith(intro)
    assert message in str(caught.value)


# --- numaNode -----------------------------------------------------------------------------------

# What sysfs says, the device's node, and the list that follows.
LISTS = [
    ("no distances", {}, 4, (4,)),
    ("all others as near", distance(1, "12 10 12"), 1, (1, 0, 2)),
    ("one node", distance(0, "10"), 0, (0,)),
    ("empty row", distance(0, " "), 0, (0,)),
    ("short row", distance(3, "10 12"), 3, (3,)),
    ("not numbers", distance(0, "10 x"), 0, (0,)),
    ("numbers of other scripts", distance(0, "10 ١٢"), 0, (0,)),
    ("unequal distances", distance(1, "15 10 15 17"), 1, (1, 0, 2)),
    (
        "another socket is left out",
        distance(0, "10 12 12 20")
        | socket(0, "0", "0")
        | socket(1, "1", "0")
        | socket(2, "2", "1"),
        0,
        (0, 1),
    ),
    (
        "two sockets of one node each",
        distance(1, "21 10") | socket(0, "0-3", "0") | socket(1, "4-7", "1"),
        1,
        (1,),
    ),
    (
        "the nearest is on the other socket, and those of ours are farther",
        distance(0, "10 20 12") | socket(0, "0", "0") | socket(1, "1", "0") | socket(2, "2", "1"),
        0,
        (0,),
    ),
    (
        "a node without CPUs is kept",
        distance(0, "10 12 12") | socket(0, "0", "0") | socket(2, "2", "1"),
        0,
        (0, 1),
    ),
    ("our socket unknown: no filter", distance(0, "10 12") | socket(1, "1", "1"), 0, (0, 1)),
    (
        "socket that is no number counts as unknown",
        distance(0, "10 12") | socket(0, "0", "zero") | socket(1, "1", "1"),
        0,
        (0, 1),
    ),
    ("a gap: the second column is node 2", distance(2, "12 10 12", "0,2-3"), 2, (2, 0, 3)),
    ("a gap before the device's node", distance(8, "21 10", "0,8"), 8, (8, 0)),
    ("more columns than online nodes", distance(0, "10 12 12", "0-1"), 0, (0,)),
    ("fewer columns than online nodes", distance(0, "10 12", "0-2"), 0, (0,)),
    ("online nodes that are no list", distance(0, "10 12", "all"), 0, (0,)),
    ("the device's node is not online", distance(1, "12 10", "0,2"), 1, (1,)),
    (
        "without a list of online nodes, those with folders are",
        {
            "devices/system/node/node0/cpulist": "0\n",
            "devices/system/node/node2/distance": "12 10 12\n",
            "devices/system/node/node3/cpulist": "\n",
            "devices/system/node/possible": "0-3\n",
        },
        2,
        (2, 0, 3),
    ),
    (
        "sockets are those of the nodes, not of the columns",
        distance(2, "12 10 12", "0,2-3")
        | socket(0, "0", "0")
        | socket(1, "1", "1")
        | socket(2, "2", "1")
        | socket(3, "3", "1"),
        2,
        (2, 3),
    ),
    (
        "CPUs that cannot be read count as unknown",
        distance(0, "10 12") | socket(0, "0-99999999", "0") | socket(1, "1", "1"),
        0,
        (0, 1),
    ),
]


@pytest.mark.parametrize(
    ("entries", "node", "expected"), [row[1:] for row in LISTS], ids=[row[0] for row in LISTS]
)
def test_list_is_the_node_and_those_as_near_on_its_socket(
    entries: dict[str, str | Link], node: int, expected: tuple[int, ...]
) -> None:
    tree = tree_of({**entries, NUMA_FILE: f"{node}\n"})
    wanted = (NUMA_NODE, DeviceAttribute(int_values=expected))
    assert numa_node_of_pci(tree, DEVICE, NumaNodeForm.LIST) == wanted
    assert numa_node(tree, node, NumaNodeForm.LIST) == wanted
    assert numa_node(tree, node, True) == wanted


@st.composite
def machines(
    draw: st.DrawFn,
) -> tuple[dict[str, str | Link], dict[int, int], dict[int, int | None]]:
    """Return a sysfs, how far each online node is from the first drawn, and the nodes' sockets."""
    nodes = draw(st.lists(st.integers(0, 1023), min_size=1, max_size=8, unique=True))
    far = {node: draw(st.integers(11, 14)) for node in nodes[1:]} | {nodes[0]: 10}
    sockets = {node: draw(st.none() | st.integers(0, 1)) for node in nodes}
    row = " ".join(str(far[node]) for node in sorted(nodes))
    entries = distance(nodes[0], row, format_cpu_list(nodes))
    for node, package in sockets.items():
        entries |= {} if package is None else socket(node, str(node), str(package))
    return entries, far, sockets


@given(machines())
def test_every_node_of_a_list_is_nearest_and_on_the_socket_whichever_nodes_are_online(
    machine: tuple[dict[str, str | Link], dict[int, int], dict[int, int | None]],
) -> None:
    entries, far, sockets = machine
    own = min(far, key=far.__getitem__)
    nearest = min((each for node, each in far.items() if node != own), default=0)
    expected = [
        node
        for node in sorted(far)
        if node != own
        and far[node] == nearest
        and (sockets[own] is None or sockets[node] in (sockets[own], None))
    ]
    found = numa_node(tree_of(entries), own, NumaNodeForm.LIST).value.int_values
    assert found == (own, *expected)


def test_scalar_is_the_default() -> None:
    tree = tree_of({NUMA_FILE: "4\n", **distance(4, "12 12 12 12 10")})
    scalar = (NUMA_NODE, DeviceAttribute(int_value=4))
    assert numa_node_of_pci(tree, DEVICE) == scalar
    assert numa_node_of_pci(tree, DEVICE, False) == scalar
    assert numa_node(tree, 4) == scalar


def test_device_without_affinity_has_no_attribute() -> None:
    with pytest.raises(NoAttributeError) as caught:
        numa_node_of_pci(tree_of({NUMA_FILE: "-1\n"}), DEVICE, NumaNodeForm.LIST)
    assert str(caught.value) == (
        f"PCI device {DEVICE} has no NUMA affinity (numa_node=-1); "
        "do not publish the numaNode attribute for it"
    )


@pytest.mark.parametrize(
    ("content", "fact"),
    [
        (None, "no such file or directory"),
        ("", "'' is not an integer"),
        ("one", "'one' is not an integer"),
        ("1_0", "'1_0' is not an integer"),
        ("9" * 30, "is not an integer"),
    ],
)
def test_numa_node_that_cannot_be_read_is_an_error(content: str | None, fact: str) -> None:
    tree = tree_of({} if content is None else {NUMA_FILE: content})
    with pytest.raises(NoAttributeError) as caught:
        numa_node_of_pci(tree, DEVICE)
    assert str(caught.value).startswith(f"failed to read NUMA node for PCI Bus ID {DEVICE}: ")
    assert NUMA_FILE in str(caught.value)
    assert fact in str(caught.value)


@pytest.mark.parametrize("form", NumaNodeForm)
def test_known_node_must_be_one_that_can_be(form: NumaNodeForm) -> None:
    with pytest.raises(NoAttributeError, match="invalid NUMA node -1: do not publish the numaNode"):
        numa_node(tree_of({}), -1, form)
    with pytest.raises(NoAttributeError, match=r"invalid NUMA node 1024: exceeds .* \(1023\)"):
        numa_node(tree_of({}), 1024, form)
    assert physical_numa_node(numa_node(tree_of({}), 1023, form).value) == 1023


# --- CPUs and readers ---------------------------------------------------------------------------


def test_cpu_is_in_the_node_it_links_to(make: object) -> None:
    assert callable(make)
    tree = make(
        {
            "devices/system/cpu/cpu5/node1": Link("../../node/node1"),
            "devices/system/node/node1/distance": "21 10\n",
        }
    )
    assert numa_node_of_cpu(tree, 5) == 1


def test_cpu_in_no_node_is_an_error() -> None:
    tree = tree_of({"devices/system/cpu/cpu5/nodes": "", "devices/system/cpu/cpu6/node1x": ""})
    for cpu in (99, 5, -1):
        with pytest.raises(NoAttributeError, match=f"CPU {cpu} not found in any NUMA node"):
            numa_node_of_cpu(tree, cpu)
    with pytest.raises(NoAttributeError, match="failed to parse NUMA node number from node1x"):
        numa_node_of_cpu(tree, 6)


@pytest.mark.parametrize(
    ("attribute", "node"),
    [
        (DeviceAttribute(int_value=4), 4),
        (DeviceAttribute(int_value=0), 0),
        (DeviceAttribute(int_values=(6, 4, 5, 7)), 6),
        (DeviceAttribute(int_values=()), None),
        (DeviceAttribute(string_value="0"), None),
        (None, None),
    ],
)
def test_physical_node_is_read_from_either_form(
    attribute: DeviceAttribute | None, node: int | None
) -> None:
    assert physical_numa_node(attribute) == node
