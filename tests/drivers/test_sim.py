"""Simulated boards."""

from __future__ import annotations

import pytest

from moorage.driver.driver import Pool
from moorage.drivers.catalogue import DriverOptions, OptionError, drivers_of, published
from tests.drivers.machines import claim, devices_of, prepared, variables


def test_a_board_brings_all_its_drivers() -> None:
    drivers = drivers_of("sim", DriverOptions(profile="dgx-h100-mig", node_name="node-1"))
    names = [driver.name for driver in drivers]
    assert {"dra.cpu", "dra.memory", "gpu.nvidia.com"} <= set(names)
    gpus = drivers[names.index("gpu.nvidia.com")]
    (pool,) = gpus.devices()  # type: ignore[misc]
    assert isinstance(pool, Pool)
    assert len(pool.counters) == 8
    assert all(each.spec.node_name == "node-1" for each in published(gpus, "node-1"))


def test_a_container_is_told_of_its_device() -> None:
    drivers = drivers_of("sim", DriverOptions(profile="dgx-h100", node_name="node-1"))
    gpus = next(driver for driver in drivers if driver.name == "gpu.nvidia.com")
    name = next(iter(devices_of(gpus)))
    env = variables(prepared(gpus, claim("u", name)))
    assert env["MOORAGE_SIMULATED_u_one"] == name
    assert env["MOORAGE_SIMULATED_u_one_gpu_0_productName"] == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize("profile", ["", "no-such-board"])
def test_a_board_must_be_named(profile: str) -> None:
    with pytest.raises(OptionError, match="--profile: "):
        drivers_of("sim", DriverOptions(profile=profile))
