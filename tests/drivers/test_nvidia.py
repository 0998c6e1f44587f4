"""GPUs of NVIDIA, over a fake of NVML."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pynvml  # type: ignore[import-untyped]
import pytest

from moorage.api.process_binding import process_binding
from moorage.driver.driver import DeviceHealth, Health, PrepareError
from moorage.drivers.host import Host
from moorage.drivers.nvidia import NvidiaDriver
from moorage.drivers.nvidia.cdi import ToolEdits
from moorage.drivers.nvidia.gpus import pci_address, semantic
from moorage.hardware.attributes import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, NumaNodeForm
from moorage.hardware.board import MigProfile, NvidiaGpu
from tests.drivers.fakenvml import FakeGpu, FakeInstance, FakeNvml
from tests.drivers.machines import (
    allocated,
    board_host,
    claim,
    devices_of,
    host_of,
    prepared,
    profile,
    variables,
)

BOARD = "dgx-h100"


def profiles() -> tuple[MigProfile, ...]:
    found = profile("dgx-h100").models["nvidia-h100-sxm5-80gb"]
    assert isinstance(found, NvidiaGpu)
    return found.mig


def addresses() -> list[str]:
    return [
        device.address for device, model in profile(BOARD).devices() if isinstance(model, NvidiaGpu)
    ]


def gpus(count: int = 8, **facts: bool) -> list[FakeGpu]:
    return [
        FakeGpu(minor, f"0000{address.upper()}", profiles(), **facts)  # type: ignore[arg-type]
        for minor, address in enumerate(addresses()[:count])
    ]


def driver_of(
    nvml: FakeNvml,
    host: Host | None = None,
    *,
    is_dynamic: bool = False,
    tool: ToolEdits | None = None,
) -> NvidiaDriver:
    return NvidiaDriver(
        host or board_host(BOARD),
        is_dynamic=is_dynamic,
        library=nvml,
        edits=tool or ToolEdits(lambda _: b"{}"),
        exists=lambda path: path != "/dev/nvidia-modeset",
    )


# --- publishing -----------------------------------------------------------------------------


def test_without_a_driver_of_the_kernel_there_is_nothing_and_it_says_so() -> None:
    driver = driver_of(FakeNvml(is_installed=False))
    assert not devices_of(driver)
    assert driver.absence.startswith("no NVIDIA driver here")


def test_whole_gpus_have_the_names_of_the_known_driver() -> None:
    found = devices_of(driver_of(FakeNvml(gpus())))
    assert list(found) == [f"gpu-{minor}" for minor in range(8)]
    attributes = found["gpu-0"].attributes
    texts = {name: each.string_value for name, each in attributes.items() if each.string_value}
    assert texts == {
        PCI_BUS_ID: addresses()[0],
        PCIE_ROOT: texts[PCIE_ROOT],
        "type": "gpu",
        "uuid": "GPU-0",
        "productName": "NVIDIA H100 80GB HBM3",
        "brand": "Nvidia",
        "architecture": "Hopper",
    }
    versions = {name: each.version_value for name, each in attributes.items() if each.version_value}
    assert versions == {
        "cudaComputeCapability": "9.0.0",
        "driverVersion": "570.86.5",
        "cudaDriverVersion": "12.8.0",
    }
    assert attributes[NUMA_NODE].int_value == 0
    assert str(found["gpu-0"].capacity["memory"].value) == "81559Mi"


def test_numa_nodes_are_a_list_when_the_operator_says_so() -> None:
    found = devices_of(driver_of(FakeNvml(gpus(1)), board_host(BOARD, NumaNodeForm.LIST)))
    assert found["gpu-0"].attributes[NUMA_NODE].int_values == (0,)


def test_a_gpu_that_is_lost_is_left_out() -> None:
    found = gpus(3)
    found[1].is_lost = True
    assert list(devices_of(driver_of(FakeNvml(found)))) == ["gpu-0", "gpu-2"]


def test_partitions_that_there_are_stand_for_their_gpu() -> None:
    found = gpus(2)
    one, two = (each for each in profiles() if each.name in ("1g.10gb", "2g.20gb"))
    found[0].mig = True
    found[0].instances = [
        FakeInstance(found[0], 7, one, 3, compute=True),
        FakeInstance(found[0], 3, two, 0, compute=True),
        FakeInstance(found[0], 8, one, 4),  # without a compute instance nobody can use it
    ]
    devices = devices_of(driver_of(FakeNvml(found)))
    assert list(devices) == ["gpu-0-mig-1g10gb-19-3", "gpu-0-mig-2g20gb-14-0", "gpu-1"]
    device = devices["gpu-0-mig-1g10gb-19-3"]
    assert device.attributes["uuid"].string_value == "MIG-0-7"
    assert device.attributes["parentUUID"].string_value == "GPU-0"
    assert device.attributes["profile"].string_value == "1g.10gb"
    assert "memorySlice3" in device.capacity
    assert not device.consumes_counters


def test_dynamic_partitions_are_those_of_the_profile_with_counters() -> None:
    driver = driver_of(FakeNvml(gpus(1)), is_dynamic=True)
    (pool,) = driver.devices()
    (counters,) = pool.counters
    assert counters.name == "gpu-0-counter-set"
    assert counters.counters["multiprocessors"].value.value == 132
    names = [device.name for device in pool.devices]
    assert names[0] == "gpu-0"
    assert len(names) == 1 + sum(len(each.placements) for each in profiles())
    assert all(device.consumes_counters for device in pool.devices)


def test_gpus_without_partitions_stay_whole_in_dynamic_mode() -> None:
    nvml = FakeNvml([FakeGpu(0, "00000000:1B:00.0")])
    (pool,) = driver_of(nvml, is_dynamic=True).devices()
    assert [device.name for device in pool.devices] == ["gpu-0"]
    assert not pool.counters


# --- preparing ------------------------------------------------------------------------------


def test_a_container_gets_the_files_and_the_name_of_its_gpu() -> None:
    (found,) = prepared(driver_of(FakeNvml(gpus())), claim("u", "gpu-3"))
    assert [each.path for each in found.edits.device_nodes] == [
        "/dev/nvidia3",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools",
    ]
    env = variables([found])
    assert env["CUDA_VISIBLE_DEVICES"] == env["NVIDIA_VISIBLE_DEVICES"] == "GPU-3"


def test_gpus_of_several_requests_are_all_visible_to_a_process() -> None:
    wanted = claim("u", allocated("gpu-0"), allocated("gpu-1"), allocated("gpu-2", "two"))
    found = prepared(driver_of(FakeNvml(gpus())), wanted)
    assert variables(found[:1])["CUDA_VISIBLE_DEVICES"] == "GPU-0,GPU-1"
    joined = process_binding(variables(found)).variables
    assert joined["CUDA_VISIBLE_DEVICES"] == "GPU-0,GPU-1,GPU-2"


def test_the_tool_of_nvidia_knows_better() -> None:
    edits = {"deviceNodes": [{"path": "/dev/nvidia0"}]}
    spec = {
        "cdiVersion": "0.6.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": "GPU-0", "containerEdits": edits}],
        "containerEdits": {"env": ["NVIDIA_VISIBLE_DEVICES=void"]},
    }
    asked: list[list[str]] = []

    def run(command: list[str]) -> bytes:
        asked.append(command)
        return json.dumps(spec).encode()

    driver = driver_of(FakeNvml(gpus(2)), tool=ToolEdits(run))
    (found,) = prepared(driver, claim("u", "gpu-0"))
    env = variables([found])
    assert env["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "CUDA_VISIBLE_DEVICES" not in env
    prepared(driver, claim("u", "gpu-0"))
    assert len(asked) == 1
    (other,) = prepared(driver, claim("v", "gpu-1"))  # which the tool does not know
    assert variables([other])["CUDA_VISIBLE_DEVICES"] == "GPU-1"


@pytest.mark.parametrize("said", [b"", b"[]", b"\xff", b'{"devices": 3}'])
def test_a_tool_that_fails_is_done_without(said: bytes) -> None:
    driver = driver_of(FakeNvml(gpus(1)), tool=ToolEdits(lambda _: said))
    assert variables(prepared(driver, claim("u", "gpu-0")))["CUDA_VISIBLE_DEVICES"] == "GPU-0"


def test_files_of_a_partition_are_those_that_allow_its_use() -> None:
    found = gpus(1, mig=True)
    found[0].instances = [FakeInstance(found[0], 7, profiles()[0], 3, compute=True)]
    minors = "gpu0/gi7/access 66\ngpu0/gi7/ci0/access 67\ngpu0/gi8/access 75\nconfig 1\n"
    host = host_of({}, {"driver/nvidia-caps/mig-minors": minors})
    (made,) = prepared(driver_of(FakeNvml(found), host), claim("u", "gpu-0-mig-1g10gb-19-3"))
    paths = [each.path for each in made.edits.device_nodes]
    assert paths[-2:] == ["/dev/nvidia-caps/nvidia-cap66", "/dev/nvidia-caps/nvidia-cap67"]
    assert variables([made])["CUDA_VISIBLE_DEVICES"] == "MIG-0-7"


def test_what_is_not_there_is_refused() -> None:
    driver = driver_of(FakeNvml(gpus(1, mig=True)))
    for name in ("gpu-9", "gpu-0-mig-1g10gb-19-0"):
        with pytest.raises(PrepareError, match="no such device"):
            prepared(driver, claim("u", name))


# --- partitions that are made ---------------------------------------------------------------

SMALL, OTHER = "gpu-0-mig-1g10gb-19-0", "gpu-0-mig-3g40gb-9-4"


def test_a_partition_lives_as_long_as_its_claim() -> None:
    nvml = FakeNvml(gpus(1))
    driver = driver_of(nvml, is_dynamic=True)
    first, second = claim("1", SMALL), claim("2", OTHER)
    before = prepared(driver, first)
    prepared(driver, second)
    assert [each.start for each in nvml.gpus[0].instances] == [0, 4]
    assert prepared(driver, first) == before  # asked again, nothing more is made
    assert len(nvml.gpus[0].instances) == 2
    driver.unprepare(first)
    driver.unprepare(first)
    assert [each.start for each in nvml.gpus[0].instances] == [4]


def test_a_driver_that_starts_again_destroys_what_it_made() -> None:
    nvml = FakeNvml(gpus(1))
    wanted = claim("1", SMALL)
    before = prepared(driver_of(nvml, is_dynamic=True), wanted)
    driver = driver_of(nvml, is_dynamic=True)
    driver.restored(wanted, before)
    driver.unprepare(wanted)
    assert not nvml.gpus[0].instances


def test_what_fails_half_way_leaves_nothing() -> None:
    nvml = FakeNvml(gpus(2))
    nvml.gpus[1].refuses_compute = True
    driver = driver_of(nvml, is_dynamic=True)
    with pytest.raises(PrepareError, match=r"1g\.10gb of GPU 1 at slice 0 cannot be created"):
        prepared(driver, claim("1", SMALL, SMALL.replace("gpu-0", "gpu-1")))
    assert not nvml.gpus[0].instances
    assert not nvml.gpus[1].instances


def test_what_fails_later_leaves_what_was_ready() -> None:
    nvml = FakeNvml(gpus(2))
    driver = driver_of(nvml, is_dynamic=True)
    wanted = claim("1", SMALL, SMALL.replace("gpu-0", "gpu-1"))
    prepared(driver, wanted)
    nvml.gpus[1].instances.clear()
    nvml.gpus[1].refuses_compute = True
    with pytest.raises(PrepareError):
        prepared(driver, wanted)
    assert nvml.gpus[0].instances
    driver.unprepare(wanted)
    assert not nvml.gpus[0].instances


def test_a_gpu_is_whole_again_when_it_is_wanted_whole() -> None:
    nvml = FakeNvml(gpus(1))
    driver = driver_of(nvml, is_dynamic=True)
    prepared(driver, claim("1", SMALL))
    with pytest.raises(PrepareError, match="GPU 0 has partitions, and is requested whole"):
        prepared(driver, claim("2", "gpu-0"))
    driver.unprepare(claim("1"))
    prepared(driver, claim("2", "gpu-0"))
    assert not nvml.gpus[0].mig


# --- health ---------------------------------------------------------------------------------


async def next_of(stream: AsyncIterator[list[DeviceHealth]]) -> list[DeviceHealth]:
    return await asyncio.wait_for(anext(stream), 10)


def test_errors_of_a_gpu_are_told_and_keep_claims_away() -> None:
    nvml = FakeNvml(gpus(2))
    nvml.gpus[1].is_watchable = False
    driver = driver_of(nvml)

    async def follow() -> None:
        stream = driver.health()
        first = await next_of(stream)
        assert [(each.device, each.health) for each in first] == [
            ("gpu-0", Health.HEALTHY),
            ("gpu-1", Health.UNKNOWN),
        ]
        nvml.happens(nvml.gpus[0], pynvml.nvmlEventTypeXidCriticalError, 31)  # a program's fault
        nvml.happens(nvml.gpus[0], pynvml.nvmlEventTypeXidCriticalError, 79)
        assert await next_of(stream) == [DeviceHealth("gpu-0", Health.UNHEALTHY, "xid 79")]
        nvml.happens(nvml.gpus[0], pynvml.nvmlEventTypeDoubleBitEccError)
        assert (await next_of(stream))[0].message == "ecc double-bit"
        nvml.events.append(pynvml.NVML_ERROR_GPU_IS_LOST)
        assert [each.device for each in await next_of(stream)] == ["gpu-0", "gpu-1"]
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(follow())
    assert nvml.freed == 1
    (taint,) = devices_of(driver)["gpu-0"].taints
    assert (taint.key, taint.effect) == ("gpu.nvidia.com/gpu-lost", "NoSchedule")


def test_errors_of_a_partition_are_its_own() -> None:
    nvml = FakeNvml(gpus(1, mig=True))
    gpu, one = nvml.gpus[0], profiles()[0]
    gpu.instances = [
        FakeInstance(gpu, 7, one, 0, compute=True),
        FakeInstance(gpu, 8, one, 1, compute=True),
    ]
    driver = driver_of(nvml)

    async def follow() -> None:
        stream = driver.health()
        assert len(await next_of(stream)) == 2
        nvml.happens(gpu, pynvml.nvmlEventTypeXidCriticalError, 94, instance=8)
        assert [each.device for each in await next_of(stream)] == ["gpu-0-mig-1g10gb-19-1"]
        nvml.happens(gpu, pynvml.nvmlEventTypeXidCriticalError, 79)
        assert len(await next_of(stream)) == 2
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(follow())


def test_without_gpus_there_is_no_health_to_tell() -> None:
    async def follow() -> list[list[DeviceHealth]]:
        return [each async for each in driver_of(FakeNvml()).health()]

    assert asyncio.run(follow()) == []


# --- words of the library -------------------------------------------------------------------


def test_addresses_and_versions_are_those_of_kubernetes() -> None:
    assert pci_address("00000000:1B:00.0") == "0000:1b:00.0"
    assert pci_address("00000001:1B:00.0") == "0001:1b:00.0"
    assert semantic("535.104.05") == "535.104.5"
    assert semantic("470.82") == "470.82.0"
    for wrong in ("", "x", "1B:00.0.0.0", "zz:00.0"):
        with pytest.raises(ValueError, match="is not"):
            pci_address(wrong)
    with pytest.raises(ValueError, match="is not a version"):
        semantic("next")
