"""Reading, defaulting and validating ResourceSlices from JSON: time and memory for each.

The shape is Kubernetes' own scheduling benchmark's: one slice a node, 10 devices, 13 attributes
and 2 capacities each. Goals: at most 200 µs and 32 KB a slice, linear to 50,000.
"""

from __future__ import annotations

import gc
import json
import resource
import time
import tracemalloc
from datetime import UTC, datetime

from moorage.api.catalogue import CATALOGUE
from moorage.api.documents import read
from moorage.api.gates import Gates
from moorage.api.object_reader import read_document
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import before_create
from moorage.validation.strategy import Context

KIND = CATALOGUE.find("resource.k8s.io/v1", "ResourceSlice")
DEVICES = 10


def slice_json(number: int) -> bytes:
    """Return one slice of the basic shape."""
    node = f"node-{number}"
    return json.dumps(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-gpu.example.com-slice"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [_device(number, position) for position in range(DEVICES)],
            },
        }
    ).encode()


def _device(number: int, position: int) -> dict[str, object]:
    return {
        "name": f"device-{position}",
        "attributes": {
            "uuid": {"string": f"gpu-{number:08x}-{position:04x}-1e5f-a0b1"},
            "index": {"int": position},
            "model": {"string": "LATEST-GPU-MODEL"},
            "architecture": {"string": "Hopper"},
            "brand": {"string": "Nvidia"},
            "productName": {"string": "NVIDIA H200 141GB HBM3e"},
            "healthy": {"bool": True},
            "driverVersion": {"version": "570.86.15"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "cudaDriverVersion": {"version": "12.8.0"},
            "numaNode": {"int": position // 5},
            "resource.kubernetes.io/pciBusID": {"string": f"0000:{number % 256:02x}:{position}.0"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{position // 2:02x}"},
        },
        "capacity": {"memory": {"value": "141Gi"}, "cores": {"value": "132"}},
    }


def measure(count: int) -> tuple[float, float]:
    """Return microseconds and kilobytes for one slice, over `count` of them."""
    texts = [slice_json(number) for number in range(count)]
    context = Context(gates=Gates.parse(), now=Timestamp(datetime(2026, 1, 1, tzinfo=UTC)))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    kept = [admit(text, context) for text in texts]
    elapsed = time.process_time() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert all(slice_ is not None for slice_ in kept)
    return elapsed / count * 1e6, grown / count


def admit(text: bytes, context: Context) -> object:
    """Return the slice as it would be stored."""
    (document,) = read(text, source="slice.json")
    reading = read_document(document, gates=context.gates)
    admission = before_create(reading.value, reading.kind, context)
    assert not admission.errors, admission.errors
    return admission.stored


def kept_bytes(count: int) -> float:
    """Return the bytes that one slice keeps allocated."""
    texts = [slice_json(number) for number in range(count)]
    context = Context(gates=Gates.parse(), now=Timestamp(datetime(2026, 1, 1, tzinfo=UTC)))
    admit(texts[0], context)
    tracemalloc.start()
    kept = [admit(text, context) for text in texts]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == count
    return size / count


def main() -> None:
    """Print the figures."""
    print(f"one slice is {len(slice_json(1)):,} bytes of JSON")
    print(f"kept: {kept_bytes(500) / 1024:.1f} KB a slice (goal: 32)")
    measure(200)
    for count in (5_000, 50_000):
        microseconds, kilobytes = measure(count)
        print(f"{count:>6} slices: {microseconds:.0f} µs each (goal: 200), RSS +{kilobytes:.1f} KB")
