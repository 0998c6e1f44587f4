"""When a cluster is at rest: everything is known, decided and written that can be without a change.

Pods of a gang come one by one and are decided together, and some wait without a word, so there is
nothing on the pods themselves that says when to look.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from moorage.api.core import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduling import PodGroup
from moorage.client.indexer import Indexer
from moorage.cluster.embedded import EmbeddedCluster
from tests.client.servers import until


async def at_rest(cluster: EmbeddedCluster) -> None:
    """Wait until the scheduler has nothing to do, and everyone knows what it wrote."""
    scheduling = cluster.scheduling.informers.objects
    while True:
        for pod in (await cluster.admin.list(Pod)).values:
            await until(partial(_has_claims, scheduling, pod))
        await until(lambda: _is_idle(cluster))
        pods = (await cluster.admin.list(Pod)).values
        for pod in pods:
            await known(cluster, pod)
        if _is_idle(cluster) and list(pods) == list((await cluster.admin.list(Pod)).values):
            return


async def known(cluster: EmbeddedCluster, value: Any) -> None:
    """Wait until scheduler and controllers know of a version of an object."""
    for program in (cluster.scheduling, cluster.controlling):
        await until(partial(_is_known, program.informers.objects, value))


async def counted(cluster: EmbeddedCluster, namespace: str, name: str) -> None:
    """Wait until the scheduler knows how many disruptions a budget allows."""
    objects = cluster.scheduling.informers.objects

    def is_counted() -> bool:
        budget = objects.get(PodDisruptionBudget, namespace, name)
        return budget is not None and bool(budget.status.observed_generation)

    await until(is_counted)


def comes_with_others(cluster: EmbeddedCluster, tree: dict[str, Any]) -> bool:
    """Whether a pod is decided together with others of its group, or of a group beside it."""
    name = (tree["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    objects = cluster.scheduling.informers.objects
    group = objects.get(PodGroup, tree["metadata"].get("namespace", ""), name)
    if group is None:
        return False
    gang = group.spec.scheduling_policy.gang
    has_parent = bool(group.spec.parent_composite_pod_group_name)
    return has_parent or (gang is not None and gang.min_count > 1)


def _is_known(objects: Indexer, value: Any) -> bool:
    metadata = value.metadata
    found = objects.get(type(value), metadata.namespace, metadata.name)
    if found is None:
        return False
    return int(found.metadata.resource_version) >= int(metadata.resource_version)


def _has_claims(objects: Indexer, listed: Pod) -> bool:
    """Whether the scheduler knows the claims of a pod that are made from templates."""
    metadata = listed.metadata
    pod = objects.get(Pod, metadata.namespace, metadata.name)
    if pod is None:
        return False
    made = {e.name: e.resource_claim_name for e in pod.status.resource_claim_statuses or ()}
    entries = [e for e in pod.spec.resource_claims if e.resource_claim_template_name]
    return all(
        (name := made.get(entry.name)) is not None
        and objects.get(ResourceClaim, metadata.namespace, name) is not None
        for entry in entries
    )


def _is_idle(cluster: EmbeddedCluster) -> bool:
    scheduler = cluster.scheduling.scheduler
    return scheduler.queue.counts()["active"] == 0 and scheduler.effects.running == 0
