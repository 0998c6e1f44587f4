"""Every profile is valid, and errors in a profile name file and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.allocator import Allocated, Unsatisfied
from moorage.api.catalogue import KINDS
from moorage.api.gates import HISTORY, Gate, Gates, spec_of
from moorage.api.resource.v1 import DeviceClaim, ResourceClaim, ResourceSlice
from moorage.hardware.attributes import (
    NUMA_NODE,
    NumaNodeForm,
    numa_node_of_cpu,
    numa_node_of_pci,
    pcie_root,
)
from moorage.hardware.catalogue import Catalogue
from moorage.hardware.errors import NoAttributeError, ProfileError
from moorage.hardware.machine import CLASSES, EXAMPLE_PROFILES
from moorage.hardware.profile_files import ProfileFolder
from moorage.hardware.sysfs import sysfs_entries, sysfs_tree
from moorage.hardware.sysfs_tree import SysfsTree, folder_tree, write_entries
from moorage.validation.registry import RegistryResult, before_create
from moorage.validation.strategy import Context
from tests.hardware.boards import CATALOGUE, NOW, Bench, claim, devices_of, fleet_of

WANTED = {
    "as-8126gs", "dgx-h100", "dgx-h100-mig", "example-gpu", "gb200-nvl72", "r760xa", "r7725",
    "tpu-v6e", "xe8640", "xe9680-mi300x", "xe9680-mi300x-sriov", "xeon6-snc3",
}  # fmt: skip


def admit(value: Any, gates: Gates) -> RegistryResult:
    (kind,) = (
        kind for kind in KINDS if (kind.api_version, kind.name) == (value.api_version, value.kind)
    )
    return before_create(value, kind, Context(gates=gates, now=NOW, extensions=False))


def test_all_boards_are_there() -> None:
    assert set(CATALOGUE.names) >= WANTED


# --- objects ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", NumaNodeForm)
@pytest.mark.parametrize("name", CATALOGUE.names)
def test_objects_are_accepted_as_they_are(name: str, form: NumaNodeForm) -> None:
    fleet = fleet_of(name, form)
    for value in (*fleet.nodes, *fleet.slices, *fleet.classes):
        admission = admit(value, Gates.parse())
        assert admission.errors == ()
        assert admission.warnings == ()
        assert admission.stored is not None


SWITCHABLE = [gate for gate in HISTORY if gate.startswith("DRA") and not spec_of(gate).locked]


@pytest.mark.parametrize("gate", [None, *SWITCHABLE])
def test_scalar_slices_are_accepted_under_any_gates(gate: Gate | None) -> None:
    if gate is None:
        gates = Gates.parse(preset="kubernetes-1.37")
    else:
        gates = Gates.from_mapping({gate.value: False})
    for name in CATALOGUE.names:
        for value in fleet_of(name, NumaNodeForm.SCALAR).slices:
            assert admit(value, gates).errors == (), value.metadata.name


def test_lists_are_refused_where_the_cluster_has_none() -> None:
    gates = Gates.parse("DRAListTypeAttributes=false")
    refused = [value for value in fleet_of("r7725").slices if admit(value, gates).errors]
    drivers = {value.spec.driver for value in refused}
    assert "gpu.nvidia.com" in drivers
    assert "dra.cpu" not in drivers


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_pools_are_whole_and_devices_have_one_driver(name: str) -> None:
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for value in fleet_of(name).slices:
        pools.setdefault((value.spec.driver, value.spec.pool.name), []).append(value)
    addresses: list[tuple[str, str]] = []
    for (driver, node), slices in pools.items():
        assert [value.spec.pool.resource_slice_count for value in slices] == [len(slices)] * len(
            slices
        )
        devices = [device for value in slices for device in value.spec.devices or ()]
        assert len({device.name for device in devices}) == len(devices)
        found = {
            (node, device.attributes[key].string_value or "")
            for device in devices
            for key in ("resource.kubernetes.io/pciBusID", "dra.net/pciAddress")
            if key in device.attributes
        }
        assert driver
        addresses += found
    assert len(set(addresses)) == len(addresses)


def test_four_machines_have_four_nodes_and_nothing_in_common() -> None:
    fleet = fleet_of("dgx-h100x4")
    assert [node.metadata.name for node in fleet.nodes] == [f"dgx-h100-{i}" for i in range(4)]
    names = [value.metadata.name for value in fleet.slices]
    assert len(set(names)) == len(names) == 4 * len(fleet_of("dgx-h100").slices)
    uuids = {
        device.attributes["uuid"].string_value
        for value in fleet.slices
        if value.spec.driver == "gpu.nvidia.com"
        for device in value.spec.devices or ()
    }
    assert len(uuids) == 32


def test_a_rack_is_eighteen_trays_of_one_clique() -> None:
    racks = fleet_of("gb200-nvl72x2")
    cliques = [node.metadata.labels["nvidia.com/gpu.clique"] for node in racks.nodes]
    assert cliques == ["gb200-nvl72-0.0"] * 18 + ["gb200-nvl72-1.0"] * 18
    assert len(devices_of("gb200", "gpu.nvidia.com")) == 72


# --- MIG and SR-IOV -----------------------------------------------------------------------------


def test_partitions_share_the_counters_of_their_gpu() -> None:
    slices = [s for s in fleet_of("dgx-h100-mig").slices if s.spec.driver == "gpu.nvidia.com"]
    counters, *gpus = slices
    assert [each.name for each in counters.spec.shared_counters or ()] == [
        f"gpu-{index}-counter-set" for index in range(8)
    ]
    assert counters.spec.devices is None
    assert [len(each.spec.devices or ()) for each in gpus] == [26] * 8


def test_a_gpu_is_seven_small_partitions_or_a_whole() -> None:
    fleet = fleet_of("dgx-h100-mig")
    bench = Bench(fleet)
    root = "resource.kubernetes.io/pciBusID"
    seven = {f"part{index}": "mig.nvidia.com" for index in range(7)}
    for index in range(8):
        given = bench.give(claim(f"small-{index}", seven, root))
        assert {device.split("-mig-")[0] for device in given.values()} == {f"gpu-{index}"}
    whole = claim("whole", {"gpu": "gpu.nvidia.com"}, root)
    assert isinstance(bench.ask(whole), Unsatisfied)
    assert isinstance(Bench(fleet).ask(whole), Allocated)


def test_a_nic_is_given_away_whole_or_by_virtual_functions() -> None:
    driver = "sriovnetwork.k8snetworkplumbingwg.io"
    assert devices_of("xe9680-mi300x", driver) == []
    assert len(devices_of("xe9680-mi300x", "dra.net")) == 4
    assert len(devices_of("xe9680-mi300x-sriov", driver)) == 32
    assert devices_of("xe9680-mi300x-sriov", "dra.net") == []


def test_snc_splits_a_socket_and_lists_join_it_again() -> None:
    driver = "gpu.amd.com"
    scalars = [
        d.attributes[NUMA_NODE].int_value for d in devices_of("mi300x", driver, NumaNodeForm.SCALAR)
    ]
    assert scalars == [0, 0, 0, 0, 1, 1, 1, 1]
    lists = {d.attributes[NUMA_NODE].int_values for d in devices_of("xe9680-mi300x-snc2", driver)}
    assert lists == {(0, 1), (1, 0), (2, 3), (3, 2)}


# --- sysfs --------------------------------------------------------------------------------------


def seen(tree: SysfsTree, addresses: list[str], cpus: list[int]) -> list[object]:
    """Return all that the helpers say of devices and CPUs."""
    found: list[object] = [numa_node_of_cpu(tree, cpu) for cpu in cpus]
    for address in addresses:
        for form in NumaNodeForm:
            try:
                found.append(numa_node_of_pci(tree, address, form))
            except NoAttributeError as error:
                found.append(str(error))
        found.append(pcie_root(tree, address))
    return found


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_sysfs_in_a_folder_says_what_it_says_in_memory(name: str, tmp_path: Path) -> None:
    profile = CATALOGUE.profile(name)
    entries = sysfs_entries(profile)
    write_entries(tmp_path, entries)
    addresses = sorted(
        path.rpartition("/")[2] for path in entries if path.startswith("bus/pci/devices/")
    )
    cpus = [cpu for node in profile.board.numa.nodes for cpu in node.cpu_ids]
    tree = folder_tree(tmp_path)
    assert seen(tree, addresses, cpus) == seen(sysfs_tree(profile), addresses, cpus)


def test_virtual_functions_and_threads_are_linked() -> None:
    tree = sysfs_tree(CATALOGUE.profile("r7725"))
    port = "bus/pci/devices/0001:3f:00.0"
    assert tree.read(f"{port}/sriov_numvfs") == "8\n"
    assert tree.read(f"{port}/virtfn3/physfn/device") == "0x101d\n"
    assert tree.read("devices/system/cpu/cpu37/topology/thread_siblings_list") == "37,325\n"


# --- sources ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CATALOGUE.names)
def test_every_fact_has_a_source_or_is_assumed(name: str) -> None:
    facts = list(CATALOGUE.profile(name).facts())
    assert len(facts) > 3
    for fact in facts:
        assert fact.source or fact.assumed, fact


# --- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "units"),
    [
        ("dgx-h100", "dgx-h100", 1),
        ("dgx-h100x4", "dgx-h100", 4),
        ("mi300x", "xe9680-mi300x", 1),
        ("mi300xx3", "xe9680-mi300x", 3),
        ("gb200x2", "gb200-nvl72", 2),
        ("dgx-h100=4", "dgx-h100", 4),
        ("mi300x=3", "xe9680-mi300x", 3),
        ("gb200=0002", "gb200-nvl72", 2),
        ("dgx-h100=10000", "dgx-h100", 10_000),
    ],
)
def test_names_may_be_aliases_and_have_a_count(text: str, name: str, units: int) -> None:
    wanted = CATALOGUE.wanted(text)
    assert (wanted.profile.name, wanted.units) == (name, units)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dgx-h10", "there is no profile 'dgx-h10'; did you mean dgx-h100?"),
        ("DGX-H100x4", "there is no profile 'DGX-H100'; did you mean dgx-h100?"),
        ("dgx-h10=4", "there is no profile 'dgx-h10'; did you mean dgx-h100?"),
        ("dgx-h100x0", "dgx-h100x0: the count must be a number from 1 to 10,000"),
        ("dgx-h100=0", "dgx-h100=0: the count must be a number from 1 to 10,000"),
        ("dgx-h100=", "dgx-h100=: the count must be a number from 1 to 10,000"),
        ("dgx-h100=-1", "dgx-h100=-1: the count must be a number from 1 to 10,000"),
        ("dgx-h100=four", "dgx-h100=four: the count must be a number from 1 to 10,000"),
        ("dgx-h100=4x2", "dgx-h100=4x2: the count must be a number from 1 to 10,000"),
        ("dgx-h100=٤", "dgx-h100=٤: the count must be a number from 1 to 10,000"),
        ("gb200x556", "gb200x556: the count must be a number from 1 to 555"),
        ("gb200x" + "9" * 5000, "gb200x999999"),
        ("=4", "there is no profile ''; there are: as-8126gs, "),
        ("models", "there is no profile 'models'; there are: as-8126gs, "),
        ("../models", "there is no profile '../models'; there are: as-8126gs, "),
        ("", "there is no profile ''; there are: as-8126gs, "),
    ],
)
def test_other_names_are_refused_with_the_nearest(text: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        CATALOGUE.wanted(text)
    assert str(caught.value).startswith(message)


@given(st.text(max_size=30))
def test_any_name_is_a_profile_or_an_error(text: str) -> None:
    try:
        wanted = CATALOGUE.wanted(text)
    except ProfileError:
        return
    assert wanted.profile.name in CATALOGUE.names


@pytest.mark.parametrize(
    ("text", "name", "units"),
    [
        ("boardx4", "boardx4", 1),
        ("boardx4x2", "boardx4", 2),
        ("boardx4=2", "boardx4", 2),
        ("board=4", "board", 4),
        ("boardx5", "board", 5),
    ],
)
def test_a_name_may_end_in_x_and_digits(tmp_path: Path, text: str, name: str, units: int) -> None:
    (tmp_path / "boardx4.toml").write_text(GOOD, encoding="utf-8")
    wanted = catalogue_in(tmp_path, GOOD).wanted(text)
    assert (wanted.profile.name, wanted.units) == (name, units)


# --- classes --------------------------------------------------------------------------------------


def test_every_class_has_a_profile_with_devices_of_it() -> None:
    names = {name for classes in CLASSES.values() for name in classes}
    assert set(EXAMPLE_PROFILES) == names
    for name, profile in EXAMPLE_PROFILES.items():
        wanted = claim("c", {"r": name}, "x.example.com/y", cpus=1)
        alone = replace(wanted, spec=replace(wanted.spec, devices=_unconstrained(wanted)))
        assert isinstance(Bench(fleet_of(profile)).ask(alone), Allocated), name


def _unconstrained(wanted: ResourceClaim) -> DeviceClaim:
    return replace(wanted.spec.devices, constraints=())


def test_gpus_of_nvidia_are_the_extended_resource_of_their_chart() -> None:
    classes = {each.metadata.name: each for each in CATALOGUE.fleet("dgx-h100-mig").classes}
    assert classes["gpu.nvidia.com"].spec.extended_resource_name == "nvidia.com/gpu"
    assert classes["mig.nvidia.com"].spec.extended_resource_name is None


def test_example_gpus_are_published_as_the_example_driver_does() -> None:
    fleet = CATALOGUE.fleet("example-gpu")
    (slice_,) = (each for each in fleet.slices if each.spec.driver == "gpu.example.com")
    devices = slice_.spec.devices or ()
    assert [device.name for device in devices] == [f"gpu-{index}" for index in range(8)]
    assert set(devices[0].attributes) == {"type", "index", "uuid", "model", "driverVersion"}
    assert {name: str(each.value) for name, each in devices[0].capacity.items()} == {
        "memory": "80Gi",
        "compute": "100",
    }


# --- files that are not right -------------------------------------------------------------------

GOOD = """\
title = "T"
summary = "S"
sources = { doc = "A document" }
[cpu]
model = "C"
threads_per_core = 2
source = "doc"
[numa]
nodes = [
    { id = 0, socket = 0, cpus = "0-3", memory = "8Gi" },
    { id = 1, socket = 1, cpus = "4-7", memory = "8Gi" },
]
distances = [[10, 21], [21, 10]]
source = "doc"
[pcie]
roots = { "pci0000:00" = 0 }
assumed = true
[[devices]]
model = "disk"
address = "0000:01:00.0"
root = "pci0000:00"
bridges = ["0000:00:01.0"]
source = "doc"
assumed = ["bridges"]
"""
MODELS = """\
sources = { doc = "A document" }
[models.disk]
sort = "nvme"
product = "P"
vendor_id = "0x1"
device_id = "0x2"
size = "1T"
source = "doc"
"""

# What to change in the good file, and what is said then.
FAULTS = [
    ('title = "T"', "title = ", "Invalid value"),
    ('title = "T"', "", "Object missing required field `title`"),
    ('summary = "S"', 'summary = "S"\ncolour = "red"', "unknown field `colour`"),
    ("threads_per_core = 2", 'threads_per_core = "2"', "Expected `int`, got `str` - at `$.cpu."),
    ("threads_per_core = 2", "threads_per_core = 0", "cpu.threads_per_core: must be from 1 to 8"),
    ("threads_per_core = 2", "threads_per_core = 3", "numa.nodes[0].cpus: must be whole cores"),
    ('source = "doc"\n[numa]', "[numa]", "cpu.source: is missing; write assumed = true"),
    ('source = "doc"\n[numa]', 'source = "dog"\n[numa]', "cpu.source: 'dog' is not among the"),
    ('source = "doc"\n[numa]', 'source = "doc"\nassumed = true\n[numa]', "cpu.assumed: must name"),
    ('assumed = ["bridges"]', 'assumed = ["bridge"]', "devices[0].assumed: there is no field"),
    ("id = 1,", "id = 2,", "numa.nodes: must have the ids 0, 1, 2"),
    ('memory = "8Gi" },\n]', 'memory = "much" },\n]', "numa.nodes[1].memory: 'much' is not a"),
    ('cpus = "4-7"', 'cpus = "3-6"', "numa.nodes[1].cpus: must be below 8192 and in no other"),
    ('cpus = "4-7"', 'cpus = "four"', "numa.nodes[1].cpus: 'four' is not a range of CPUs"),
    ("[[10, 21], [21, 10]]", "[[10, 21]]", "numa.distances: must be 2 rows of 2 numbers"),
    ("[[10, 21], [21, 10]]", "[[10, 21], [9, 10]]", "numa.distances[1]: must be 10 to the node"),
    ('"pci0000:00" = 0', '"pci0000:00" = 2', "pcie.roots.pci0000:00: there is no NUMA node 2"),
    ('"pci0000:00" = 0', '"root" = 0', "pcie.roots: 'root' is not a root such as pci0000:00"),
    ('root = "pci0000:00"', 'root = "pci0000:01"', "devices[0].root: 'pci0000:01' is not among"),
    ('model = "disk"', 'model = "disc"', "devices[0].model: there is no model 'disc'"),
    ('"0000:01:00.0"', '"1:0.0"', "devices[0].address: '1:0.0' is not an address"),
    ('["0000:00:01.0"]', '["up"]', "devices[0].address: 'up' is not an address"),
    ("bridges =", "virtual_functions = 4\nbridges =", "devices[0].address: '' is not an address"),
    ("bridges =", "virtual_functions = -1\nbridges =", "devices[0].virtual_functions: must be"),
    ('title = "T"', 'title = "T"\nmachines = 0', "machines: must be from 1 to 1024"),
    ('title = "T"', 'base = "board"', "base: must name a profile that rests on few others"),
    ('title = "T"', 'base = "../other"', "base: must name a profile"),
    ('title = "T"', 'base = "a\\u0000b"', "base: must name a profile"),
    ('title = "T"', 'base = "other"', "other.toml: No such file or directory"),
]


def catalogue_in(folder: Path, board: str, models: str = MODELS) -> Catalogue:
    (folder / "board.toml").write_text(board, encoding="utf-8")
    (folder / "models.toml").write_text(models, encoding="utf-8")
    return Catalogue(ProfileFolder(folder))


def test_the_good_file_is_good(tmp_path: Path) -> None:
    assert len(catalogue_in(tmp_path, GOOD).fleet("boardx2").slices) == 6


@pytest.mark.parametrize(("old", "new", "fact"), FAULTS, ids=[fault[2][:30] for fault in FAULTS])
def test_faults_are_named_with_file_and_field(
    tmp_path: Path, old: str, new: str, fact: str
) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(ProfileError) as caught:
        catalogue_in(tmp_path, GOOD.replace(old, new)).profile("board")
    assert ".toml: " in str(caught.value)
    assert fact in str(caught.value)


def test_all_faults_are_said_at_once(tmp_path: Path) -> None:
    bad = GOOD.replace('"8Gi"', '"much"').replace('model = "disk"', 'model = "disc"')
    with pytest.raises(ProfileError) as caught:
        catalogue_in(tmp_path, bad).profile("board")
    assert len(str(caught.value).splitlines()) == 3


def test_models_are_checked_too(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"models\.toml: models\.disk\.source: 'dog' is not"):
        catalogue_in(tmp_path, GOOD, MODELS.replace('source = "doc"', 'source = "dog"')).profile(
            "board"
        )
    with pytest.raises(ProfileError, match=r"models\.toml: models\.disk\.size: 'much' is not a"):
        catalogue_in(tmp_path, GOOD, MODELS.replace("1T", "much")).profile("board")
    with pytest.raises(ProfileError, match=r"models\.toml: Invalid value 'disk'"):
        catalogue_in(tmp_path, GOOD, MODELS.replace("nvme", "disk")).profile("board")


def test_a_device_without_affinity_publishes_no_node(tmp_path: Path) -> None:
    board = GOOD.replace('"pci0000:00" = 0', '"pci0000:00" = -1')
    fleet = catalogue_in(tmp_path, board).fleet("board", NumaNodeForm.LIST)
    (disk,) = (
        device
        for value in fleet.slices
        if value.spec.driver == "dra.nvme"
        for device in value.spec.devices or ()
    )
    assert NUMA_NODE not in disk.attributes
    assert "resource.kubernetes.io/pcieRoot" in disk.attributes
