"""The status of a definition: accepted names, and conditions."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.api.apiextensions import (
    APPROVAL,
    CLEANUP_FINALIZER,
    ESTABLISHED,
    NAMES_ACCEPTED,
    TERMINATING,
    CustomResourceDefinition,
    CustomResourceDefinitionCondition,
    CustomResourceDefinitionNames,
)
from moorage.api.timestamp import Timestamp
from moorage.kit.go_quote import go_quote
from moorage.validation.custom_resources.definition_rules import approval_state, is_protected

TRUE, FALSE = "True", "False"


def with_condition(
    definition: CustomResourceDefinition,
    now: Timestamp,
    kind: str,
    status: str,
    reason: str,
    message: str,
) -> CustomResourceDefinition:
    """Return a definition with a condition, whose time changes only with its status."""
    before = definition.status.conditions or ()
    old = next((each for each in before if each.type == kind), None)
    when = now if old is None or old.status != status else old.last_transition_time
    new = CustomResourceDefinitionCondition(
        type=kind, status=status, last_transition_time=when, reason=reason, message=message
    )
    if old is None:
        conditions = (*before, new)
    else:
        conditions = tuple(new if each is old else each for each in before)
    return replace(definition, status=replace(definition.status, conditions=conditions))


def with_cleanup(definition: CustomResourceDefinition, now: Timestamp) -> CustomResourceDefinition:
    """Return a deleted definition with a finalizer, until all its objects are deleted."""
    # As in Kubernetes, where the registry of definitions sets the condition.
    generation = definition.metadata.generation - 1
    metadata = replace(
        definition.metadata, deletion_grace_period_seconds=None, generation=generation
    )
    if CLEANUP_FINALIZER not in metadata.finalizers:
        metadata = replace(metadata, finalizers=(*metadata.finalizers, CLEANUP_FINALIZER))
    words = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    marked = replace(definition, metadata=metadata)
    return with_condition(marked, now, TERMINATING, TRUE, "InstanceDeletionPending", words)


def accepted(
    definition: CustomResourceDefinition, others: Iterable[CustomResourceDefinition], now: Timestamp
) -> CustomResourceDefinition:
    """Return a definition with accepted names, which no other in its group has, and conditions."""
    names, conflict = _names(definition, list(others))
    new = replace(definition, status=replace(definition.status, accepted_names=names))
    if conflict is not None:
        new = with_condition(new, now, NAMES_ACCEPTED, FALSE, *conflict)
    else:
        words = "no conflicts found"
        new = with_condition(new, now, NAMES_ACCEPTED, TRUE, "NoConflicts", words)
    if not new.is_true(ESTABLISHED):
        if conflict is None:
            words = "the initial names have been accepted"
            new = with_condition(new, now, ESTABLISHED, TRUE, "InitialNamesAccepted", words)
        else:
            words = "not all names are accepted"
            new = with_condition(new, now, ESTABLISHED, FALSE, "NotAccepted", words)
    return _with_approval(new, now)


def _with_approval(
    definition: CustomResourceDefinition, now: Timestamp
) -> CustomResourceDefinition:
    if not is_protected(definition.spec.group):
        return definition
    state, reason = approval_state(definition.metadata.annotations)
    status, word = {
        "approved": (TRUE, "ApprovedAnnotation"),
        "bypassed": (FALSE, "UnapprovedAnnotation"),
        "missing": (FALSE, "MissingAnnotation"),
        "invalid": (FALSE, "InvalidAnnotation"),
    }[state]
    return with_condition(definition, now, APPROVAL, status, word, reason)


def _names(
    definition: CustomResourceDefinition, others: list[CustomResourceDefinition]
) -> tuple[CustomResourceDefinitionNames, tuple[str, str] | None]:
    """Return the accepted names, and the last conflict among the wanted ones."""
    wanted, names = definition.spec.names, definition.status.accepted_names
    mine = [each for each in others if each.spec.group == definition.spec.group]
    taken = [each.status.accepted_names for each in mine]
    resources = {n for each in taken for n in (each.plural, each.singular, *each.short_names)}
    kinds = {n for each in taken for n in (each.kind, each.list_kind)}
    conflict: tuple[str, str] | None = None
    for attribute, used, reason in (
        ("plural", resources, "PluralConflict"),
        ("singular", resources, "SingularConflict"),
        ("short_names", resources, "ShortNamesConflict"),
        ("kind", kinds, "KindConflict"),
        ("list_kind", kinds, "ListKindConflict"),
    ):
        new = getattr(wanted, attribute)
        old = getattr(names, attribute)
        fresh = [new] if isinstance(new, str) else [n for n in new if n not in old]
        faults = [go_quote(n) for n in fresh if n != old and n in used]
        if faults:
            said = [f"{fault} is already in use" for fault in faults]
            words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
            conflict = (reason, words)
        else:
            names = replace(names, **{attribute: new})
    return replace(names, categories=wanted.categories), conflict
