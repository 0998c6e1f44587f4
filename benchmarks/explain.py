"""How long `moor explain` takes on 2,000 nodes with 16,000 devices, reading aside.

One pending pod of each of several causes, and 100 pending pods of ten causes: as ten deployments,
and as bare pods. The plan finds which pods are pending; the answers are the explanation, its cause
and the fixes, each tried.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from statistics import median
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.answer.answer import answers
from moorage.insight.plan.planner import plan
from moorage.insight.snapshot.snapshot import Snapshot, identified
from moorage.validation.registry import defaulted_hub
from moorage.validation.strategy import Context

NODES: Final = 2000
DEVICES: Final = 8
RUNS: Final = 5
DRIVER: Final = "gpu.example.com"
NAMESPACE: Final = "team"
CONTEXT: Final = Context(gates=Gates.parse(""), now=Timestamp.parse("2026-01-01T00:00:00Z"))
RESOURCE: Final = "resource.k8s.io/v1"
Tree = dict[str, Any]


def main() -> None:
    """Print the times."""
    fleet = list(fleet_objects(NODES))
    print(f"{NODES:,} nodes, {NODES * DEVICES:,} devices; medians of {RUNS} runs, processor time")
    for name in CAUSES:
        _print(name, fleet, list(bare_pods(name)))
    _print("100 pods, 10 deployments", fleet, [o for n in CAUSES for o in deployment(n, 10)])
    _print("100 bare pods, 10 causes", fleet, [o for n in CAUSES for o in bare_pods(n, 10)])


def _print(name: str, fleet: list[Any], objects: list[Any]) -> None:
    figures = [_measured(fleet, objects) for _ in range(RUNS)]
    planned, answered = (median(times) for times in zip(*(f[:2] for f in figures), strict=True))
    pods, groups = figures[0][2:]
    print(
        f"{name:26} plan {planned * 1e3:6.0f} ms, answers {answered * 1e3:6.0f} ms "
        f"({pods} pods, {groups} answers)"
    )


class _Figures(NamedTuple):
    plan_s: float
    answers_s: float
    pods: int
    groups: int


def _measured(fleet: list[Any], objects: list[Any]) -> _Figures:
    snapshot = Snapshot.of([*fleet, *objects])
    gc.collect()
    gc.freeze()  # as the command does
    started = time.process_time()
    found = plan(snapshot, CONTEXT)
    planned = time.process_time()
    answered = list(answers(found, found.pending, CONTEXT))
    ended = time.process_time()
    gc.unfreeze()
    return _Figures(planned - started, ended - planned, len(found.pending), len(answered))


# --- the fleet ------------------------------------------------------------------------------


def fleet_objects(nodes: int) -> Iterator[Any]:
    """Yield nodes with devices; half of the nodes have four of them in use."""
    yield hub({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    yield hub(_class(DRIVER))
    yield hub(_class("net.example.com"))
    quota = {"hard": {f"{DRIVER}.deviceclass.resource.k8s.io/devices": "0"}}
    yield hub({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "poor"}})
    metadata = {"name": "few", "namespace": "poor"}
    yield hub({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": quota})
    for number in range(nodes):
        yield from map(hub, _machine(number))


def _class(name: str) -> Tree:
    expression = f'device.driver == "{name}"'
    return {
        "apiVersion": RESOURCE,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _machine(number: int) -> Iterator[Tree]:
    name = f"node-{number:04d}"
    room = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "zone": f"zone-{number % 4}"}
    taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}]
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints} if number % 50 == 0 else {},
        "status": {"capacity": room, "allocatable": room},
    }
    yield {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpu"},
        "spec": {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [_device(number, index) for index in range(DEVICES)],
        },
    }
    if number % 2:
        yield from _user(name, number)


def _device(number: int, index: int) -> Tree:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "model": {"string": "h100" if number % 4 else "a100"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "uuid": {"string": f"GPU-{number:08x}-{index:04x}"},
            "numaNode": {"int": index // 4},
            "driverVersion": {"version": "535.104.5"},
        },
        "capacity": {"memory": {"value": "80Gi" if number % 4 else "40Gi"}},
    }


def _user(node: str, number: int) -> Iterator[Tree]:
    """Yield a running pod, and its claim with half of the devices."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{index}"}
        for index in range(0, DEVICES, 2)
    ]
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
    name = f"busy-{number}"
    spec = {"devices": {"requests": [_exactly(count=4)]}}
    user = {"resource": "pods", "name": name, "uid": f"uid-{name}"}
    yield {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "others", "uid": f"uid-claim-{name}"},
        "spec": spec,
        "status": {
            "allocation": {"devices": {"results": results}, "nodeSelector": selector},
            "reservedFor": [user],
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "others", "uid": f"uid-{name}"},
        "spec": _pod_spec([{"name": "gpus", "resourceClaimName": name}]) | {"nodeName": node},
    }


