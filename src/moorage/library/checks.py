"""`validate`, `lint` and `profiles`: checks of manifests, and the machines that there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, Literal, final, overload

from moorage.api.documents import CORE, KUBERNETES
from moorage.hardware.board import Profile as FoundProfile
from moorage.hardware.board import profile_tree
from moorage.hardware.catalogue import Catalogue
from moorage.insight.lint import KINDS, RULE_IDS
from moorage.insight.lint import Finding as FoundFinding
from moorage.insight.lint import Severity as LintSeverity
from moorage.insight.lint import lint as find_mistakes
from moorage.insight.messages import Concern, counted
from moorage.kit.errors import MoorageError
from moorage.library import html
from moorage.library.loading import (
    OF_MAPPINGS,
    Path,
    Source,
    context_of,
    gathered,
    mapping_documents,
    names_of,
    outside_loop,
)
from moorage.library.results import Readable, Record, check_type, plain_tree
from moorage.sources.cluster_sources import give_all
from moorage.sources.collection import Collected
from moorage.sources.errors import UnreadableError
from moorage.sources.linting import LintInput, finding_tree, lint_input, lint_tree
from moorage.sources.validation import (
    FileCheck,
    ValidationTally,
    validation_rows,
    validation_tree,
)
from moorage.validation.manifests import ManifestValidator, Severity, Verdict


@final
class Validation(Readable):
    """What an API server would say of manifests. `moorage.validate` returns it."""

    def __init__(
        self, tally: ValidationTally, verdicts: Sequence[Verdict], notes: Sequence[Concern]
    ) -> None:
        self._tally, self._verdicts, self._notes = tally, tuple(verdicts), tuple(notes)

    @property
    def is_valid(self) -> bool:
        """Whether an API server would accept all objects."""
        return not self.refused

    @property
    def accepted(self) -> int:
        """How many objects it would accept."""
        return self._tally.accepted.total()

    @property
    def refused(self) -> int:
        """How many objects it would refuse."""
        return self._tally.refused.total()

    @property
    def not_checked(self) -> int:
        """How many objects are of kinds that cannot be checked."""
        return self._tally.foreign.total()

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong, with file, line and column."""
        return tuple(self._texts(Severity.ERROR))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is suspicious or written in another form, with file, line and column."""
        return tuple(self._texts(Severity.WARNING))

    def _texts(self, severity: Severity) -> Iterator[str]:
        for verdict in self._verdicts:
            for each in verdict.findings:
                if each.severity is severity:
                    yield f"{verdict.source}:{each.line}:{each.column}: {each.message}"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdicts as `moor validate -o json` prints them."""
        return plain_tree(validation_tree(self._tally, self._verdicts, (), self._notes))

    def _rows(self) -> Iterator[dict[str, Any]]:
        return (row for each in self._verdicts for row in validation_rows(each))

    def _repr_html_(self) -> str:
        lines = map(html.paragraph, (*self.errors, *self.warnings))
        return html.block(html.paragraph(self._tally.summary(), is_strong=True), *lines)

    def __str__(self) -> str:
        return "\n".join((self._tally.summary(), *self.errors, *self.warnings))


