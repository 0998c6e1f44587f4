"""What is behind a pod that is stopped before any node is asked, and what its group lacks."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator

from mooring.api.core.pod import Pod
from mooring.claims.owners import group_name
from mooring.hardware.nodes import EXAMPLE_PROFILES
from mooring.insight.clusters.snapshot import Snapshot
from mooring.insight.concerns import listed
from mooring.insight.wording import counted
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Pending
from mooring.scheduler.filtering import Survey

_MISSING_CLASS = re.compile(r"device class (\S+) does not exist")
_MISSING_CLAIM = re.compile(r'could not find ResourceClaim "([^/"]+)/([^"]+)"')
_NOT_CREATED = "ResourceClaim not created yet"


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
