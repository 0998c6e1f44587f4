"""Selectors over the devices of a pool: time for each device with cost counting, and to compile.

10,000 devices with 20 attributes, through the facts of a pool, as the allocator evaluates them.
Goals: at most 1 µs a device for a class selector, 1.5 µs with a quantity, has() and exists, once
the columns of their paths are read; 1 ms to compile. Devices that are all of different shapes have
no goals.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from moorage.allocator import Inventory
from moorage.allocator.answers import SelectorAnswers
from moorage.allocator.pool_facts import PoolFacts
from moorage.api.core.node import Node
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from moorage.cel.device import CelFeatures, DeviceCompiler, Scope

DRIVER = "gpu.example.com"
DEVICES = 10_000
SELECTORS = {
    "class": f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "H200"',
    "rich": (
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0 && '
        f'has(device.attributes["{DRIVER}"].ports) && '
        f'device.attributes["{DRIVER}"].ports.exists(p, p == 3)'
    ),
}


def device(number: int) -> Device:
    """Return a device with 20 attributes, all different from others in one of them."""
    attributes = {f"attribute{i}": DeviceAttribute(string_value=f"value-{i}") for i in range(16)}
    attributes |= {
        "model": DeviceAttribute(string_value="H200" if number % 2 else "A100"),
        "uuid": DeviceAttribute(string_value=f"gpu-{number:08x}"),
        "index": DeviceAttribute(int_value=number % 8),
        "ports": DeviceAttribute(int_values=(0, 1, 2, 3)),
    }
    memory = DeviceCapacity(value=Quantity.parse("141Gi" if number % 2 else "40Gi"))
    return Device(name=f"gpu-{number}", attributes=attributes, capacity={"memory": memory})


def device_of_own_shape(number: int) -> Device:
    """Return a device with 20 attributes, of which it has three quarters to itself."""
    usual = device(number)
    own = {f"own{number}-{i}": attribute for i, attribute in enumerate(usual.attributes.values())}
    names = ("model", "uuid", "index", "ports", f"attribute{number % 16}")
    attributes = {name: usual.attributes[name] for name in names} | dict(list(own.items())[:15])
    return Device(name=usual.name, attributes=attributes, capacity=usual.capacity)


def main() -> None:
    """Print the figures."""
    for name, text in SELECTORS.items():
        _compile_time(name, text)
    _pool("one shape", map(device, range(DEVICES)))
    _pool("as many shapes as devices", map(device_of_own_shape, range(DEVICES)))
    _peer()


def _pool(title: str, found: Iterable[Device]) -> None:
    compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
    devices = list(found)
    print(title)
    for name, text in SELECTORS.items():
        compiler.compile(text, scope=Scope.STORED)
        first = min(_timed(_facts(devices, compiler), text, compiler) for _ in range(5))
        facts = _facts(devices, compiler)
        _timed(facts, text, compiler)
        again = min(_timed(facts, text, compiler) for _ in range(5))
        matches = facts.selected((text,)).yes.bit_count()
        print(
            f"  {name}: {first:.2f} µs a device, with columns read {again:.2f} µs; {matches} match"
        )


def _facts(devices: list[Device], compiler: DeviceCompiler) -> PoolFacts:
    pool = ResourcePool(name="pool", generation=1, resource_slice_count=1)
    node = Node(metadata=ObjectMeta(name="node"))
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool, node_name="node", devices=tuple(devices))
    slice_ = ResourceSlice(metadata=ObjectMeta(name="slice"), spec=spec)
    inventory = Inventory(compiler=compiler)
    inventory.put_slice(slice_)
    (facts,) = inventory.view(node).pools
    return facts


def _timed(facts: PoolFacts, text: str, compiler: DeviceCompiler) -> float:
    started = time.process_time()
    answers = SelectorAnswers(compiler.compile(text), facts.devices)
    answers.ask(facts.all)
    taken = time.process_time() - started
    assert not answers.faults
    return taken / DEVICES * 1e6


def _compile_time(name: str, text: str) -> None:
    times = []
    for _ in range(20):
        compiler = DeviceCompiler(CelFeatures(list_attributes=True), extensions=False)
        started = time.process_time()
        compiler.compile(text, scope=Scope.STORED)
        times.append((time.process_time() - started) * 1e3)
    print(f"{name}: compile {min(times):.2f} ms (goal: 1)")


def _peer() -> None:
    """Measure cel-python beside it, where it is installed."""
    try:
        import celpy  # type: ignore[import-not-found]
    except ImportError:
        print("cel-python is not installed: no peer measured")
        return
    environment = celpy.Environment()
    text = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].model == "H200"'
    program = environment.program(environment.compile(text))
    tree = {"driver": DRIVER, "attributes": {DRIVER: {"model": "H200"}}}
    activation = {"device": celpy.json_to_cel(tree)}
    count = 300
    started = time.process_time()
    for _ in range(count):
        program.evaluate(activation)
    print(f"cel-python: {(time.process_time() - started) / count * 1e6:.0f} µs a device")
