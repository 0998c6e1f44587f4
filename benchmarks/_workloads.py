"""The workloads of Kubernetes' scheduler benchmark for devices, as objects.

A setting is a cluster with some claims allocated before, and the pods that come, each with the
claims that were made for it. It can be varied: pods of many shapes in turn, and a mutated fleet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from benchmarks import _workload_fleets as fleets
from benchmarks._workload_fleets import Devices, Tree, Words
from moorage.api.codec import decode_tree
from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.scheduling import PodGroup

T = TypeVar("T", bound=Struct)

CLASS = "test-class"
NAMESPACE = "test"
SELECTOR = (
    'device.attributes["{driver}"].driverVersion.major() >= 1 && '
    'device.capacity["{driver}"].memory.isGreaterThan(quantity("1Mi"))'
)
DERIVED = "derived.example.com/root"
DERIVING = 'device.attributes["resource.kubernetes.io"].pciRoot'


class Arrival(NamedTuple):
    """A pod that looks for a node, and the claims that come with it."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]


class Setting(NamedTuple):
    """A cluster and what happens to it."""

    nodes: list[Node]
    slices: list[ResourceSlice]
    classes: list[DeviceClass]
    before: list[ResourceClaim]  # to be allocated before, one node after the other
    claims: list[ResourceClaim]  # that are there and have no devices
    arrivals: list[Arrival]
    pods_before: int = 0  # of the arrivals, not measured
    in_flight: int | None = None  # pods that stay, of those that came; None: all
    group: PodGroup | None = None


class Variation(NamedTuple):
    """How pods and fleet differ from the plain ones."""

    shapes: int = 1
    seed: int | None = None


PLAIN = Variation()


class Workload(NamedTuple):
    """One workload: its shape, what Kubernetes reaches, and what we want to."""

    name: str
    nodes: int
    kubernetes_pods_per_s: float
    goal_pods_per_s: float | None
    make: Callable[[int, Variation], Setting]


# --- parts --------------------------------------------------------------------------------------


