"""How fast YAML and JSON text becomes documents, and what asking for places adds."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter

from moorage.api.documents import Tree, expand_lists, read

DEVICES = 32
ROUNDS = 3
YAML_SLICES = 60
JSON_SLICES = 1500

DEVICE = """\
  - name: gpu-{device}
    attributes:
      model: {{string: LATEST-GPU-MODEL}}
      index: {{int: {device}}}
      healthy: {{bool: true}}
      driverVersion:
        version: 1.{device}.0
    capacity:
      memory:
        value: 80Gi
"""
SLICE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: slice-{number}
spec:
  driver: gpu.example.com
  nodeName: node-{number}
  pool:
    name: pool-{number}
    generation: 1
    resourceSliceCount: 1
  devices:
"""


def main() -> None:
    """Print megabytes per second for each way of reading."""
    separate = "---\n".join(_slice(number) for number in range(YAML_SLICES)).encode()
    slices = [_tree(number) for number in range(JSON_SLICES)]
    whole: Tree = {"apiVersion": "v1", "kind": "List", "items": slices}
    listed = json.dumps(whole, indent=2).encode()
    concatenated = "\n".join(json.dumps(tree) for tree in slices).encode()
    _report("YAML documents", separate, _read)
    _report("YAML documents, places", separate, _locate)
    _report("JSON list", listed, _read)
    _report("JSON list, places", listed, _locate)
    _report("JSON documents", concatenated, _read)
    _report("refused for its size", b" " * 100_000_000, _refused)
    _report("refused for its aliases", _bomb(), _refused)


def _slice(number: int) -> str:
    devices = "".join(DEVICE.format(device=device) for device in range(DEVICES))
    return SLICE.format(number=number) + devices


def _tree(number: int) -> Tree:
    (document,) = read(_slice(number).encode(), source="benchmark")
    return document.tree


def _bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    return "\n".join(lines).encode()


def _read(data: bytes) -> int:
    return sum(1 for document in read(data, source="benchmark") for _ in expand_lists(document))


def _locate(data: bytes) -> int:
    return sum(
        item.locate(("spec", "devices", 3, "name")).line > 0
        for document in read(data, source="benchmark")
        for item in expand_lists(document)
    )


def _refused(data: bytes) -> int:
    try:
        return _read(data)
    except ValueError:
        return 0


def _report(name: str, data: bytes, work: Callable[[bytes], int]) -> None:
    """Print the best of some rounds."""
    least_s = float("inf")
    for _ in range(ROUNDS):
        start = perf_counter()
        objects = work(data)
        least_s = min(least_s, perf_counter() - start)
    speed = f"{len(data) / least_s / 1e6:10.1f} MB/s" if objects else " " * 15
    print(f"{name:24} {len(data) / 1e6:8.2f} MB {least_s * 1e3:9.1f} ms {speed} {objects:6}")
