"""The argument KIND/NAME that names an object, as for kubectl."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import click

from mooring.cli.terminal import printable
from mooring.insight.messages import listed
from mooring.kit.similar_names import nearest

# Names that may precede the slash, by kind.
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

F = TypeVar("F", bound=Callable[..., Any])


def subject_argument(function: F) -> F:
    """Add the argument [KIND/NAME]; the command gets `subject` or None."""
    return click.argument(
        "subject", metavar="[KIND/NAME]", nargs=-1, required=False, callback=_joined
    )(function)


def _joined(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> str | None:
    """Return `pod/x` for `pod/x` and for `pod x`, as kubectl takes both."""
    if len(words) > 2:
        raise click.UsageError(f"one object can be named, not {len(words)} words")
    return "/".join(words) or None


class Subject(NamedTuple):
    """The kind and name of an object, with or without a namespace."""

    kind: str
    namespace: str  # empty: any
    name: str

    def is_in(self, namespace: str) -> bool:
        """Return whether the object may be in a namespace."""
        return self.namespace in ("", namespace)

    def __str__(self) -> str:
        if self.namespace:
            return f"{self.kind} {self.namespace}/{self.name}"
        return f"{self.kind} {self.name} in any namespace"


def parse_subject(text: str, *, namespace: str) -> Subject:
    """Parse KIND/NAME, KIND/NAMESPACE/NAME or a pod's NAME."""
    kind, slash, name = text.partition("/")
    if not slash:
        kind, name = "pod", text
    kind = kind.partition(".")[0]  # deployment.apps/train, as kubectl writes it
    if kind.lower() not in KINDS:
        near = nearest(kind.lower(), KINDS)
        hint = f"; did you mean {near}?" if near else ""
        raise click.UsageError(f"{text}: there is no kind {kind!r} here{hint}")
    if "/" in name:
        namespace, _, name = name.partition("/")
    return Subject(KINDS[kind.lower()], namespace, name)


def no_such(subject: Subject, known: Iterable[str]) -> click.UsageError:
    """Return the error for an object that does not exist; `known` are full names of its kind."""
    names = sorted(known)
    by_name = {name if subject.namespace else name.partition("/")[2]: name for name in names}
    wanted = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
    near = nearest(wanted, by_name)
    if near is not None:
        hint = f"; did you mean {printable(by_name[near])}?"
    else:
        shown = listed([*map(printable, names)])
        hint = f"; there is {shown}" if names else f"; there is no {subject.kind} at all"
    return click.UsageError(f"there is no {subject}{hint}")
