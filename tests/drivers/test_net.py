"""Network interfaces, RDMA devices and virtual functions."""

from __future__ import annotations

import pytest

from moorage.driver.driver import PrepareError
from moorage.drivers.net import NetDriver, SriovDriver
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT
from moorage.hardware.sysfs_tree import Link
from tests.drivers.machines import (
    Entries,
    board_host,
    claim,
    devices_of,
    host_of,
    nic,
    prepared,
    variables,
)

ADDRESS = "0000:05:00.0"


def virtual(name: str, type_: int = 1) -> Entries:
    folder = f"devices/virtual/net/{name}"
    return {
        f"class/net/{name}": Link(f"../../{folder}"),
        f"{folder}/type": f"{type_}\n",
        f"{folder}/uevent": "DEVTYPE=bridge\nINTERFACE=x\n",
    }


def rdma(name: str, address: str = ADDRESS) -> Entries:
    folder = f"devices/pci0000:00/{address}"
    return {
        f"class/infiniband/{name}": Link(f"../../{folder}/infiniband/{name}"),
        f"{folder}/infiniband/{name}/node_type": "1: CA\n",
        "class/infiniband_verbs/uverbs3": Link(f"../../{folder}/infiniband_verbs/uverbs3"),
        f"{folder}/infiniband_verbs/uverbs3/ibdev": f"{name}\n",
        "class/infiniband_mad/umad3": Link(f"../../{folder}/infiniband_mad/umad3"),
        f"{folder}/infiniband_mad/umad3/ibdev": f"{name}\n",
    }


def test_an_interface_has_the_names_of_dranet_and_the_standard_ones() -> None:
    (device,) = devices_of(NetDriver(host_of(nic("enp5s0", ADDRESS, node=1)))).values()
    assert device.name == "pci-0000-05-00-0"
    attributes = device.attributes
    assert attributes["dra.net/ifName"].string_value == "enp5s0"
    assert attributes["dra.net/pciAddress"].string_value == ADDRESS
    assert attributes[PCI_BUS_ID].string_value == ADDRESS
    assert attributes[PCIE_ROOT].string_value == "pci0000:00"
    assert attributes[NUMA_NODE].int_value == attributes["dra.net/numaNode"].int_value == 1
    assert attributes["dra.net/mtu"].int_value == 9000
    assert attributes["dra.net/virtual"].bool_value is False
    assert attributes["dra.net/rdma"].bool_value is False


def test_virtual_interfaces_are_flagged_and_loopbacks_never_published() -> None:
    entries = {**virtual("lo", 772), **virtual("br_0"), **virtual("br0")}
    found = devices_of(NetDriver(host_of(entries)))
    assert list(found) == ["br0", "net-mjzf6ma"]  # br_0 cannot be the name of a device
    assert found["br0"].attributes["dra.net/virtual"].bool_value is True
    assert found["br0"].attributes["dra.net/type"].string_value == "bridge"
    assert PCI_BUS_ID not in found["br0"].attributes


def test_the_way_to_everywhere_is_marked() -> None:
    routes = {"net/route": "Iface Destination Gateway\neth0\t00000000\t0100000A\n"}
    entries = {**nic("eth0", ADDRESS), **nic("eth1", "0000:06:00.0")}
    found = devices_of(NetDriver(host_of(entries, routes)))
    marks = [each.attributes["dra.net/defaultRoute"].bool_value for each in found.values()]
    assert marks == [True, False]


def test_rdma_devices_come_with_their_interface() -> None:
    driver = NetDriver(host_of({**nic("enp5s0", ADDRESS), **rdma("mlx5_0")}))
    (device,) = devices_of(driver).values()
    assert device.attributes["dra.net/rdmaDevice"].string_value == "mlx5_0"
    (found,) = prepared(driver, claim("u", device.name))
    assert [each.path for each in found.edits.device_nodes] == [
        "/dev/infiniband/uverbs3",
        "/dev/infiniband/umad3",
        "/dev/infiniband/rdma_cm",
    ]
    assert variables([found]) == {
        "MOORAGE_INTERFACES_u_one": "enp5s0",
        "MOORAGE_RDMA_DEVICES_u_one": "mlx5_0",
    }
    assert found.network_data is not None
    assert found.network_data.interface_name == "enp5s0"


def test_an_rdma_device_without_interface_is_a_device() -> None:
    entries = nic("enp5s0", ADDRESS)
    alone = {path: entry for path, entry in entries.items() if "net" not in path}
    (device,) = devices_of(NetDriver(host_of({**alone, **rdma("mlx5_0")}))).values()
    assert device.attributes["dra.net/rdma"].bool_value is True
    assert "dra.net/ifName" not in device.attributes


def test_virtual_functions_are_the_other_drivers() -> None:
    host = board_host("r7725")
    functions = devices_of(SriovDriver(host))
    whole = devices_of(NetDriver(host))
    addresses = {each.attributes["dra.net/pciAddress"].string_value for each in whole.values()}
    parents = {
        each.attributes["sriovnetwork.k8snetworkplumbingwg.io/pfPciAddress"].string_value
        for each in functions.values()
    }
    assert functions
    assert not parents & addresses
    everything = devices_of(NetDriver(host, with_sriov=False))
    assert set(everything) > set(whole)


def test_a_container_is_told_the_place_of_its_virtual_functions() -> None:
    driver = SriovDriver(board_host("r7725"))
    first, second, *_ = devices_of(driver)
    env = variables(prepared(driver, claim("u", first, second)))
    assert len(env["PCIDEVICE_u_one"].split(",")) == 2


def test_what_is_gone_is_refused() -> None:
    for driver in (NetDriver(host_of({})), SriovDriver(host_of({}))):
        with pytest.raises(PrepareError):
            prepared(driver, claim("u", "pci-0000-05-00-0"))
