"""Which device is whole, and how much of it its partitions use."""

from __future__ import annotations

from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import Counter, CounterSet, Device, DeviceCounterConsumption
from tests.insight.topologies import claim, node, result, slice_of
from tests.web.fleets import told
from tests.web.test_scene import fleet_of


def amounts(**counters: int) -> dict[str, Counter]:
    names = {name.replace("_", "-"): value for name, value in counters.items()}
    return {name: Counter(value=Quantity.from_int(value)) for name, value in names.items()}


def consumer(name: str, **counters: int) -> Device:
    taken = DeviceCounterConsumption(counter_set="gpu", counters=amounts(**counters))
    return Device(name=name, consumes_counters=(taken,))


def pool(*devices: Device) -> list[object]:
    whole = CounterSet(name="gpu", counters=amounts(memory=80, slice_0=1, slice_1=1))
    return [slice_of(*devices, count=2), slice_of(shared_counters=(whole,), count=2, name="sets")]


def test_partition_as_large_as_the_device_is_a_partition() -> None:
    devices = (
        consumer("gpu", memory=80, slice_0=1, slice_1=1),
        consumer("gpu-7g", memory=80, slice_0=1, slice_1=1),
        consumer("gpu-1g", memory=10, slice_0=1),
    )
    shown = told(fleet_of(node("n"), *pool(*devices)))["devices"]
    parents = {name.rpartition("/")[2]: row[5] for name, row in shown.items()}
    assert parents == {
        "gpu": "",
        "gpu-7g": "gpu.example.com/n/gpu",
        "gpu-1g": "gpu.example.com/n/gpu",
    }


def test_devices_that_are_all_alike_are_no_partitions() -> None:
    shown = told(fleet_of(node("n"), *pool(*(consumer(f"gpu-{n}", memory=80) for n in (0, 1)))))
    assert {row[5] for row in shown["devices"].values()} == {""}


def test_counter_of_one_does_not_say_how_much_is_used() -> None:
    devices = (
        consumer("gpu", memory=80, slice_0=1, slice_1=1),
        consumer("gpu-1g", memory=20, slice_0=1),
    )
    shown = told(fleet_of(node("n"), *pool(*devices), claim("c", result("gpu-1g"))))["devices"]
    assert shown["gpu.example.com/n/gpu"][4] == 250