# --- pending pods, by cause -----------------------------------------------------------------


class Mistake(NamedTuple):
    """What a pending pod asks for."""

    request: Tree
    constraints: tuple[Tree, ...] = ()
    pod: Mapping[str, Any] = MappingProxyType({})
    template: str = ""  # that the pod names, if not its own
    namespace: str = NAMESPACE


def _exactly(count: int = 1, name: str = DRIVER, expression: str = "", **more: Any) -> Tree:
    wanted: Tree = {"deviceClassName": name, "allocationMode": "ExactCount", "count": count, **more}
    if expression:
        wanted["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": "gpu", "exactly": wanted}


ATTRIBUTE: Final = f'device.attributes["{DRIVER}"]'
CAUSES: Final = {
    "attribute typo": Mistake(_exactly(expression=f'{ATTRIBUTE}.modle == "h100"')),
    "value of nobody": Mistake(_exactly(expression=f'{ATTRIBUTE}.model == "h200"')),
    "all in use": Mistake(_exactly(count=8), pod={"nodeSelector": {"zone": "zone-1"}}),
    "node taint": Mistake(
        _exactly(count=8), pod={"nodeSelector": {"kubernetes.io/hostname": "node-0100"}}
    ),
    "numa constraint": Mistake(
        _exactly(count=5), ({"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numaNode"},)
    ),
    "quota": Mistake(_exactly(), namespace="poor"),
    "class missing": Mistake(_exactly(name="gpu.example.org")),
    "template missing": Mistake(_exactly(), template="gpu"),
    "cpu": Mistake(_exactly(), pod={"cpu": "128"}),
    "nine of a node": Mistake(_exactly(count=9)),
}


def _pod_spec(entries: list[Tree], *, cpu: str = "1", **more: Any) -> Tree:
    main = {
        "name": "main",
        "image": "registry.example.com/app:1",
        "resources": {"requests": {"cpu": cpu}},
    }
    return {"containers": [main], "resourceClaims": entries, **more}


def _template(name: str, mistake: Mistake) -> Tree:
    devices = {"requests": [mistake.request], "constraints": list(mistake.constraints)}
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": mistake.namespace},
        "spec": {"spec": {"devices": devices}},
    }


def _spec_of(name: str, mistake: Mistake) -> Tree:
    entry = {"name": "gpus", "resourceClaimTemplateName": mistake.template or name}
    return _pod_spec([entry], **mistake.pod)


def bare_pods(name: str, count: int = 1) -> Iterator[Any]:
    """Yield pods that wait for one cause, and their template."""
    mistake, base = CAUSES[name], name.replace(" ", "-")
    yield hub(_template(base, mistake))
    for number in range(count):
        metadata = {"name": f"{base}-{number}", "namespace": mistake.namespace}
        spec = _spec_of(base, mistake)
        yield hub({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def deployment(name: str, replicas: int) -> Iterator[Any]:
    """Yield a deployment whose pods wait for one cause, and their template."""
    mistake, base = CAUSES[name], name.replace(" ", "-")
    yield hub(_template(base, mistake))
    labels = {"app": base}
    template = {"metadata": {"labels": labels}, "spec": _spec_of(base, mistake)}
    yield hub(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": base, "namespace": mistake.namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": template,
            },
        }
    )


def hub(tree: Tree) -> Any:
    """Return an object as a snapshot has it."""
    kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
    value = decode_tree(tree, kind.struct).value
    return identified(defaulted_hub(value, kind, CONTEXT))