class Maker:
    """Makes the objects of a setting."""

    def __init__(self, nodes: int, variation: Variation) -> None:
        self.words = Words(variation.seed)
        self.shapes = variation.shapes
        self.names = [self.words.text(f"scheduler-perf-dra-{n}") for n in range(nodes)]
        trees = [fleets.node(name, n, self.words) for n, name in enumerate(self.names)]
        self.nodes = [read(tree, Node) for tree in self.words.ordered(trees)]

    def slices(self, devices: Devices, counters: list[Tree] | None = None) -> list[ResourceSlice]:
        """Return a pool for each node, with its counters in a slice of their own."""
        found = []
        for number, name in enumerate(self.names):
            pool = self.words.text(f"resourceslice-{number}")
            slice_ = partial(
                fleets.slice_, pool=pool, words=self.words, slices=1 + bool(counters), nodeName=name
            )
            listed = self.words.ordered(devices(self.words))
            found.append(slice_(f"devices-{pool}", devices=listed))
            if counters:
                found.append(slice_(f"counters-{pool}", sharedCounters=counters))
        return [read(tree, ResourceSlice) for tree in self.words.ordered(found)]

    def device_class(self, name: str = CLASS, also: str = "", **spec: Any) -> DeviceClass:
        """Return a class of all devices of the driver."""
        selectors = [cel(f'device.driver == "{self.words.driver}"{also}')]
        tree = {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}
        return read(tree, DeviceClass)

    def claims(self, count: int, spec: Tree) -> list[ResourceClaim]:
        """Return claims that no pod uses."""
        trees = (claim_tree(f"init-claim-{number}", "init", spec) for number in range(count))
        return [read(tree, ResourceClaim) for tree in trees]

    def arrivals(self, count: int, spec: Tree) -> list[Arrival]:
        """Return pods with a claim from a template each."""
        return [self.arrival(number, spec) for number in range(count)]

    def arrival(self, number: int, spec: Tree) -> Arrival:
        """Return a pod with a claim from a template."""
        name, claim = f"test-dra-{number}", f"test-dra-{number}-resource-x"
        status = {"resourceClaimStatuses": [{"name": "resource", "resourceClaimName": claim}]}
        entry = {"name": "resource", "resourceClaimTemplateName": "test-claim-template"}
        pod = self.pod(number, name, entry=entry, status=status)
        tree = claim_tree(claim, NAMESPACE, self._varied_claim(number, spec), owner=name)
        return Arrival(read(pod, Pod), (read(tree, ResourceClaim),))

    def pod(self, number: int, name: str, *, entry: Tree | None = None, **fields: Any) -> Tree:
        """Return a pod of the shape whose turn it is."""
        resources: Tree = fields.pop("resources", {})
        spec: Tree = fields.pop("spec", {})
        if entry is not None:
            resources["claims"] = [{"name": entry["name"]}]
            spec["resourceClaims"] = [entry]
        labels = {}
        if self.shapes > 1:
            shape = number % self.shapes
            labels["app"] = f"app-{shape}"
            if shape % 2:
                resources.setdefault("requests", {})["cpu"] = f"{10 + shape}m"
            if shape % 3 == 0:
                spec["affinity"] = not_in_zone(f"elsewhere-{shape}")
        image = "registry.k8s.io/pause:3.10.1"
        spec["containers"] = [{"name": "pause", "image": image, "resources": resources}]
        metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": labels}
        return {"metadata": metadata, "spec": spec, **fields}

    def _varied_claim(self, number: int, spec: Tree) -> Tree:
        shape = number % self.shapes
        if shape % 5 != 1:
            return spec
        also = cel(f'device.driver != "other-{shape}.example.com"')
        requests = []
        for request in spec["devices"]["requests"]:
            exactly = request["exactly"]
            selectors = [*exactly.get("selectors", ()), also]
            requests.append({**request, "exactly": {**exactly, "selectors": selectors}})
        return {"devices": {**spec["devices"], "requests": requests}}


def read(tree: Tree, struct: type[T]) -> T:
    """Return an object."""
    return decode_tree(tree, struct).value


def cel(expression: str) -> Tree:
    """Return a selector."""
    return {"cel": {"expression": expression}}


def wanting(requests: int = 1, *constraints: Tree, count: int = 1, **exactly: Any) -> Tree:
    """Return the spec of a claim with like requests."""
    details = {
        "deviceClassName": CLASS,
        "allocationMode": "ExactCount",
        "count": count,
        **exactly,
    }
    listed = [{"name": f"req-{number}", "exactly": details} for number in range(requests)]
    return {"devices": {"requests": listed, "constraints": list(constraints)}}


def claim_tree(name: str, namespace: str, spec: Tree, owner: str | None = None) -> Tree:
    """Return a claim, made for a pod or not."""
    metadata: Tree = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    if owner is not None:
        metadata["annotations"] = {"resource.kubernetes.io/pod-claim-name": "resource"}
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner,
                "uid": f"uid-{owner}",
                "controller": True,
            }
        ]
    return {"metadata": metadata, "spec": spec}


