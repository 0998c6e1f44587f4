"""Selectors over a fleet: time for each device with cost counting, and to compile.

10,000 devices with 20 attributes. Goals, after the activation is built (contents, and the fleet
with its columns): at most 0.5 µs a device for a class selector, 1.5 µs with a quantity, has() and
exists; 0.05 µs the second time; 1 ms to compile. Devices that are all of different shapes have no
goals.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from mooring.api.quantity import Quantity
from mooring.api.resource.v1 import Device, DeviceAttribute, DeviceCapacity
from mooring.cel.device import DeviceCompiler, Features, Scope
from mooring.cel.fleet import Contents, Fleet, Seen

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
    _fleet("one shape", map(device, range(DEVICES)))
    _fleet("as many shapes as devices", map(device_of_own_shape, range(DEVICES)))
    _peer()


def _fleet(title: str, found: Iterable[Device]) -> None:
    compiler = DeviceCompiler(Features(list_attributes=True), extensions=False)
    contents = Contents()
    started = time.process_time()
    devices = [Seen(DRIVER, "pool", d, contents.of(DRIVER, d)) for d in found]
    read = time.process_time()
    fleet = Fleet(devices)
    ended = time.process_time()
    print(
        f"{title}: activation {(read - started) / DEVICES * 1e6:.1f} µs a device, "
        f"and {(ended - read) / DEVICES * 1e6:.1f} µs in the fleet"
    )
    for name, text in SELECTORS.items():
        compiled = compiler.compile(text, scope=Scope.STORED)
        assert compiled.error is None, compiled.error
        first = min(_timed(Fleet(devices), compiled) for _ in range(5))
        answers = fleet.evaluate(compiled)
        again = min(_timed(fleet, compiled) for _ in range(5))
        matches = sum(value is True for value in answers.values)
        costs = set(answers.costs)
        print(
            f"  {name}: {first:.2f} µs a device, again {again:.4f} µs; "
            f"{matches} match, costs {sorted(map(int, filter(None, costs)))}"
        )


def _timed(fleet: Fleet, compiled: object) -> float:
    started = time.process_time()
    fleet.evaluate(compiled)  # type: ignore[arg-type]
    return (time.process_time() - started) / DEVICES * 1e6


def _compile_time(name: str, text: str) -> None:
    times = []
    for _ in range(20):
        compiler = DeviceCompiler(Features(list_attributes=True), extensions=False)
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
