"""What pods and groups have in common: from the needs of their entries to the steps of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mooring.api.codec import to_tree
from mooring.api.core.pod import Pod
from mooring.api.resource.v1 import POD_CLAIM_ANNOTATION, ResourceClaim
from mooring.claims.generated import group_claim_statuses, pod_claim_statuses
from mooring.claims.owners import Owner, key_of
from mooring.claims.references import Entry
from mooring.client.writes import Apply, Create, Target, Tell, Write
from mooring.controllers.controller import Ask, Failed, Refused, Step
from mooring.controllers.resourceclaims.entries import Made, Need, Problem, ToMake

MANAGER = "ResourceClaimController"
SOURCE = "resource_claim"
FAILED_CREATION = "FailedResourceClaimCreation"


def claim_steps(
    owner: Owner, entries: Iterable[Entry], need_of: Callable[[Any], Need]
) -> tuple[list[Step], bool]:
    """Return the steps for the entries, and whether all of them have what they need.

    Questions come first. Claims that are to be made are made before the status names any: the
    plan after this one finds them all by their owner, and names them with one write.
    """
    asks: list[Step] = []
    creates: list[Step] = []
    made: dict[str, str] = {}
    for entry in entries:
        match need_of(entry):
            case Ask() as ask:
                asks.append(ask)
            case ToMake(claim=claim):
                creates.append(Create(claim))
            case Made(claim=name):
                made[entry.name] = name
            case Problem() as problem:
                return [*asks] or [*creates, *_complaint(owner, entry.name, problem)], False
    if asks or creates:
        return asks or creates, False
    return ([_naming(owner, made)] if made else []), True


def _complaint(owner: Owner, entry: str, problem: Problem) -> Iterator[Step]:
    yield complaint(owner, entry, problem.reason)
    noun = "pod" if isinstance(owner, Pod) else "PodGroup"
    reason = f"{noun} {key_of(owner.metadata)}, {_field(owner)} {entry}: {problem.reason}"
    yield Failed(reason, attempts_max=None if problem.comes_again else 1)


def complaint(owner: Owner, entry: str, reason: str) -> Tell:
    """Return the event that tells of a claim that could not be made."""
    return Tell(owner, FAILED_CREATION, f"{_field(owner)} {entry}: {reason}", is_warning=True)


def complaint_about(owner: Owner | None, write: Write, refused: Refused) -> Iterator[Step]:
    """Give the event for a claim that the server did not take."""
    if isinstance(write, Create) and isinstance(write.value, ResourceClaim) and owner is not None:
        entry = write.value.metadata.annotations.get(POD_CLAIM_ANNOTATION, "")
        # The claim has no name yet, so that Kubernetes' text has none either.
        yield complaint(owner, entry, f"create ResourceClaim : {refused.message}")


def _field(owner: Owner) -> str:
    return "PodResourceClaim" if isinstance(owner, Pod) else "PodGroupResourceClaim"


def _naming(owner: Owner, made: dict[str, str]) -> Apply:
    statuses: Iterable[Any]
    if isinstance(owner, Pod):
        statuses = pod_claim_statuses(owner, made)
    else:
        statuses = group_claim_statuses(owner, made)
    metadata = owner.metadata
    body = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        # With the uid, so that a namesake made meanwhile is not told of claims that are not its.
        "metadata": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "status": {"resourceClaimStatuses": [to_tree(status) for status in statuses]},
    }
    return Apply(Target.of(owner), body, MANAGER, "status")
