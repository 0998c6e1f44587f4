"""Devices that drivers find in a board's sysfs equal those of the board's profile."""

from __future__ import annotations

import pytest

from moorage.driver.driver import Driver
from moorage.drivers.cpu import CpuDriver
from moorage.drivers.memory import MemoryDriver
from moorage.drivers.net import NetDriver, SriovDriver
from moorage.drivers.nvme import NvmeDriver
from moorage.drivers.sim import simulated
from moorage.hardware.attributes import NumaNodeForm
from tests.drivers.machines import CATALOGUE, board_host, devices_of

# What differs from machine to machine, and what sysfs does not have.
OWN = {"dra.net/mac", "dra.net/pciVendor", "dra.net/pciDevice", "dra.net/ebpf", "dra.nvme/serial"}


@pytest.mark.parametrize("form", list(NumaNodeForm))
@pytest.mark.parametrize("board", CATALOGUE.names)
def test_discovery_agrees_with_the_profile(board: str, form: NumaNodeForm) -> None:
    host = board_host(board, form)
    expected = {driver.name: driver for driver in simulated(board, "node-1", form)}
    real: tuple[Driver, ...] = (
        CpuDriver(host),
        MemoryDriver(host),
        NetDriver(host, with_sriov=CATALOGUE.profile(board).board.options.sriov),
        NvmeDriver(host),
        SriovDriver(host),
    )
    for driver in real:
        found = devices_of(driver)
        wanted = devices_of(expected[driver.name]) if driver.name in expected else {}
        assert set(found) == set(wanted)
        for name, device in wanted.items():
            attributes = {key: each for key, each in device.attributes.items() if key not in OWN}
            got = found[name].attributes
            assert {key: got.get(key) for key in attributes} == attributes
            assert found[name].capacity == device.capacity
            assert found[name].node_allocatable_resources == device.node_allocatable_resources
