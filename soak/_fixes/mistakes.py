"""Random clusters and workloads with everyday mistakes: one, two or three at a time.

A workshop makes the objects without any mistake; then mistakes are made in them. Some of them hide
others, and some do no harm: then the pods get their nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from soak._fixes.worlds import EVERYTHING, RESOURCE, Trees, World

GPU: Final = "gpu.example.com"
NIC: Final = "nic.example.com"
TEAM: Final = "team"
ATTRIBUTES: Final = f'device.attributes["{GPU}"]'
MISTAKES_MAX: Final = 3
Tree = dict[str, Any]


class Workshop:
    """The objects of one world, by kind, as mistakes change them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes = [f"node-{n}" for n in range(random.randint(1, 4))]
        self.models = random.sample(["a100", "h100", "l40s"], 2)
        self.cluster: list[Tree] = [_object("v1", "Namespace", TEAM)]
        self.cluster += [_class(GPU), _class(NIC)]
        self.gpus = random.choice((2, 4, 8))
        self.slices: list[Tree] = []
        for number, name in enumerate(self.nodes):
            self.cluster.append(_node(name))
            self.slices.append(
                self._slice(name, GPU, [self._gpu(number, n) for n in range(self.gpus)])
            )
            if random.random() < 0.7:
                nics = [self._nic(n) for n in range(random.choice((1, 2)))]
                self.slices.append(self._slice(name, NIC, nics))
        self.request = {"name": "gpu", "exactly": {"deviceClassName": GPU}}
        self.spec: Tree = {"devices": {"requests": [self.request]}}
        self.pod: Tree = {"containers": [_container()]}
        self.kind = random.choice(("Pod", "Pod", "Deployment", "Job", "StatefulSet"))
        self.replicas = random.choice((1, 1, 2, 3)) if self.kind != "Pod" else 1
        self.entry = random.choice(("resourceClaimTemplateName", "resourceClaimName"))
        if self.replicas > 1:
            self.entry = "resourceClaimTemplateName"
        self.named = "gpus"  # the claim or template that the pod names
        self.more: list[Tree] = []  # other manifests
        if random.random() < 0.5:
            model = f'{ATTRIBUTES}.model == "{self.models[0]}"'
            self.exactly["selectors"] = [{"cel": {"expression": model}}]

    @property
    def exactly(self) -> Tree:
        """The request of the claim."""
        found: Tree = self.request["exactly"]  # type: ignore[assignment]
        return found

    def _slice(self, node: str, driver: str, devices: list[Tree]) -> Tree:
        made = _object(RESOURCE, "ResourceSlice", f"{node}-{driver}")
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        made["spec"] = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
        return made

    def _gpu(self, node: int, number: int) -> Tree:
        attributes: Tree = {
            "model": {"string": self.models[(node + number) % 2]},
            "slot": {"int": number},
            "numaNode": {"int": number * 2 // self.gpus},
            "driverVersion": {"version": "1.2.3"},
            "healthy": {"bool": True},
            "zones": {"strings": ["left", "right"]},
        }
        if number % 2:
            attributes["nvlink"] = {"string": "domain-0"}
        memory = {"value": f"{40 * (1 + number % 2)}Gi"}
        return {"name": f"gpu-{number}", "attributes": attributes, "capacity": {"memory": memory}}

    def _nic(self, number: int) -> Tree:
        attributes = {"numaNode": {"int": number}, "speed": {"int": 100}}
        return {"name": f"nic-{number}", "attributes": attributes}

    def select(self, expression: str) -> None:
        """Let the request choose devices by one more expression."""
        self.exactly.setdefault("selectors", []).append({"cel": {"expression": expression}})

    def node(self) -> Tree:
        """Return one of the nodes."""
        nodes = [each for each in self.cluster if each["kind"] == "Node"]
        return self.random.choice(nodes)

    def world(self, name: str) -> World:
        """Return the objects as a world."""
        claim: Tree = _object(RESOURCE, "ResourceClaim", "gpus", TEAM) | {"spec": self.spec}
        if self.entry != "resourceClaimName":
            claim |= {"kind": "ResourceClaimTemplate", "spec": {"spec": self.spec}}
        self.pod["resourceClaims"] = [{"name": "devices", self.entry: self.named}]
        manifests = [claim, *self.more, self._workload()]
        return World(
            name,
            (Trees("cluster.json", [*self.cluster, *self.slices]),),
            (Trees("manifests.json", manifests),),
            EVERYTHING,
            TEAM,
        )

    def _workload(self) -> Tree:
        if self.kind == "Pod":
            return _object("v1", "Pod", "train", TEAM) | {"spec": self.pod}
        labels = {"app": "train"}
        template = {"metadata": {"labels": labels}, "spec": self.pod}
        if self.kind == "Job":
            self.pod["restartPolicy"] = "Never"
            counts = {"parallelism": self.replicas, "completions": self.replicas}
            return _object("batch/v1", "Job", "train", TEAM) | {
                "spec": {"template": template, **counts}
            }
        spec: Tree = {"replicas": self.replicas, "selector": {"matchLabels": labels}}
        if self.kind == "StatefulSet":
            spec["serviceName"] = "train"
        return _object("apps/v1", self.kind, "train", TEAM) | {
            "spec": spec | {"template": template}
        }


def _object(version: str, kind: str, name: str, namespace: str = "") -> Tree:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def _class(driver: str) -> Tree:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return _object(RESOURCE, "DeviceClass", driver) | {"spec": {"selectors": selectors}}


def _node(name: str) -> Tree:
    made = _object("v1", "Node", name)
    made["metadata"]["labels"] = {"kubernetes.io/hostname": name, "zone": "east"}
    room = {"cpu": "32", "memory": "256Gi", "pods": "20"}
    return made | {"status": {"capacity": room, "allocatable": room}}


def _container() -> Tree:
    return {
        "name": "main",
        "image": "registry.example.com/app:1",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "devices"}]},
    }


