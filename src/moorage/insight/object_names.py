"""Names of objects as kubectl writes them, KIND/NAME, and finding the objects."""

from __future__ import annotations

from typing import Any, NamedTuple

from moorage.api.resource.v1 import GROUP
from moorage.api.scheduling import PodGroup
from moorage.insight.errors import UnknownObjectError, UnreadError
from moorage.insight.fit.replicas import Subject
from moorage.insight.messages import full_name, listed
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.kit.similar_names import nearest

# What may precede the slash, by kind.
_WORDS = {
    "Pod": "pod pods po",
    "ResourceClaim": "claim resourceclaim resourceclaims",
    "ResourceClaimTemplate": "template resourceclaimtemplate resourceclaimtemplates",
    "Deployment": "deployment deployments deploy",
    "ReplicaSet": "replicaset replicasets rs",
    "StatefulSet": "statefulset statefulsets sts",
    "DaemonSet": "daemonset daemonsets ds",
    "Job": "job jobs",
    "PodGroup": "podgroup podgroups",
}
KINDS = {word: kind for kind, words in _WORDS.items() for word in words.split()}


def kubectl_name(kind: str, name: str, group: str = "") -> str:
    """Return KIND/NAME as `kubectl get -o name` prints it: `pod/web`, `deployment.apps/train`.

    The name may have a namespace, which is left out.
    """
    word = f"{kind.lower()}.{group}" if group else kind.lower()
    return f"{word}/{name.rpartition('/')[2]}"


def pod_name(pod: str, stands_for: str | None = None) -> str:
    """Return the name of a pod, or that of the claim or template that it stands for."""
    if stands_for is None:
        return kubectl_name("pod", pod)
    word, _, name = stands_for.partition("/")
    return kubectl_name(KINDS[word], name, GROUP)


def device_name(device: object) -> str:
    """Return the name of a device, `device/DRIVER/POOL/DEVICE`."""
    return f"device/{device}"


class ObjectName(NamedTuple):
    """The kind and name of an object, with or without a namespace."""

    kind: str
    namespace: str  # empty: any
    name: str

    def is_in(self, namespace: str) -> bool:
        """Return whether the object may be in a namespace."""
        return self.namespace in ("", namespace)

    def is_of(self, value: Any) -> bool:
        """Return whether this is the name of an object."""
        metadata = value.metadata
        is_named = (self.kind, self.name) == (value.kind, metadata.name)
        return is_named and self.is_in(metadata.namespace)

    def __str__(self) -> str:
        if self.namespace:
            return f"{self.kind} {self.namespace}/{self.name}"
        return f"{self.kind} {self.name} in any namespace"


def parse_object_name(text: str, *, namespace: str) -> ObjectName:
    """Parse KIND/NAME, KIND/NAMESPACE/NAME or a pod's NAME; raise UnknownObjectError for others."""
    kind, slash, name = text.partition("/")
    if not slash:
        kind, name = "pod", text
    kind = kind.partition(".")[0]  # deployment.apps/train, as kubectl writes it
    if kind.lower() not in KINDS:
        near = nearest(kind.lower(), KINDS)
        words = ", ".join(each.partition(" ")[0] for each in _WORDS.values())
        hint = f"; did you mean {near}?" if near else f"; there are {words}"
        raise UnknownObjectError(f"{text}: there is no kind {kind!r} here{hint}")
    if "/" in name:
        namespace, _, name = name.partition("/")
    return ObjectName(KINDS[kind.lower()], namespace, name)


def no_such(wanted: ObjectName, everything: Snapshot) -> UnknownObjectError | UnreadError:
    """Return the error for an object that does not exist, with what may have been meant.

    Where objects of the kind could not be read, whether it exists is unknown.
    """
    if hidden := everything.unread.hidden((wanted.kind,), wanted.namespace):
        return UnreadError(hidden, f"whether {wanted} exists")
    objects: list[Subject | PodGroup] = [*_subjects(everything), *everything.groups]
    for each in objects:
        metadata = each.metadata
        if (
            metadata.name == wanted.name
            and wanted.is_in(metadata.namespace)
            and each.kind in _WORDS
        ):
            meant = f"{_WORDS[each.kind].partition(' ')[0]}/{metadata.name}"
            return UnknownObjectError(f"there is no {wanted}; did you mean {meant}?")
    names = sorted(full_name(each) for each in objects if each.kind == wanted.kind)
    by_name = {name if wanted.namespace else name.partition("/")[2]: name for name in names}
    text = f"{wanted.namespace}/{wanted.name}" if wanted.namespace else wanted.name
    near = nearest(text, by_name)
    if near is not None:
        hint = f"; did you mean {by_name[near]}?"
    else:
        hint = f"; there is {listed(names)}" if names else f"; there is no {wanted.kind} at all"
    return UnknownObjectError(f"there is no {wanted}{hint}")


# --- what replicas are made from ------------------------------------------------------------------


def find_subject(everything: Snapshot, text: str, *, namespace: str) -> Subject:
    """Return the pod, controller, claim or template of a name, or raise UnknownObjectError."""
    wanted = parse_object_name(text, namespace=namespace)
    if wanted.kind == "PodGroup":
        fact = f"{text}: replicas are counted of pods and claims, not of groups"
        raise UnknownObjectError(fact)
    for each in _subjects(everything):
        if each.kind == wanted.kind and full_name(each) == f"{wanted.namespace}/{wanted.name}":
            return each
    for controller in everything.controllers:
        made = f"{full_name(controller)}-"  # as plans name pods that a controller would create
        if wanted.kind == "Pod" and f"{wanted.namespace}/{wanted.name}".startswith(made):
            meant = f"{controller.kind.lower()}/{controller.metadata.name}"
            raise UnknownObjectError(f"there is no {wanted}; did you mean {meant}?")
    raise no_such(wanted, everything)


def _subjects(everything: Snapshot) -> list[Subject]:
    return [
        *everything.pods,
        *everything.controllers,
        *everything.claims,
        *everything.templates,
    ]


def only_subject(manifests: Snapshot, everything: Snapshot) -> Subject:
    """Return the only workload of the manifests, or else the only claim.

    If there is none, the error lists what there is, such as in the cluster.
    """
    of_pods: list[Subject] = [*manifests.controllers, *manifests.pods]
    of_claims: list[Subject] = [*manifests.templates, *manifests.claims]
    found = of_pods or of_claims
    if len(found) == 1:
        return found[0]
    found = found or _subjects(everything)
    if not found:
        raise UnknownObjectError("name what should fit, KIND/NAME: there is no pod or claim")
    names = listed([f"{each.kind.lower()}/{each.metadata.name}" for each in found])
    raise UnknownObjectError(f"name what should fit, KIND/NAME: there is {names}")
