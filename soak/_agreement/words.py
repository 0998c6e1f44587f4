"""Words of the laws: how answers are compared, and what a difference is called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from soak._agreement.doors import DeviceKey, Doors, Name, PageFacts
from soak._agreement.fleet import Tree, made
from soak._agreement.worlds import NAMESPACE

SHOWN_MAX: Final = 6
FREE: Final = "free"
UNUSED: Final = " (no pod uses it)"
ASKED_MAX: Final = 2  # pods, nodes or workloads of a world, where each needs a plan of its own

SEVERAL: Final = "several nodes"
STATES: Final = ("free", "shared", "taken", "blocked", "tainted", "unusable", "missing")
MAKERS: Final = ("Pod", "Deployment", "StatefulSet", "DaemonSet", "Job")


def differ(what: str, one: set[Any], other: set[Any], first: str, second: str) -> Iterator[str]:
    if only := sorted(map(str, one - other)):
        yield f"{what}: only {first}: {', '.join(only[:SHOWN_MAX])}"
    if only := sorted(map(str, other - one)):
        yield f"{what}: only {second}: {', '.join(only[:SHOWN_MAX])}"


def uncounted(
    what: str, one: Counter[Any], other: Counter[Any], first: str, second: str
) -> Iterator[str]:
    for key in sorted({*one, *other}, key=str):
        if one[key] != other[key]:
            yield f"{what} {key}: {first} {one[key]}, {second} {other[key]}"


def trees_differ(what: str, one: list[Any], other: list[Any]) -> Iterator[str]:
    if len(one) != len(other):
        yield f"{what}: {len(one)} and {len(other)}"
    for before, after in zip(one, other, strict=False):
        if not isinstance(before, dict):  # Some lists have names only.
            if before != after:
                yield f"{what}: {before} and {after}"
            continue
        fields = [name for name in {*before, *after} if before.get(name) != after.get(name)]
        if fields:
            shown = {name: (before.get(name), after.get(name)) for name in fields}
            yield f"{what}: {called(before)}: {shown}"


def called(tree: Tree) -> str:
    return "/".join(str(tree.get(name, "")) for name in ("namespace", "name", "pool", "device"))


def plans_differ(one: Tree, other: Tree, first: str, second: str) -> Iterator[str]:
    before, after = ({each["pod"]: fate(each) for each in tree["pods"]} for tree in (one, other))
    for pod in dict.fromkeys((*before, *after)):
        if before.get(pod) != after.get(pod):
            yield f"{pod}: {first} {before.get(pod)}, {second} {after.get(pod)}"


def fate(placement: Tree) -> Tree:
    """Return what a plan says about a pod, without the ids and names that each plan makes up."""
    requests = [
        (granted["request"], sorted(map(device_of, granted["devices"])))
        for granted in placement.get("requests", ())
    ]
    names = ("node", "message", "reason", "preempts", "extendedResources")
    return {name: placement.get(name) for name in names} | {"requests": requests}


def causes_of(said: Tree) -> set[tuple[str, str]]:
    """Return each pod that waits, with its cause; stand-ins are left out."""
    real = (each for each in said["pending"] if not each["standsFor"])
    return {(pod, each["cause"]) for each in real for pod in each["pods"]}


def title_of(placement: Tree) -> str:
    return placement.get("standsFor") or f"pod {placement['pod']}"


def stand_in_title(tree: Tree) -> str:
    kind = {"ResourceClaim": "claim", "ResourceClaimTemplate": "template"}.get(tree["kind"], "")
    return f"{kind}/{tree['metadata']['name']}"


def makes_pods(tree: Tree) -> bool:
    return tree["kind"] in MAKERS


def device_of(tree: Tree) -> DeviceKey:
    return tree["driver"], tree["pool"], tree["device"]


def name_of(full: str) -> Name:
    space, _, name = full.partition("/")
    return space, name


def place_of(device: Tree) -> str:
    return str(device["nodes"].get("nodeName", SEVERAL))


def holdings_of(claims: list[Tree]) -> set[tuple[DeviceKey, Name]]:
    return {
        (device_of(device), (claim["namespace"], claim["name"]))
        for claim in claims
        for device in claim["devices"]
    }


def running_pods(doors: Doors) -> dict[str, tuple[str, str]]:
    """Return the node of each pod that runs, and the kind of what made it."""
    found = {}
    for tree in doors.world.cluster:
        if tree["kind"] != "Pod" or not tree["spec"].get("nodeName"):
            continue
        if tree.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            continue
        owners = tree["metadata"].get("ownerReferences") or [{"kind": ""}]
        name = f"{tree['metadata']['namespace']}/{tree['metadata']['name']}"
        found[name] = (tree["spec"]["nodeName"], owners[0]["kind"])
    return found


def is_of_daemon(doors: Doors, pod: str) -> bool:
    """Return whether a pod is one of a DaemonSet, there or planned."""
    daemons = (
        each["metadata"]
        for each in (*doors.world.cluster, *doors.world.manifests)
        if each["kind"] == "DaemonSet"
    )
    return any(pod.startswith(f"{each['namespace']}/{each['name']}-") for each in daemons)


def without_change(doors: Doors) -> Tree:
    idle = doors.write_manifests("idle.yaml", [made("v1", "Namespace", "idle")])
    found: Tree = doors.ask("whatif", "-n", NAMESPACE, "--add", idle).tree
    return found


def nodes_differ(doors: Doors, page: PageFacts) -> Iterator[str]:
    for tree in doors.world.cluster:
        if tree["kind"] != "Node":
            continue
        is_ready = tree["status"]["conditions"][0]["status"] == "True"
        is_cordoned = tree["spec"].get("unschedulable", False)
        wanted = "cordoned" if is_cordoned else "ready" if is_ready else "not ready"
        shown = page.nodes.get(tree["metadata"]["name"])
        if shown != wanted:
            yield f"node {tree['metadata']['name']} is {wanted}, on the page {shown}"


def causes_differ(doors: Doors, page: PageFacts) -> Iterator[str]:
    for answer in doors.explanation.tree["pending"]:
        for pod in () if answer["standsFor"] else answer["pods"]:
            shown = page.pods.get(name_of(pod))
            if shown is None or shown.cause != answer["cause"]:
                said = None if shown is None else shown.cause
                yield f"{pod}: explain {answer['cause']!r}, page {said!r}"


def entries_of(tree: Tree) -> list[Tree]:
    """Return the claims that a pod, or the pods of a controller, name."""
    spec = tree.get("spec") or {}
    inner = spec if tree["kind"] == "Pod" else (spec.get("template") or {}).get("spec") or {}
    found: list[Tree] = inner.get("resourceClaims") or []
    return found