# --- mistakes -------------------------------------------------------------------------------


def _held(shop: Workshop) -> None:
    """Some devices of a node are in use."""
    node = shop.random.choice(shop.nodes)
    count = shop.random.randint(1, shop.gpus)
    results = [
        {"request": "gpu", "driver": GPU, "pool": node, "device": f"gpu-{n}"} for n in range(count)
    ]
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    made = _object(RESOURCE, "ResourceClaim", f"held-{len(shop.cluster)}", "others")
    made["metadata"]["uid"] = f"uid-{len(shop.cluster)}"
    shop.cluster.append(
        made
        | {
            "spec": {
                "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": GPU}}]}
            },
            "status": {
                "allocation": {
                    "devices": {"results": results},
                    "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
                }
            },
        }
    )


def _quota(shop: Workshop) -> None:
    hard = shop.random.choice(
        (
            {f"{GPU}.deviceclass.resource.k8s.io/devices": "0"},
            {"count/resourceclaims.resource.k8s.io": "0"},
            {"pods": "0"},
            {"requests.cpu": "500m"},
            {"count/resourceclaims.resource.k8s.io": "1", "requests.memory": "1Gi"},
        )
    )
    shop.cluster.append(_object("v1", "ResourceQuota", "few", TEAM) | {"spec": {"hard": hard}})


def _node_taint(shop: Workshop) -> None:
    for node in shop.cluster:
        if node["kind"] == "Node" and shop.random.random() < 0.8:
            taint = {"key": "dedicated", "value": "lab", "effect": "NoSchedule"}
            node.setdefault("spec", {})["taints"] = [taint]


def _device_taint(shop: Workshop) -> None:
    key = shop.random.choice(("example.com/unhealthy", "example.com/reserved"))
    for device in (d for s in shop.slices for d in s["spec"]["devices"]):
        if shop.random.random() < 0.8:
            device["taints"] = [{"key": key, "value": "yes", "effect": "NoSchedule"}]


def _cordoned(shop: Workshop) -> None:
    shop.node().setdefault("spec", {})["unschedulable"] = True


def _incomplete(shop: Workshop) -> None:
    shop.random.choice(shop.slices)["spec"]["pool"]["resourceSliceCount"] = 2


