"""The contract of a lint rule: its input and its findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from mooring.api.field_path import Place
from mooring.insight.lint.context import ExpressionStage, LintContext
from mooring.insight.lint.subjects import POD_KINDS, LintObject
from mooring.insight.lint.subjects import SELECTING_KINDS as ASKING_KINDS

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
        self.stages: tuple[ExpressionStage, ...] = context.stages(subject)
        self._found: dict[Callable[[Case], Iterable[Any]], tuple[Any, ...]] = {}

    def once(self, find: Callable[[Case], Iterable[T]]) -> tuple[T, ...]:
        """Return the result of a function for this case, computed once."""
        if find not in self._found:
            self._found[find] = tuple(find(self))
        return self._found[find]


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


class RuleTable(list[Rule]):
    """The rules of one subject, in order."""

    def __init__(self, about: Kinds) -> None:
        super().__init__()
        self._about = about

    def add(
        self, severity: Severity, needs: Needs = Needs.NOTHING, about: Kinds | None = None
    ) -> Callable[[C], C]:
        """Add a function as a rule: its name is the rule's id, its docstring the summary."""

        def added(check: C) -> C:
            doc = (check.__doc__ or "").removesuffix(".")
            rule_id, summary = check.__name__.replace("_", "-"), doc[:1].lower() + doc[1:]
            self.append(Rule(rule_id, severity, needs, summary, check, about or self._about))
            return check

        return added


E, W, N = Severity.ERROR, Severity.WARNING, Severity.NOTE
