"""What is behind a pod that is stopped before any node is asked, and what its group lacks.

Kubernetes' scheduler says nothing of most of these pods; others do, in conditions and events.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from mooring.api.core.pod import Pod
from mooring.api.scheduling import PodGroup
from mooring.claims.features import Features
from mooring.claims.owners import Owner, group_name
from mooring.claims.references import Entry, Named, NotNeeded, reference_of
from mooring.client.objects import Objects
from mooring.controllers.resourceclaims.entries import Need, Problem, group_need, pod_need
from mooring.controllers.resourceclaims.indexes import prepare
from mooring.controllers.resourceclaims.making import complaint
from mooring.hardware.nodes import EXAMPLE_PROFILES
from mooring.insight.messages import counted, listed
from mooring.insight.snapshot.snapshot import Snapshot
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Pending
from mooring.scheduler.filtering import Survey
from mooring.scheduler.unmodelled import PLUGIN as UNMODELLED
from mooring.validation.pod.features import GATED_MESSAGE, GATED_REASON

_MISSING_CLASS = re.compile(r"device class (\S+) does not exist")
_MISSING_CLAIM = re.compile(r'could not find ResourceClaim "([^/"]+)/([^"]+)"')
_NOT_CREATED = "ResourceClaim not created yet"
_NOTHING_WRITTEN = "no event and no condition for this"
_UNKNOWN = "nothing that Mooring could know of: it does not model this, so a node may be found"


def stoppage_facts(snapshot: Snapshot, pending: Pending) -> Iterator[str]:
    """Give what may be meant instead of what is missing."""
    pod, reason = pending.pod, pending.reason
    if found := _MISSING_CLASS.search(reason):
        yield from _other_class(snapshot, found[1])
    elif found := _MISSING_CLAIM.search(reason):
        yield from _other_claim(snapshot, found[1], found[2])
    elif reason.endswith(_NOT_CREATED):
        yield from _missing_templates(snapshot, pod)


def group_facts(snapshot: Snapshot, cluster: Cluster, pod: Pod, survey: Survey) -> Iterator[str]:
    """Tell of a pod that would fit by itself what its group lacks."""
    name = group_name(pod)
    group = cluster.groups.get((pod.metadata.namespace, name)) if name is not None else None
    if group is None or not survey.fitting:
        return
    gang = group.spec.scheduling_policy.gang
    members = [
        each
        for each in snapshot.pods
        if each.metadata.namespace == pod.metadata.namespace and group_name(each) == name
    ]
    minimum = gang.min_count if gang is not None else 1
    alone = f"by itself the pod would fit on {counted(len(survey.fitting), 'node')}"
    if len(members) < minimum:
        yield f"{alone}, but its group {name} waits for {minimum} pods and has {len(members)}"
        return
    yield (
        f"{alone}, but its group {name} needs {minimum} of its {counted(len(members), 'pod')} "
        "placed together"
    )


def _other_class(snapshot: Snapshot, name: str) -> Iterator[str]:
    if profile := EXAMPLE_PROFILES.get(name):
        yield f"--profile {profile} adds machines with devices of the class {name}"
    else:
        yield from _instead("class", name, (each.metadata.name for each in snapshot.classes))


def _other_claim(snapshot: Snapshot, namespace: str, name: str) -> Iterator[str]:
    elsewhere = sorted(
        claim.metadata.namespace for claim in snapshot.claims if claim.metadata.name == name
    )
    if elsewhere:
        yield f"a claim {name} is in namespace {listed(elsewhere)}; pods use those of their own"
        return
    names = (c.metadata.name for c in snapshot.claims if c.metadata.namespace == namespace)
    yield from _instead("claim", name, names)


def _missing_templates(snapshot: Snapshot, pod: Pod) -> Iterator[str]:
    namespace = pod.metadata.namespace
    here = [t.metadata.name for t in snapshot.templates if t.metadata.namespace == namespace]
    for entry in pod.spec.resource_claims:
        template = entry.resource_claim_template_name
        if template is not None and template not in here:
            yield f"there is no ResourceClaimTemplate {namespace}/{template}"
            yield from _instead("template", template, here)


def _instead(kind: str, name: str, known: Iterable[str]) -> Iterator[str]:
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        yield f"did you mean the {kind} {near[0]}?"
    elif names:
        yield f"the {kind} there is: {listed(names)}"
    else:
        yield f"there is no {kind} at all"


# --- what Kubernetes writes of a pod that its scheduler does not try ------------------------------


def written_of(snapshot: Snapshot, features: Features, pending: Pending) -> tuple[str, ...]:
    """Return what Kubernetes writes of a pod for which its scheduler has no message.

    1. The API server sets the condition of a pod with scheduling gates.
    2. The claim controller writes events for entries whose claims it cannot make.
    """
    obstacle, pod = pending.survey.obstacle, pending.pod
    found: list[str] = []
    if pod.spec.scheduling_gates:
        found.append(f"the condition PodScheduled False, {GATED_REASON}: {GATED_MESSAGE}")
    found += _claim_events(snapshot, features, pod)
    if not found and obstacle is not None and obstacle.plugin == UNMODELLED:
        return (_UNKNOWN,)
    return tuple(found) or (_NOTHING_WRITTEN,)


def _claim_events(snapshot: Snapshot, features: Features, pod: Pod) -> Iterator[str]:
    """Give the events about claims of the pod that could not be made; the others are there."""
    if all(isinstance(reference_of(pod, e), Named | NotNeeded) for e in pod.spec.resource_claims):
        return
    objects = Objects()
    prepare(objects)
    kept: tuple[Any, ...] = (*snapshot.templates, *snapshot.groups)
    for each in kept:
        if each.metadata.namespace == pod.metadata.namespace:
            objects.put(each)
    name = group_name(pod)
    group = objects.find(PodGroup, pod.metadata.namespace, name) if name is not None else None
    for entry in pod.spec.resource_claims:
        need = pod_need(objects, pod, group, entry, answers={}, features=features)
        yield from _event(pod, entry, need)
    if group is None or not features.group_claims:
        return
    for shared in group.spec.resource_claims:
        need = group_need(objects, group, shared, answers={}, features=features)
        yield from _event(group, shared, need)


def _event(owner: Owner, entry: Entry, need: Need) -> Iterator[str]:
    """Give the event about an entry whose claim cannot be made."""
    if isinstance(need, Problem):
        event = complaint(owner, entry.name, need.reason)
        whose = "" if isinstance(owner, Pod) else f" of PodGroup {owner.metadata.name}"
        yield f"the event {event.reason}{whose}: {event.message}"