def _second_request(shop: Workshop) -> None:
    count = shop.random.choice((1, shop.gpus // 2, shop.gpus))
    wanted = {"deviceClassName": shop.random.choice((GPU, GPU, NIC)), "count": count}
    shop.spec["devices"]["requests"].append({"name": "second", "exactly": wanted})


def _constraint(shop: Workshop) -> None:
    attribute = shop.random.choice(
        (f"{GPU}/numaNode", f"{GPU}/numanode", f"{GPU}/slot", f"{GPU}/model", f"{NIC}/numaNode")
    )
    field = shop.random.choice(("matchAttribute", "matchAttribute", "distinctAttribute"))
    shop.spec["devices"]["constraints"] = [{field: attribute}]


def _alternatives(shop: Workshop) -> None:
    big = {"name": "big", "deviceClassName": GPU, "count": shop.gpus + 1}
    other = {"name": "other", "deviceClassName": GPU, "selectors": [_cel('model == "b200"')]}
    shop.spec["devices"]["requests"] = [{"name": "gpu", "firstAvailable": [big, other]}]


def _cel(condition: str) -> Tree:
    return {"cel": {"expression": f"{ATTRIBUTES}.{condition}"}}


def _group(shop: Workshop) -> None:
    name = shop.random.choice(("train", "trian"))
    policy = {"gang": {"minCount": shop.random.choice((shop.replicas, shop.replicas + 1))}}
    made = _object("scheduling.k8s.io/v1beta1", "PodGroup", "train", TEAM)
    shop.more.append(made | {"spec": {"schedulingPolicy": policy}})
    shop.pod["schedulingGroup"] = {"podGroupName": name}


def _sibling(shop: Workshop) -> None:
    """Another pod, which comes first, uses the same."""
    spec = {
        "containers": [_container()],
        "resourceClaims": [{"name": "devices", shop.entry: "gpus"}],
    }
    shop.more.append(_object("v1", "Pod", "another", TEAM) | {"spec": spec})


def _extended(shop: Workshop) -> None:
    name = shop.random.choice(("example.com/gpu", "nvidia.com/gpu"))
    resources = shop.pod["containers"][0]["resources"]
    resources["requests"][name] = resources.setdefault("limits", {})[name] = "1"


def _set(field: str, *values: Any) -> Callable[[Workshop], None]:
    def make(shop: Workshop) -> None:
        shop.pod[field] = shop.random.choice(values)

    return make


def _selects(*conditions: str) -> Callable[[Workshop], None]:
    return lambda shop: shop.select(f"{ATTRIBUTES}.{shop.random.choice(conditions)}")


def _amount(name: str, *values: str) -> Callable[[Workshop], None]:
    def make(shop: Workshop) -> None:
        shop.pod["containers"][0]["resources"]["requests"][name] = shop.random.choice(values)

    return make


def _count(shop: Workshop) -> None:
    shop.exactly["count"] = shop.random.choice((2, shop.gpus, shop.gpus + 1, 33))


def _all(shop: Workshop) -> None:
    shop.exactly["allocationMode"] = "All"
    shop.exactly.pop("count", None)


def _named(shop: Workshop) -> None:
    shop.named = shop.random.choice(("gpu", "gpuss", "other"))


def _class_name(shop: Workshop) -> None:
    shop.exactly["deviceClassName"] = shop.random.choice(
        ("gpu.exmaple.com", "gpu", "tpu.google.com")
    )


def _capacity(shop: Workshop) -> None:
    amount = shop.random.choice(("60Gi", "80Gi", "200Gi"))
    memory = f'device.capacity["{GPU}"].memory.compareTo(quantity("{amount}")) >= 0'
    shop.select(shop.random.choice((memory, memory.replace("memory", "memroy"))))


def _admin(shop: Workshop) -> None:
    shop.exactly["adminAccess"] = True


MISTAKES: Final[tuple[Callable[[Workshop], None], ...]] = (
    *(_held, _held, _quota, _node_taint, _device_taint, _cordoned, _incomplete, _second_request),
    *(_constraint, _alternatives, _group, _sibling, _extended, _count, _count, _all, _named),
    *(_class_name, _capacity, _admin),
    _selects('modle == "a100"', 'model == "A100"', 'model == "b200"', "model == 1", 'slot == "0"'),
    _selects('nvlink == "domain-0"', 'zones == "left"', 'driverVersion == "1.2.3"', "slot > 7"),
    _selects("healthy", "unhealthy == false", "slots == 0", 'model.startsWith("z")'),
    _set("nodeSelector", {"zone": "eats"}, {"zone": "west"}, {"disk": "ssd"}),
    _set("schedulingGates", [{"name": "example.com/wait"}]),
    _set("tolerations", [{"key": "dedicated", "operator": "Equal", "value": "gpu"}]),
    _amount("cpu", "31", "33", "64"),
    _amount("memory", "300Gi", "1Ti"),
)


def random_world(seed: str) -> World:
    """Return a world with one to three mistakes; the seed decides which."""
    random = Random(seed)  # noqa: S311
    shop = Workshop(random)
    for mistake in random.sample(MISTAKES, random.randint(1, MISTAKES_MAX)):
        if "exactly" in shop.spec["devices"]["requests"][0]:
            mistake(shop)
    return shop.world(f"random {seed}")
