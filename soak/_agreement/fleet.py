"""Nodes, devices and classes of a random cluster, and what happens to them once pods run.

gpu.example.com     whole devices of a node, with attributes and taints
nic.example.com     devices of a node that claims share, by bandwidth
mig.example.com     partitions of boards, which share counters
fabric.example.com  devices that several nodes reach
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

Tree = dict[str, Any]
RESOURCE: Final = "resource.k8s.io/v1"
GPU: Final = "gpu.example.com"
NIC: Final = "nic.example.com"
MIG: Final = "mig.example.com"
FABRIC: Final = "fabric.example.com"
EXTENDED: Final = "example.com/gpu"
CREATED: Final = "2026-01-01T00:00:00Z"
MODELS: Final = ("a100", "h100")
CONDITIONS_BAD: Final = {"type": "Ready", "status": "False", "reason": "KubeletNotReady"}
CONDITIONS_GOOD: Final = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
DEVICE_EFFECTS: Final = ("NoSchedule", "NoSchedule", "NoExecute", "None")


def made(version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Tree:
    """Return an object."""
    metadata: Tree = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


class Fleet:
    """The nodes, slices and classes of one world."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.names = [f"node-{n}" for n in range(random.randint(2, 4))]
        self.nodes = [self._node(name) for name in self.names]
        self.gpus = random.choice((2, 4))
        self.slices: list[Tree] = []
        for number, name in enumerate(self.names):
            self.slices.append(_slice(name, GPU, {"devices": self._gpus(number)}))
            if random.random() < 0.6:
                self.slices.append(_slice(name, NIC, {"devices": _nics(random.randint(1, 2))}))
            if random.random() < 0.5:
                self.slices += _boards(name)
        if random.random() < 0.4:
            self.slices.append(self._fabric())
        self.classes = [*map(_class, (GPU, NIC, MIG, FABRIC)), self._large_class()]
        if random.random() < 0.5:
            self.classes[0]["spec"]["extendedResourceName"] = EXTENDED

    def objects(self) -> list[Tree]:
        """Return everything."""
        return [*self.nodes, *self.classes, *self.slices]

    def _node(self, name: str) -> Tree:
        room = {"cpu": self.random.choice(("4", "16", "64")), "memory": "64Gi", "pods": "20"}
        node = made("v1", "Node", name, spec={})
        zone = self.random.choice(("east", "west"))
        node["metadata"]["labels"] = {"kubernetes.io/hostname": name, "zone": zone}
        return node | {
            "status": {"capacity": room, "allocatable": room, "conditions": [CONDITIONS_GOOD]}
        }

    def _gpus(self, node: int) -> list[Tree]:
        found = []
        for number in range(self.gpus):
            attributes: Tree = {
                "model": {"string": MODELS[(node + number // 2) % 2]},
                "numaNode": {"int": number * 2 // self.gpus},
                "index": {"int": number},
            }
            memory = {"value": f"{40 * (1 + (node + number) % 2)}Gi"}
            found.append(
                {
                    "name": f"gpu-{number}",
                    "attributes": attributes,
                    "capacity": {"memory": memory},
                }
            )
        return found

    def _fabric(self) -> Tree:
        devices = [{"name": f"link-{n}"} for n in range(self.random.randint(1, 3))]
        if self.random.random() < 0.5:
            return _slice("", FABRIC, {"allNodes": True, "devices": devices})
        wanted = {"key": "zone", "operator": "In", "values": ["east"]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
        return _slice("", FABRIC, {"nodeSelector": selector, "devices": devices})

    def _large_class(self) -> Tree:
        memory = f'device.capacity["{GPU}"].memory.compareTo(quantity("80Gi")) >= 0'
        found = _class(GPU)
        found["metadata"]["name"] = f"large.{GPU}"
        found["spec"]["selectors"].append({"cel": {"expression": memory}})
        return found

    # --- what happens later -------------------------------------------------------------------

    def age(self) -> list[Tree]:
        """Let things happen to nodes and devices; return the objects that this adds."""
        random, added = self.random, []
        for node in self.nodes:
            if random.random() < 0.15:
                _cordon(node)
            elif random.random() < 0.1:
                _lose(node)
            elif random.random() < 0.1:
                taint = {"key": "dedicated", "value": "lab", "effect": "NoSchedule"}
                node["spec"].setdefault("taints", []).append(taint)
        for each in self.slices:
            if random.random() < 0.1:
                self._damage(each)
        if random.random() < 0.2:
            added.append(self._taint_rule())
        return added

    def _damage(self, published: Tree) -> None:
        spec = published["spec"]
        devices = spec.get("devices") or []
        match self.random.choice(("incomplete", "tainted", "tainted", "fewer")):
            case "incomplete":
                spec["pool"]["resourceSliceCount"] += 1
            case "tainted" if devices:
                effect = self.random.choice(DEVICE_EFFECTS)
                taint = {"key": "example.com/sick", "value": "yes", "effect": effect}
                self.random.choice(devices)["taints"] = [taint]
            case "fewer" if len(devices) > 1 and spec["driver"] != MIG:
                devices.pop()

    def _taint_rule(self) -> Tree:
        selector: Tree = {"driver": GPU, "pool": self.random.choice(self.names)}
        if self.random.random() < 0.5:
            selector["device"] = "gpu-0"
        effect = self.random.choice(DEVICE_EFFECTS)
        taint = {"key": "example.com/service", "value": "due", "effect": effect}
        spec = {"deviceSelector": selector, "taint": taint}
        version = "resource.k8s.io/v1beta2"
        return made(version, "DeviceTaintRule", "service", spec=spec)


def _slice(node: str, driver: str, content: Tree, *, part: str = "", count: int = 1) -> Tree:
    pool = {"name": node or "shared", "generation": 1, "resourceSliceCount": count}
    place = {"nodeName": node} if node else {}
    name = f"{node or 'shared'}-{driver}{part}"
    spec = {"driver": driver, "pool": pool, **place, **content}
    return made(RESOURCE, "ResourceSlice", name, spec=spec)


def _nics(count: int) -> list[Tree]:
    bandwidth = {
        "value": "10G",
        "requestPolicy": {"default": "2G", "validRange": {"min": "1G", "step": "1G"}},
    }
    return [
        {
            "name": f"nic-{number}",
            "allowMultipleAllocations": True,
            "attributes": {"numaNode": {"int": number}},
            "capacity": {"bandwidth": bandwidth},
        }
        for number in range(count)
    ]


def _boards(node: str) -> list[Tree]:
    """Return the counters of a board, and its devices: whole, halves and quarters."""
    counters = {"board-0": {"memory": {"value": "40Gi"}}}
    shared = [{"name": name, "counters": found} for name, found in counters.items()]
    sizes = {"whole": "40Gi", "half-0": "20Gi", "half-1": "20Gi", "quarter-0": "10Gi"}
    devices = [
        {
            "name": f"board-0-{part}",
            "attributes": {"size": {"string": part.partition("-")[0]}},
            "consumesCounters": [
                {"counterSet": "board-0", "counters": {"memory": {"value": amount}}}
            ],
        }
        for part, amount in sizes.items()
    ]
    return [
        _slice(node, MIG, {"sharedCounters": shared}, part="-counters", count=2),
        _slice(node, MIG, {"devices": devices}, count=2),
    ]


def _class(driver: str) -> Tree:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return made(RESOURCE, "DeviceClass", driver, spec={"selectors": selectors})


def _cordon(node: Tree) -> None:
    node["spec"]["unschedulable"] = True
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    node["spec"].setdefault("taints", []).append(taint)


def _lose(node: Tree) -> None:
    node["status"]["conditions"] = [CONDITIONS_BAD]
    for effect in ("NoSchedule", "NoExecute"):
        taint = {"key": "node.kubernetes.io/not-ready", "effect": effect}
        node["spec"].setdefault("taints", []).append(taint)
