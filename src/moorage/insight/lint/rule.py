"""The contract of a lint rule: its input and its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, StrEnum
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from moorage.api.codec import encode_json
from moorage.api.field_path import Place
from moorage.insight.expressions.candidates import Devices
from moorage.insight.lint.context import ExpressionStage, LintContext
from moorage.insight.lint.subjects import POD_KINDS, LintObject, claim_of
from moorage.insight.lint.subjects import SELECTING_KINDS as ASKING_KINDS

Kinds = frozenset[str]
T = TypeVar("T")

SELECTING: Final[Kinds] = frozenset(ASKING_KINDS)  # all that select devices
CLAIMS: Final[Kinds] = frozenset(("ResourceClaim", "ResourceClaimTemplate"))
SLICES: Final[Kinds] = frozenset(("ResourceSlice",))
PODS: Final[Kinds] = POD_KINDS  # pods and their controllers
GROUPS: Final[Kinds] = frozenset(("PodGroup",))
ANYTHING: Final[Kinds] = SELECTING | SLICES | PODS | GROUPS

# Other objects refer to these; no rule is about them.
SURROUNDING_KINDS: Final[Kinds] = frozenset(("Node", "Namespace"))


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # Kubernetes refuses it, or scheduling aborts
    WARNING = "warning"  # it does not do what its author meant
    NOTE = "note"  # worth knowing


class Needs(Enum):
    """The objects that a rule needs."""

    NOTHING = ""
    CLASSES = "classes"
    DEVICES = "slices"
    NODES = "nodes"
    NAMESPACES = "namespaces"
    CLAIMS = "claims"
    TEMPLATES = "claim templates"
    GROUPS = "pod groups"


NEEDED_KINDS: Final = {
    Needs.CLASSES: "DeviceClass",
    Needs.DEVICES: "ResourceSlice",
    Needs.NODES: "Node",
    Needs.NAMESPACES: "Namespace",
    Needs.CLAIMS: "ResourceClaim",
    Needs.TEMPLATES: "ResourceClaimTemplate",
    Needs.GROUPS: "PodGroup",
}


class Oddity(NamedTuple):
    """A finding: its place, the problem, and the remedy."""

    place: Place
    message: str
    remedy: str


class Case:
    """An object, the stages of its expressions, and everything else that was given."""

    def __init__(self, subject: LintObject, context: LintContext) -> None:
        self.subject = subject
        self.context = context
        self._found: dict[Callable[[Case], Iterable[Any]], tuple[Any, ...]] = {}

    @cached_property
    def stages(self) -> tuple[ExpressionStage, ...]:
        """The expressions of the object, with the devices that get as far."""
        return self.context.stages(self.subject)

    @cached_property
    def asked(self) -> tuple[str, bytes] | None:
        """What a claim or template asks for, the same for all that ask alike; None for others."""
        _, claim = claim_of(self.subject)
        return None if claim is None else (self.subject.kind.name, encode_json(claim))

    def once(self, find: Callable[[Case], Iterable[T]]) -> tuple[T, ...]:
        """Return the result of a function for this case, computed once."""
        if find not in self._found:
            self._found[find] = tuple(find(self))
        return self._found[find]


def devices_of(case: Case, stage: ExpressionStage) -> Devices:
    """Return the devices that get as far as an expression."""
    devices = case.context.devices.devices
    candidates = tuple(devices[index] for index in sorted(stage.candidates))
    return Devices(candidates, case.context.devices, stage.is_class_known)


Check = Callable[[Case], Iterable[Oddity]]
C = TypeVar("C", bound=Check)


class Rule(NamedTuple):
    """A rule: its id, the severity of its findings, its subjects, and its check."""

    id: str
    severity: Severity
    needs: Needs
    summary: str
    check: Check
    about: Kinds
    is_shared: bool = False  # it asks for requests and constraints only: equal ones, equal findings


class RuleTable(list[Rule]):
    """The rules of one subject, in order."""

    def __init__(self, about: Kinds) -> None:
        super().__init__()
        self._about = about

    def add(
        self,
        severity: Severity,
        needs: Needs = Needs.NOTHING,
        about: Kinds | None = None,
        *,
        is_shared: bool = False,
    ) -> Callable[[C], C]:
        """Add a function as a rule: its name is the rule's id, its docstring the summary."""

        def added(check: C) -> C:
            doc = (check.__doc__ or "").removesuffix(".")
            rule_id, summary = check.__name__.replace("_", "-"), doc[:1].lower() + doc[1:]
            kinds = about or self._about
            self.append(Rule(rule_id, severity, needs, summary, check, kinds, is_shared))
            return check

        return added


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