class _Kept(ValidationTally):
    """Keeps the verdicts about objects that can be checked, and raises for other input."""

    def __init__(self) -> None:
        super().__init__()
        self.verdicts: list[Verdict] = []
        self.messages: list[str] = []

    def verdict(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        super().verdict(verdict)
        if not verdict.is_foreign:
            self.verdicts.append(verdict)

    def input_error(self, message: str) -> None:
        """Keep an error of the input."""
        self.messages.append(message)


def validate(
    *sources: Source,
    recursive: bool = False,
    strict: bool = False,
    strict_kinds: bool = False,
    feature_gates: Mapping[str, bool] | None = None,
    gates_preset: Literal["moorage", "kubernetes-1.37"] = "moorage",
    emulated_version: str = "1.37",
    now: datetime | None = None,
) -> Validation:
    """Return what the API server of Kubernetes 1.37 would say of manifests on create.

    Each source is a file, directory or archive of manifests, or a manifest as a mapping. The
    parameters are the options of `moor validate`. Raises UnreadableError if a source cannot be
    read, and MoorageError if there is no object in any.
    """
    context = context_of(feature_gates, gates_preset, emulated_version, now, strict=strict)
    schema = KUBERNETES if strict else CORE
    judge = ManifestValidator(context, strict=strict, foreign=not strict_kinds)
    kept = _Kept()
    check = FileCheck(judge, kept, schema, lambda _: None)
    for number, each in enumerate(sources, 1):
        if isinstance(each, Mapping):
            check.documents(mapping_documents(each, OF_MAPPINGS.format(number), schema))
        else:
            check_type(f"source {number}", each, str, PathLike, Mapping)
            check.files(names_of([each]), recursive=recursive)
    check.finish()
    if kept.messages:
        raise UnreadableError("\n".join(kept.messages))
    if not kept.objects:
        raise MoorageError("nothing to check: there is no object in any source")
    return Validation(kept, kept.verdicts, check.notes())


# --- lint -------------------------------------------------------------------------------------


@final
class LintFinding(Record):
    """A mistake that lint found, with what to do about it."""

    __slots__ = ("_found", "_tree")

    def __init__(self, found: FoundFinding, tree: dict[str, Any]) -> None:
        self._found, self._tree = found, tree

    @property
    def rule(self) -> str:
        """The id of the rule: `unknown-class`."""
        return self._found.rule

    @property
    def severity(self) -> str:
        """How bad it is: error, warning or note."""
        return self._found.severity.value

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return f"{self._found.kind} {self._found.name}"

    @property
    def message(self) -> str:
        """What is wrong."""
        return self._found.message

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return self._found.remedy

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as `moor lint -o json` prints it."""
        return plain_tree(self._tree)

    def _rows(self) -> Iterator[dict[str, Any]]:
        yield self.to_dict()

    def _repr_html_(self) -> str:
        return html.block(html.paragraph(self))

    def __str__(self) -> str:
        place = ":".join(str(self._tree[name]) for name in _PLACE if name in self._tree)
        return f"{place}: {self.severity}: {self.subject}: {self.message} [{self.rule}]"


_PLACE = ("file", "line", "column")


@final
class Findings(Readable, Sequence[LintFinding]):
    """What lint found, in the order of the objects. `moorage.lint` returns it."""

    def __init__(self, found: Sequence[FoundFinding], given: LintInput) -> None:
        self._found = tuple(found)
        self._findings = tuple(LintFinding(each, finding_tree(each, given)) for each in found)
        self._tree = plain_tree(lint_tree(found, given))

    @property
    def is_clean(self) -> bool:
        """Whether there is no error and no warning; notes do not count."""
        return all(each.severity is LintSeverity.NOTE for each in self._found)

    @overload
    def __getitem__(self, index: int) -> LintFinding: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LintFinding, ...]: ...
    def __getitem__(self, index: int | slice) -> LintFinding | tuple[LintFinding, ...]:
        return self._findings[index]

    def __len__(self) -> int:
        return len(self._findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as `moor lint -o json` prints them."""
        return self._tree

    def _rows(self) -> Iterator[dict[str, Any]]:
        return (each.to_dict() for each in self._findings)

    def _repr_html_(self) -> str:
        rows = ((each.severity, each.subject, each.message, each.remedy) for each in self)
        header = ("Severity", "Object", "Message", "Remedy")
        return html.block(html.table(header, rows), html.paragraph(self._summary()))

    def _summary(self) -> str:
        objects = counted(self._tree["summary"]["objects"], "object")
        return f"{counted(len(self), 'finding')} about {objects}"

    def __repr__(self) -> str:
        return f"<Findings: {self._summary()}>"

    def __str__(self) -> str:
        return "\n".join((self._summary(), *map(str, self)))


def lint(
    *sources: Source,
    on: Path | Sequence[Path] = (),
    profile: str | Sequence[str] = (),
    live: bool = False,
    kubeconfig: Path = "",
    context: str = "",
    namespace: str | None = None,
    recursive: bool = False,
    numa_node: Literal["scalar", "list"] = "scalar",
    feature_gates: Mapping[str, bool] | None = None,
    gates_preset: Literal["moorage", "kubernetes-1.37"] = "moorage",
    emulated_version: str = "1.37",
    strict: bool = False,
    now: datetime | None = None,
    disable: Sequence[str] = (),
) -> Findings:
    """Return the mistakes in claims, classes, slices and pods, as `moor lint` finds them.

    With sources, only their objects are checked, in the cluster of `on`, `live` and `profile`;
    without, the whole cluster is. `disable` names rules to leave out; the other parameters are
    those of `load`. Raises UnreadableError if a source cannot be read.
    """
    check_type("disable", disable, list, tuple, set, frozenset)
    for rule in disable:
        if rule not in RULE_IDS:
            raise MoorageError(f"disable: {rule!r}: must be one of {', '.join(RULE_IDS)}")
    around = context_of(feature_gates, gates_preset, emulated_version, now, strict=strict)
    given = gathered(
        sources,
        around,
        on=on,
        profile=profile,
        live=live,
        kubeconfig=kubeconfig,
        kube_context=context,
        namespace=namespace,
        recursive=recursive,
        numa_node=numa_node,
    )

    def collected(parts: Iterable[Any]) -> Collected:
        return give_all(parts, Collected(around, kinds=KINDS, namespace=given.namespace), _unseen)

    def read() -> LintInput:
        manifests = collected(given.manifests) if sources else None
        return lint_input(collected(given.cluster), manifests, around)

    found = outside_loop(read) if given.is_live else read()
    if found.unreadable:
        raise UnreadableError("\n".join(found.unreadable))
    return Findings(find_mistakes(found.subjects, found.world, disabled=tuple(disable)), found)


def _unseen(name: str) -> None:
    """Report an object to nobody."""


# --- profiles ---------------------------------------------------------------------------------


@final
class HardwareProfile(Record):
    """A machine that Moorage knows: `moorage.load(profile=profile.name)`."""

    __slots__ = ("_found",)

    def __init__(self, found: FoundProfile) -> None:
        self._found = found

    @property
    def name(self) -> str:
        """The name, which `load` and `--profile` take."""
        return self._found.name

    @property
    def title(self) -> str:
        """What the machine is called."""
        return self._found.board.title

    @property
    def summary(self) -> str:
        """What it has, in one line."""
        return self._found.board.summary

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as `moor profiles -o json` prints it."""
        return plain_tree(profile_tree(self._found))

    def _rows(self) -> Iterator[dict[str, Any]]:
        tree = self.to_dict()
        yield {**tree, "aliases": ",".join(tree["aliases"]) or None}

    def _repr_html_(self) -> str:
        return html.block(html.paragraph(self))

    def __str__(self) -> str:
        return f"{self.name}: {self.title}, {self.summary}"


def profiles() -> tuple[HardwareProfile, ...]:
    """Return the hardware profiles, sorted by name."""
    catalogue = Catalogue()
    return tuple(HardwareProfile(catalogue.profile(name)) for name in catalogue.names)
