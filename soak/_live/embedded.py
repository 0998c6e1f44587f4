"""A smaller campaign on a whole cluster with its real server and SQLite, killed now and then.

Pods come and go; at any moment the server and all programs end, and begin again on the same file.
At rest as many pods have devices as there are devices, each its own; once the pods are gone, so are
their claims.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.errors import ClientError
from moorage.client.writes import Create, Delete, Patch, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from soak._live import pools, things
from soak._live.laws import check_given

ROUNDS = 4
ACTIONS_MAX = 12
WAIT_S = 60.0
DEVICES = 3 * len(pools.NODES)


def run_embedded(seed: str) -> Counter[str]:
    """Carry out a history on a real server, or raise what must not be."""
    logging.getLogger("moorage").setLevel(logging.CRITICAL)  # it is killed all the time
    try:
        with TemporaryDirectory() as folder:
            return asyncio.run(_history(Path(folder), Random(seed)))  # noqa: S311
    finally:
        logging.getLogger("moorage").setLevel(logging.NOTSET)


async def _history(folder: Path, random: Random) -> Counter[str]:
    counts: Counter[str] = Counter()
    for number in range(ROUNDS):
        async with embedded(folder, ProgramContext()) as cluster:
            if number == 0:
                await _furnish(cluster)
            for _ in range(random.randint(2, ACTIONS_MAX)):
                await _act(cluster, random, counts)
        counts["embedded restarts"] += 1
    async with embedded(folder, ProgramContext()) as cluster:
        await _wait(cluster, _is_settled)
        check_given(cluster.controlling.informers.objects.list(ResourceClaim))
        counts["embedded pods on nodes"] += _bound(cluster)
        for pod in tuple(cluster.controlling.informers.objects.list(Pod)):
            await _try(cluster, Delete(Target.of(pod)))
        await _wait(cluster, _is_empty)
    counts["embedded histories"] += 1
    return counts


async def _act(cluster: EmbeddedCluster, random: Random, counts: Counter[str]) -> None:
    """Create or delete a pod, and let the programs do a part of what follows."""
    counts["embedded actions"] += 1
    name = random.choice(things.NAMES)
    if random.random() < 0.7:
        pod = things.template_pod(name, "t-gpu")
        await _try(cluster, Create(pod))
    else:
        await _try(cluster, Delete(Target(Pod, "default", name)))
    for _ in range(random.randint(0, 40)):
        await asyncio.sleep(0)


async def _try(cluster: EmbeddedCluster, write: Create | Delete | Patch) -> Any:
    try:
        return await cluster.admin.write(write)
    except ClientError:
        return None  # it is there already, or no more


async def _furnish(cluster: EmbeddedCluster) -> None:
    for name in pools.NODES:
        node = things.node(name)
        made = await cluster.admin.write(Create(replace(node, status=type(node.status)())))
        room = {"cpu": str(things.CPUS), "memory": "16Gi", "pods": "20"}
        status = {"allocatable": room, "capacity": room}
        await cluster.admin.write(Patch(Target.of(made), {"status": status}, "status"))
        for each in pools.slices(pools.GPU, name, 1, None):
            await cluster.admin.write(Create(each))
    await cluster.admin.write(Create(things.device_class("gpu")))
    await cluster.admin.write(Create(things.template("t-gpu")))


async def _wait(cluster: EmbeddedCluster, is_so: Callable[[EmbeddedCluster], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so(cluster):
            await asyncio.sleep(0.02)


def _bound(cluster: EmbeddedCluster) -> int:
    return sum(bool(pod.spec.node_name) for pod in cluster.controlling.informers.objects.list(Pod))


def _is_settled(cluster: EmbeddedCluster) -> bool:
    objects = cluster.controlling.informers.objects
    pods = objects.count(Pod)
    claims = objects.count(ResourceClaim)
    return claims == pods and _bound(cluster) == min(pods, DEVICES)


def _is_empty(cluster: EmbeddedCluster) -> bool:
    objects = cluster.controlling.informers.objects
    return not objects.count(Pod) and not objects.count(ResourceClaim)
