"""Slices are as the driver wants them, whatever others do to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core import Node
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourcePool, ResourceSlice, ResourceSliceSpec
from moorage.client.api_client import ApiClient
from moorage.client.errors import UnavailableError
from moorage.client.in_process import InProcessTransport
from moorage.client.writes import Create, Delete, Target, Update
from moorage.driver import Device, DeviceAttribute, DeviceTaint, Inventory, Pool
from moorage.driver.errors import DroppedFieldsError, InventoryError, PublishingError
from moorage.driver.serving import serving
from moorage.driver.slice_controller import REPAIR_S, SliceController
from moorage.driver.slice_plan import Publisher
from moorage.hardware import NUMA_NODE, PCI_BUS_ID, PCIE_ROOT, Catalogue, NumaNodeForm
from moorage.hardware.sysfs import sysfs_tree
from moorage.kit.clock import ManualClock
from tests.client.servers import embedded
from tests.client.test_versions import without
from tests.driver.stage import (
    NAME,
    NODE,
    WAIT_S,
    Blinkers,
    api_server,
    played,
    published,
    settings_in,
    short_folder,
    slices,
    until,
)


@played
async def test_one_device_that_changes_is_one_write(folder: Path, client: ApiClient) -> None:
    driver = Blinkers(f"d{number}" for number in range(1000))
    async with serving(driver, settings_in(folder), client) as running:
        await running.wait_published()
        before = running.written
        taint = DeviceTaint(key="broken", effect="NoSchedule")
        driver.inventory[500] = Device(name="d500", taints=(taint,))
        running.republish()
        await running.wait_published()
        assert running.written - before == 1


@played
async def test_slices_that_others_change_are_repaired(folder: Path, client: ApiClient) -> None:
    clock = ManualClock()
    async with serving(Blinkers(), settings_in(folder), client, clock=clock) as running:
        await running.wait_published()
        (only,) = await slices(client)
        foreign = replace(only.spec, devices=(Device(name="foreign"),))
        await client.write(Update(replace(only, spec=foreign)))
        await _repaired(client, clock)
        (only,) = await slices(client)
        await client.write(Delete(Target.of(only)))
        await _repaired(client, clock)


async def _repaired(client: ApiClient, clock: ManualClock) -> None:
    async def is_repaired() -> bool:
        await clock.advance(REPAIR_S)
        return await published(client) == ["blue", "green", "red"]

    await until(is_repaired)


@played
async def test_what_an_earlier_run_left_is_taken_over(folder: Path, client: ApiClient) -> None:
    async with serving(Blinkers(), settings_in(folder), client) as running:
        await running.wait_published()
    left = await slices(client)
    async with serving(Blinkers(), settings_in(folder), client) as running:
        await running.wait_published()
        assert running.written == 0
    assert await slices(client) == left


@played
async def test_slices_of_others_are_left_alone(folder: Path, client: ApiClient) -> None:
    for driver, node in (("other.example.com", NODE), (NAME, "node-2")):
        pool = ResourcePool(name=node, generation=1, resource_slice_count=1)
        spec = ResourceSliceSpec(
            driver=driver, pool=pool, node_name=node, devices=(Device(name="theirs"),)
        )
        await client.write(
            Create(ResourceSlice(metadata=ObjectMeta(name=f"{driver}-{node}"), spec=spec))
        )
    async with serving(Blinkers([]), settings_in(folder), client) as running:
        await running.wait_published()
        assert await published(client) == ["theirs", "theirs"]


def test_fields_that_the_server_drops_are_named_once() -> None:
    async def play() -> None:
        gates = Gates.parse("DRAConsumableCapacity=false,DRADeviceTaints=false")
        driver = Blinkers([])
        taint = DeviceTaint(key="broken", effect="NoSchedule")
        driver.inventory = [Device(name="red", allow_multiple_allocations=True, taints=(taint,))]
        with short_folder() as folder:
            async with (
                asyncio.timeout(WAIT_S),
                api_server(folder, gates) as client,
                serving(driver, settings_in(folder), client) as running,
            ):
                await running.wait_published()
                for _ in range(2):
                    running.republish()
                    await running.wait_published()
                assert running.written == 1
        (error,) = driver.errors
        assert isinstance(error, DroppedFieldsError)
        assert str(error) == (
            'pool "node-1", slice #0: some fields were dropped by the apiserver, probably because '
            "these features are disabled: DRADeviceTaints, DRAConsumableCapacity"
        )

    asyncio.run(play())


REMEDY = "; for attributes with lists, enable feature gate DRAListTypeAttributes in the cluster"
LISTS = [
    ([NUMA_NODE], f"{REMEDY}, or start the driver with --numa-node scalar"),
    ([NUMA_NODE, "example.com/nodes"], REMEDY),
]


@pytest.mark.parametrize(("names", "remedy"), LISTS)
def test_lists_that_the_server_drops_end_the_driver_with_the_remedy(
    names: list[str], remedy: str
) -> None:
    async def play() -> None:
        driver = Blinkers([])
        attributes = dict.fromkeys(names, DeviceAttribute(int_values=(6, 4)))
        driver.inventory = [Device(name="red", attributes=attributes)]
        with short_folder() as folder:
            async with (
                asyncio.timeout(WAIT_S),
                api_server(folder, Gates.parse("DRAListTypeAttributes=false")) as client,
                serving(driver, settings_in(folder), client) as running,
            ):
                with pytest.raises(InventoryError, match="numaNode]: Invalid value") as caught:
                    await running.wait_published()
        assert str(caught.value).endswith(remedy)

    asyncio.run(play())


@played
async def test_pci_devices_have_the_form_of_numa_node_that_the_operator_chose(
    folder: Path, client: ApiClient
) -> None:
    tree = sysfs_tree(Catalogue().profile("r7725"))

    class Card(Blinkers):
        def devices(self) -> Inventory:
            return [Device(name="nic", attributes=self.pci_attributes("0001:3f:00.0", tree))]

    for form, values in (
        (NumaNodeForm.SCALAR, (6, None)),
        (NumaNodeForm.LIST, (None, (6, 4, 5, 7))),
    ):
        settings = replace(settings_in(folder), numa_form=form)
        async with serving(Card(), settings, client) as running:
            await running.wait_published()
            ((device,),) = [each.spec.devices or () for each in await slices(client)]
        assert set(device.attributes) == {NUMA_NODE, PCI_BUS_ID, PCIE_ROOT}
        found = device.attributes[NUMA_NODE]
        assert (found.int_value, found.int_values) == values


@played
async def test_contradictions_are_reported_and_what_was_published_stays(
    folder: Path, client: ApiClient
) -> None:
    driver = Blinkers(["red"])
    clock = ManualClock()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        await running.wait_published()
        driver.inventory = [Device(name="green"), Device(name="green")]
        running.republish()

        async def is_reported() -> bool:
            return bool(driver.errors)

        await until(is_reported)
        assert isinstance(driver.errors[0], InventoryError)
        assert await published(client) == ["red"]
        driver.inventory.pop()
        await _after_a_while(client, clock, ["green"])


@played
async def test_a_driver_that_cannot_say_any_more_is_asked_again(
    folder: Path, client: ApiClient
) -> None:
    class Shy(Blinkers):
        asked = 0

        def devices(self) -> Inventory:
            self.asked += 1
            if self.asked == 2:
                raise OSError("the bus is busy")
            return super().devices()

    clock = ManualClock()
    driver = Shy()
    async with serving(driver, settings_in(folder), client, clock=clock) as running:
        await running.wait_published()
        driver.inventory.pop()
        running.republish()
        await _after_a_while(client, clock, ["green", "red"])
    (error,) = driver.errors
    assert str(error) == "devices() raised OSError: the bus is busy"
    assert isinstance(error.__cause__, OSError)


async def _after_a_while(client: ApiClient, clock: ManualClock, wanted: list[str]) -> None:
    async def is_published() -> bool:
        await clock.advance(1)
        return await published(client) == wanted

    await until(is_published)


@played
async def test_writes_that_fail_are_done_later(folder: Path, client: ApiClient) -> None:
    class Flaky:
        """A client whose server is away now and then."""

        failures = 3

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

        async def write(self, write: Any) -> Any:
            if self.failures:
                self.failures -= 1
                raise UnavailableError("gone fishing")
            return await client.write(write)

    clock = ManualClock()
    driver = Blinkers(f"d{number}" for number in range(200))
    publishing = SliceController(driver, Flaky(), Publisher(NAME, NODE), clock=clock)
    task = asyncio.create_task(publishing.run())
    try:

        async def is_published() -> bool:
            await clock.advance(1)
            return len(await published(client)) == 200

        await until(is_published)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert {type(each) for each in driver.errors} == {PublishingError}
    assert len({each.spec.pool.generation for each in await slices(client)}) == 1


@pytest.mark.parametrize("missing", [("v1",), ("v1", "v1beta2")])
def test_older_servers_get_an_older_version(missing: tuple[str, ...]) -> None:
    async def play() -> None:
        taint = DeviceTaint(key="broken", effect="NoSchedule")
        driver = Blinkers()
        driver.inventory.append(Device(name="black", taints=(taint,)))
        with short_folder() as folder:
            async with asyncio.timeout(WAIT_S), embedded(folder / "store") as server:
                paths = (f"/apis/resource.k8s.io/{version}/" for version in missing)
                client = ApiClient(InProcessTransport(without(server.application, *paths)))
                await client.write(Create(Node(metadata=ObjectMeta(name=NODE))))
                async with serving(driver, settings_in(folder), client) as running:
                    await running.wait_published()
                    assert await published(client) == ["black", "blue", "green", "red"]
                    running.republish()
                    await running.wait_published()
                    assert (running.written, driver.errors) == (1, [])

    asyncio.run(play())


@played
async def test_a_driver_without_a_node_publishes_for_many(folder: Path, client: ApiClient) -> None:
    driver = Blinkers([])
    driver.inventory = [Pool(name="shared", devices=(Device(name="sun"),), all_nodes=True)]
    async with serving(driver, settings_in(folder, node_name=""), client) as running:
        assert running.socket is None
        await running.wait_published()
        (only,) = await slices(client)
        assert (only.spec.all_nodes, only.metadata.owner_references) == (True, ())
        running.republish()
        await running.wait_published()
        assert running.written == 1