def not_in_zone(zone: str) -> Tree:
    """Return the affinity of pods that keep away from a zone."""
    expression = {"key": fleets.ZONE, "operator": "NotIn", "values": [zone]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


# --- settings -----------------------------------------------------------------------------------


def template(nodes: int, variation: Variation) -> Setting:
    """Return half of the devices allocated before, and a burst of pods for the other half."""
    make = Maker(nodes, variation)
    before = make.claims(5 * nodes, wanting())
    arrivals = make.arrivals(5 * nodes, wanting())
    return Setting(
        make.nodes, make.slices(fleets.basic), [make.device_class()], before, [], arrivals
    )


def steady(part: float) -> Callable[[int, Variation], Setting]:
    """Return a setting of ten pods at a time, in a fleet of which a part is taken."""

    def make_steady(nodes: int, variation: Variation) -> Setting:
        make = Maker(nodes, variation)
        before = make.claims(min(int(10 * nodes * part), 10 * nodes - 10), wanting())
        return Setting(
            make.nodes,
            make.slices(fleets.basic),
            [make.device_class()],
            before,
            [],
            make.arrivals(5 * nodes, wanting()),
            in_flight=10,
        )

    return make_steady


def burst(
    devices: Devices,
    pods_per_node: int,
    spec: Callable[[Words], Tree],
    *,
    counters: list[Tree] | None = None,
    also: str = "",
) -> Callable[[int, Variation], Setting]:
    """Return a setting of a burst of pods in an empty fleet."""

    def make_burst(nodes: int, variation: Variation) -> Setting:
        make = Maker(nodes, variation)
        return Setting(
            make.nodes,
            make.slices(devices, counters),
            [make.device_class(also=also)],
            [],
            [],
            make.arrivals(pods_per_node * nodes, spec(make.words)),
        )

    return make_burst


def extended(*, is_explicit: bool) -> Callable[[int, Variation], Setting]:
    """Return a setting of pods that ask for extended resources of 25 classes."""
    prefix = "example.com/gpu-" if is_explicit else "deviceclass.resource.kubernetes.io/test-class-"

    def make_extended(nodes: int, variation: Variation) -> Setting:
        make = Maker(nodes, variation)
        classes = [
            make.device_class(
                f"{CLASS}-{number}",
                **({"extendedResourceName": f"{prefix}{number}"} if is_explicit else {}),
            )
            for number in range(25)
        ]
        arrivals = []
        for number in range(10 * nodes):
            amounts = {f"{prefix}{number % 25}": "1"}
            resources = {"requests": dict(amounts), "limits": amounts}
            tree = make.pod(number, f"test-dra-{number}", resources=resources)
            arrivals.append(Arrival(read(tree, Pod), ()))
        return Setting(
            make.nodes,
            make.slices(fleets.basic),
            classes,
            [],
            [],
            arrivals,
            pods_before=5 * nodes,
        )

    return make_extended


def shared_claim(nodes: int, variation: Variation) -> Setting:
    """Return half of the devices allocated before, and claims that five pods share each."""
    make = Maker(nodes, variation)
    before = make.claims(nodes, wanting())
    trees = [claim_tree(f"test-claim-{n}", NAMESPACE, wanting()) for n in range(nodes)]
    arrivals = []
    for number in range(5 * nodes):
        entry = {"name": "resource", "resourceClaimName": f"test-claim-{number // 5}"}
        tree = make.pod(number, f"test-dra-{number}", entry=entry)
        arrivals.append(Arrival(read(tree, Pod), ()))
    claims = [read(tree, ResourceClaim) for tree in trees]
    classes = [make.device_class()]
    return Setting(make.nodes, make.slices(fleets.pair), classes, before, claims, arrivals)


def pod_group(nodes: int, variation: Variation) -> Setting:
    """Return a group whose pods share a claim for a device that all nodes reach."""
    make = Maker(nodes, variation)
    terms = [{"key": "node-with-dra", "operator": "In", "values": ["true"]}]
    selector = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    devices = [fleets.device("device", make.words)]
    slice_ = fleets.slice_("podgroup", "0", make.words, nodeSelector=selector, devices=devices)
    entry = {"name": "resource", "resourceClaimName": "test-claim-0"}
    group = {
        "metadata": {"name": "test-dra-0", "namespace": NAMESPACE, "uid": "uid-group"},
        "spec": {"resourceClaims": [entry], "schedulingPolicy": {"basic": {}}},
    }
    arrivals = []
    for number in range(100 * nodes):
        member = {"schedulingGroup": {"podGroupName": "test-dra-0"}}
        tree = make.pod(number, f"test-dra-{number}", entry=entry, spec=member)
        arrivals.append(Arrival(read(tree, Pod), ()))
    claims = [read(claim_tree("test-claim-0", NAMESPACE, wanting()), ResourceClaim)]
    return Setting(
        make.nodes,
        [read(slice_, ResourceSlice)],
        [make.device_class()],
        [],
        claims,
        arrivals,
        group=read(group, PodGroup),
    )


def selecting(words: Words) -> Tree:
    """Return a claim with a selector on a version and a quantity."""
    return wanting(selectors=[cel(SELECTOR.format(driver=words.driver))])


def matching(words: Words) -> Tree:  # noqa: ARG001
    """Return a claim for five devices at one PCIe root."""
    return wanting(5, {"matchAttribute": fleets.PCI_ROOT})


def deriving(words: Words) -> Tree:  # noqa: ARG001
    """Return the same, by an attribute that is derived."""
    derived = [{"name": DERIVED, "expression": DERIVING}]
    return wanting(5, {"matchAttribute": DERIVED}, derivedAttributes=derived)


def sharing(words: Words) -> Tree:
    """Return a claim for shares of two different network cards."""
    apart = {"requests": ["req-0"], "distinctAttribute": f"{words.domain}/index"}
    return wanting(1, apart, count=2, capacity={"requests": {"bandwidth": "2500M"}})


def parting(count: int) -> Callable[[Words], Tree]:
    """Return a claim for some partitions."""
    return lambda _: wanting(count=count)


def agreeing(words: Words) -> Tree:
    """Return a claim for 32 devices with a value of a list in common."""
    return wanting(32, {"matchAttribute": f"{words.domain}/match"})


SHARED_ONLY = " && device.allowMultipleAllocations == true"

match = burst(fleets.basic, 2, matching)
match_derived = burst(fleets.basic, 2, deriving)

WORKLOADS = (
    Workload("template-200", 200, 78.6, None, template),
    Workload("template-500", 500, 45.8, 4000, template),
    Workload("template-5000", 5000, 45.8, 2000, template),
    Workload("steady-empty-500", 500, 45.3, None, steady(0)),
    Workload("steady-half-500", 500, 42.0, None, steady(0.5)),
    Workload("steady-full-500", 500, 36.3, None, steady(1)),
    Workload("selector-500", 500, 37.3, 1500, burst(fleets.basic, 5, selecting)),
    Workload("match-500", 500, 23.2, 1500, match),
    Workload("match-derived-500", 500, 23.2, 1500, match_derived),
    Workload(
        "consumable-500", 500, 37.0, 1500, burst(fleets.shareable, 4, sharing, also=SHARED_ONLY)
    ),
    Workload(
        "partitionable-500",
        500,
        42.0,
        1500,
        burst(fleets.halves, 1, parting(2), counters=fleets.FOUR_COUNTERS),
    ),
    Workload(
        "backtracking-500",
        500,
        10.8,
        800,
        burst(fleets.partitions, 1, parting(7), counters=fleets.CPUS_AND_MEMORY),
    ),
    Workload("list-500", 500, 0.3, 200, burst(fleets.listing, 1, agreeing)),
    Workload("extended-explicit-200", 200, 88.5, 1500, extended(is_explicit=True)),
    Workload("extended-implicit-200", 200, 70.9, 1500, extended(is_explicit=False)),
    Workload("shared-claim-200", 200, 138.0, None, shared_claim),
    Workload("podgroup-1000", 10, 35.0, None, pod_group),
)


def find(names: Iterable[str]) -> list[Workload]:
    """Return the workloads of these names, or that begin with them; all if there are none."""
    wanted = tuple(names)
    if not wanted:
        return list(WORKLOADS)
    exact = [each for each in WORKLOADS if each.name in wanted]
    return exact or [each for each in WORKLOADS if each.name.startswith(wanted)]
