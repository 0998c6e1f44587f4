"""Disks: which there are, and which the machine itself uses."""

from __future__ import annotations

import pytest

from moorage.driver.driver import PrepareError
from moorage.drivers.nvme import NvmeDriver
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT
from moorage.hardware.sysfs_tree import Link
from tests.drivers.machines import Entries, claim, devices_of, host_of, prepared, variables

PCI = "devices/pci0000:00/0000:00:02.0"
PCI_ENTRIES: Entries = {
    "bus/pci/devices/0000:00:02.0": Link(f"../../../{PCI}"),
    f"{PCI}/numa_node": "1\n",
}


def disk(name: str, folder: str, sectors: int = 2048, dev: str = "254:0") -> Entries:
    place = f"{folder}/block/{name}"
    return {
        f"class/block/{name}": Link(f"../../{place}"),
        f"{place}/size": f"{sectors}\n",
        f"{place}/dev": f"{dev}\n",
        f"{place}/ro": "0\n",
        f"{place}/queue/rotational": "1\n",
    }


def partition(disk: str, folder: str, number: int, dev: str) -> Entries:
    place = f"{folder}/block/{disk}/{disk}{number}"
    return {
        f"class/block/{disk}{number}": Link(f"../../{place}"),
        f"{place}/partition": f"{number}\n",
        f"{place}/size": "1024\n",
        f"{place}/dev": f"{dev}\n",
    }


def controller(number: int, *spaces: str, transport: str = "pcie") -> Entries:
    place = f"{PCI}/nvme/nvme{number}"
    found: Entries = {
        f"class/nvme/nvme{number}": Link(f"../../{place}"),
        f"{place}/model": "ACME Fast Disk                          \n",
        f"{place}/serial": "S1\x07\n",
        f"{place}/firmware_rev": "7.1\n",
        f"{place}/transport": f"{transport}\n",
    }
    for space in spaces:
        found[f"{place}/{space}/size"] = "4096\n"
        head = space if "c" not in space else f"nvme{number}n{space.rpartition('n')[2]}"
        found[f"class/block/{head}"] = Link(f"../../{place}/{space}")
    return found


def test_virtio_and_scsi_disks_are_published_by_what_they_are() -> None:
    entries = {
        **PCI_ENTRIES,
        **disk("vda", f"{PCI}/virtio1"),
        **disk("sda", f"{PCI}/host0/target0:0:0/0:0:0:0", dev="8:0"),
        **disk("sdb", f"{PCI}/ata1/host1/target1:0:0", dev="8:16"),
        **disk("xyz", "devices/platform/soc", dev="9:0"),
    }
    found = devices_of(NvmeDriver(host_of(entries)))
    types = {name: each.attributes["dra.nvme/type"].string_value for name, each in found.items()}
    assert types == {"sda": "scsi", "sdb": "ata", "vda": "virtio", "xyz": "other"}
    attributes = found["vda"].attributes
    assert attributes[PCI_BUS_ID].string_value == "0000:00:02.0"
    assert attributes[PCIE_ROOT].string_value == "pci0000:00"
    assert attributes[NUMA_NODE].int_value == attributes["dra.nvme/numaNode"].int_value == 1
    assert str(found["vda"].capacity["dra.nvme/size"].value) == "1Mi"
    assert PCI_BUS_ID not in found["xyz"].attributes


def test_a_controller_is_one_disk_with_all_its_namespaces() -> None:
    entries = {**PCI_ENTRIES, **controller(0, "nvme0n1", "nvme0n2")}
    (device,) = devices_of(NvmeDriver(host_of(entries))).values()
    assert device.name == "nvme0"
    texts = {name: each.string_value for name, each in device.attributes.items()}
    assert texts["dra.nvme/model"] == "ACME_Fast_Disk"
    assert texts["dra.nvme/serial"] == "S1"
    assert texts["dra.nvme/firmwareRev"] == "7.1"
    assert texts["dra.nvme/transport"] == "pcie"
    assert str(device.capacity["dra.nvme/size"].value) == "4Mi"


def test_a_namespace_with_several_ways_to_it_goes_by_its_own_name() -> None:
    driver = NvmeDriver(host_of({**PCI_ENTRIES, **controller(0, "nvme0c0n1")}))
    (found,) = prepared(driver, claim("u", "nvme0"))
    assert [each.path for each in found.edits.device_nodes] == ["/dev/nvme0n1"]


def test_partitions_loops_and_volumes_are_no_devices() -> None:
    entries = {
        **disk("vda", f"{PCI}/virtio1"),
        **partition("vda", f"{PCI}/virtio1", 1, "254:1"),
        **disk("loop0", "devices/virtual", dev="7:0"),
        **disk("dm-0", "devices/virtual", dev="253:0"),
        **disk("sr0", f"{PCI}/host0", sectors=0),
    }
    assert list(devices_of(NvmeDriver(host_of(entries)))) == ["vda"]


MOUNTS = "27 1 {dev} / / rw,relatime - ext4 {source} rw\n"


@pytest.mark.parametrize(
    ("sys", "proc"),
    [
        ({}, {"self/mountinfo": MOUNTS.format(dev="254:0", source="/dev/root")}),
        ({}, {"self/mountinfo": MOUNTS.format(dev="0:30", source="/dev/vda1")}),
        ({}, {"self/mountinfo": MOUNTS.format(dev="254:1", source="x")}),
        ({}, {"swaps": "Filename Type Size Used Priority\n/dev/vda1 partition 1 0 -2\n"}),
        ({f"{PCI}/virtio1/block/vda/vda1/holders/dm-0": Link("../x")}, {}),
    ],
)
def test_disks_that_the_machine_uses_are_tainted(sys: Entries, proc: dict[str, str]) -> None:
    entries = {
        **disk("vda", f"{PCI}/virtio1"),
        **partition("vda", f"{PCI}/virtio1", 1, "254:1"),
        **disk("vdb", f"{PCI}/virtio2", dev="254:16"),
        **sys,
    }
    found = devices_of(NvmeDriver(host_of(entries, proc)))
    assert found["vda"].attributes["dra.nvme/inUse"].bool_value is True
    (taint,) = found["vda"].taints
    assert (taint.key, taint.effect) == ("dra.nvme/inUse", "NoSchedule")
    assert found["vdb"].attributes["dra.nvme/inUse"].bool_value is False
    assert not found["vdb"].taints


def test_a_container_gets_the_files_of_its_disks() -> None:
    entries = {
        **PCI_ENTRIES,
        **controller(0, "nvme0n1", "nvme0n2"),
        **disk("vdb", f"{PCI}/virtio2"),
    }
    found = prepared(NvmeDriver(host_of(entries)), claim("u", "nvme0", "vdb"))
    paths = [each.path for one in found for each in one.edits.device_nodes]
    assert paths == ["/dev/nvme0n1", "/dev/nvme0n2", "/dev/vdb"]
    assert variables(found) == {"MOORAGE_DISKS_u_one": ",".join(paths)}


def test_a_disk_that_is_gone_is_refused() -> None:
    with pytest.raises(PrepareError, match="nvme9: there is no such device"):
        prepared(NvmeDriver(host_of({})), claim("u", "nvme9"))


def test_disks_of_another_machine_are_not_ours() -> None:
    far: Entries = {
        "class/nvme/nvme3": Link("../../devices/virtual/nvme-fabrics/ctl/nvme3"),
        "devices/virtual/nvme-fabrics/ctl/nvme3/transport": "tcp\n",
        "devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n1/size": "2048\n",
        "class/block/nvme3n1": Link("../../devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n1"),
    }
    assert not devices_of(NvmeDriver(host_of(far)))
