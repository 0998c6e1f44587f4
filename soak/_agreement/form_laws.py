"""Laws about the form of a world: files in another order, a snapshot, a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.codec import encode_json
from moorage.api.timestamp import Timestamp
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.contract import list_all
from moorage.insight.snapshot.snapshot import FIELDS
from soak._agreement.doors import Doors
from soak._agreement.fleet import CREATED, Tree
from soak._agreement.server import running
from soak._agreement.words import (
    causes_of,
    differ,
    makes_pods,
    plans_differ,
    stand_in_title,
    trees_differ,
)
from soak._agreement.worlds import NAMESPACE


def order_does_not_matter(doors: Doors) -> Iterator[str]:
    """The order of a dump's objects does not matter, nor that of manifests that make no pods.

    A quota counts new claims in their order, and refuses the last: there, only the dump turns.
    """
    cluster = doors.write_cluster("reversed.json", reversed(doors.world.cluster))
    makers = [each for each in doors.world.manifests if makes_pods(each)]
    others = [each for each in doors.world.manifests if not makes_pods(each)]
    turned = [*makers, *reversed(others)]
    is_limited = any(each["kind"] == "ResourceQuota" for each in doors.world.cluster)
    trees = doors.world.manifests if is_limited else turned
    manifests = doors.write_manifests("sorted.yaml", trees)
    named = ("-o", "json", "--on", cluster, "-f", manifests)
    plan = doors.asked("plan", "-n", NAMESPACE, *named)
    yield from plans_differ(doors.plan.tree, plan.tree, "as they are", "reversed")
    said = doors.asked("explain", "-n", NAMESPACE, *named).tree
    wanted, found = causes_of(doors.explanation.tree), causes_of(said)
    yield from differ("causes", wanted, found, "as they are", "reversed")
    devices = doors.asked("devices", *named).tree["devices"]
    if devices != doors.devices:
        yield from trees_differ("devices", doors.devices, devices)


def snapshot_answers_alike(doors: Doors) -> Iterator[str]:
    """A snapshot of cluster and manifests answers as they do."""
    archive = str(doors.folder / "world.tar.gz")
    doors.asked("snapshot", "-o", archive, "--on", doors.cluster, "-f", doors.manifests)
    named = ("-o", "json", "--on", archive)
    plan = doors.asked("plan", "--all", "-n", NAMESPACE, *named)
    yield from plans_differ(doors.whole_plan.tree, plan.tree, "files", "snapshot")
    for words in (("devices",), ("claims", "-A")):
        found = doors.asked(*words, *named).tree[words[0]]
        yield from trees_differ(words[0], doors.ask(*words).tree[words[0]], found)


def stand_ins_take_nothing(doors: Doors) -> Iterator[str]:
    """A claim or template that nothing uses changes no answer about anything else."""
    unused = {each["standsFor"] for each in doors.plan.tree["standIns"]}
    is_limited = any(each["kind"] == "ResourceQuota" for each in doors.world.cluster)
    if not unused or is_limited:  # A quota counts claims that nobody uses.
        return
    kept = [each for each in doors.world.manifests if stand_in_title(each) not in unused]
    if not any(map(makes_pods, kept)):
        return
    manifests = doors.write_manifests("used.yaml", kept)
    named = ("-n", NAMESPACE, "-o", "json", "--on", doors.cluster, "-f", manifests)
    plan = doors.asked("plan", *named)
    yield from plans_differ(doors.plan.tree, plan.tree, "with unused", "without")
    said = doors.asked("explain", *named).tree
    causes, found = causes_of(doors.explanation.tree), causes_of(said)
    kept_causes, kept_found = (
        # What a mistyped name may have meant is gone with the unused ones.
        {each for each in causes_of if "does not exist" not in each[1]}
        for causes_of in (causes, found)
    )
    yield from differ("causes", kept_causes, kept_found, "with unused", "without")


def server_answers_alike(doors: Doors) -> Iterator[str]:
    """`--live` answers as a dump of the server, and as the snapshot of `moor snapshot --live`."""
    if not doors.world.is_served:
        return
    objects = [*doors.given.cluster.objects(), *doors.given.manifests.objects()]
    stored = [_stored(each) for each in objects]
    archive = str(doors.folder / "live.tar.gz")
    with running(doors.folder, stored) as kubeconfig:
        dump = doors.write_cluster("dump.json", asyncio.run(_listed(kubeconfig)))
        named = ("--kubeconfig", kubeconfig)
        live = {words: doors.asked(*words, *_JSON, *named) for words in _LIVE}
        metrics = doors.asked("metrics", "--once", *named)
        doors.asked("snapshot", "-o", archive, *named)
    for words in _LIVE:
        wanted = doors.asked(*words, *_JSON, "--on", dump)
        recorded = doors.asked(*words, *_JSON, "--on", archive)
        for where, found in (("live", live[words]), ("of a snapshot", recorded)):
            if found.status != wanted.status:
                yield f"{words[0]}: exit status {wanted.status} of the dump, {found.status} {where}"
            yield from _parts_differ(f"{words[0]} {where}", wanted.tree, found.tree)
    if metrics.text != doors.asked("metrics", "--on", dump).text:
        yield "metrics"


def what_happened_is_stable(doors: Doors) -> Iterator[str]:
    """Once a plan has happened, another one places nothing, and the same pods wait."""
    planned = doors.planned_objects
    after = doors.write_cluster("after.json", [json.loads(encode_json(each)) for each in planned])
    plan = doors.asked("plan", "--all", "-n", NAMESPACE, "-o", "json", "--on", after).tree
    placed = {each["pod"] for each in plan["pods"] if each.get("node")}
    yield from differ("placed once all is placed", set(), placed, "first plan", "second plan")
    before = doors.whole_plan.tree["pods"]
    waited = {each["pod"] for each in before if not each.get("node")}
    waits = {each["pod"] for each in plan["pods"]}
    yield from differ("waiting", waited, waits, "first plan", "second plan")


_JSON: Final = ("-o", "json")
_LIVE: Final = (("plan", "--all"), ("explain",), ("devices",), ("claims", "-A"))


async def _listed(kubeconfig: str) -> list[Tree]:
    """Return all objects of a server, as `kubectl get -o json` lists them."""
    async with http_client(load_rest_config(kubeconfig)) as client:
        lists = [await list_all(client, struct) for struct in FIELDS]
    return [json.loads(encode_json(each)) for found in lists for each in found.values]


def _stored(value: Any) -> Any:
    """Return an object as a server has it, with a creation time."""
    if value.metadata.creation_timestamp is not None:
        return value
    metadata = replace(value.metadata, creation_timestamp=Timestamp.parse(CREATED))
    return replace(value, metadata=metadata)


def _parts_differ(what: str, one: Tree, other: Tree) -> Iterator[str]:
    for name, before in one.items():
        after = other.get(name)
        if isinstance(before, list) and isinstance(after, list):
            yield from trees_differ(what, before, after)
        elif before != after:
            yield f"{what}: {name}: {before} and {after}"
