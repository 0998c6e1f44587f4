"""Classes, claims and templates that a pod names and that do not exist, or cannot be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, NamedTuple

from moorage.api.codec import to_tree
from moorage.api.core.pod import POD_SCHEDULED
from moorage.api.resource.v1 import ADMIN_NAMESPACE_LABEL, ResourceClaim
from moorage.claims.pod_claims import Named, NotNeeded, controller_of, reference_of
from moorage.hardware.machine import EXAMPLE_PROFILES
from moorage.insight.answer.changes.edits import Edit, EditPath, ObjectChange, change_of
from moorage.insight.answer.changes.sources import CLAIM_SPEC, CLAIM_TEMPLATE_SPEC, Source
from moorage.insight.answer.devices.selectors import refused_selector
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.preconditions.refusals import refused_object
from moorage.insight.answer.preconditions.refused_claims import refused_claim
from moorage.insight.messages import full_name, listed, nearest
from moorage.insight.plan.unknown import unknown_of
from moorage.insight.snapshot.completion import NO_PRIORITY, TERMINATING
from moorage.insight.snapshot.unread import remedy_for
from moorage.insight.snapshot.written_objects import RefusedObject
from moorage.kit.similar_names import LIKENESS_MIN, telling_words

# --- classes --------------------------------------------------------------------------------


class _ClassReference(NamedTuple):
    """A class that a request names, and where."""

    source: Source | None  # None if the template of the claim is gone
    path: EditPath
    name: str
    alternative: str = ""  # of a request with several, which are all refused with it


def missing_classes(case: Case) -> Iterator[Finding]:
    """Find requests for classes that do not exist."""
    known = {each.metadata.name for each in case.snapshot.classes}
    if not case.unread.knows("DeviceClass"):
        return
    for reference in _class_references(case):
        if reference.name not in known:
            meant = _meant_class(reference.name, known) or _class_of_driver(case, reference.name)
            hint = f": did you mean {meant}?" if meant else f"; {_there_is('class', known)}"
            if reference.alternative:
                hint += f"{' it' if meant else '; it'} keeps all alternatives from being tried"
            yield Finding(
                f"device class {reference.name} does not exist{hint}",
                tuple(_class_proposals(case, reference, meant)),
            )


def _meant_class(name: str, known: Iterable[str]) -> str | None:
    """Return the class that was meant: a similar one, or one with all the words of the name."""
    classes = sorted(known)
    words = telling_words(name)
    alike = [each for each in classes if words and words <= telling_words(each)]
    if len(alike) == 1:
        return alike[0]
    found = nearest(name, classes)
    if found is None:
        return None
    # The last parts of domains are alike by themselves.
    theirs = telling_words(found)
    own = "".join(sorted(words - theirs)), "".join(sorted(theirs - words))
    is_alike = all(own) and SequenceMatcher(None, *own, autojunk=False).ratio() > LIKENESS_MIN
    return found if is_alike or not all(own) else None


def _class_of_driver(case: Case, driver: str) -> str | None:
    """Return the only class that asks for a driver of a given name."""
    asked = re.compile(rf"""device\.driver\s*==\s*['"]{re.escape(driver)}['"]""")
    found = [
        each.metadata.name
        for each in case.snapshot.classes
        if any(s.cel is not None and asked.search(s.cel.expression) for s in each.spec.selectors)
    ]
    return found[0] if len(found) == 1 else None


def _class_proposals(
    case: Case, reference: _ClassReference, meant: str | None
) -> Iterator[Proposal]:
    name, source = reference.name, reference.source
    if meant is not None and source is not None:
        change = source.change(Edit(reference.path, meant))
        yield Proposal(f"use class {meant} instead of {name}", FixRank.REPAIR, (change,))
    if reference.alternative and source is not None:
        change = source.change(Edit(reference.path[:-1]))
        text = f"remove alternative {reference.alternative}, whose class {name} does not exist"
        yield Proposal(text, FixRank.LESS, (change,))
    profile = EXAMPLE_PROFILES.get(name)
    if profile and not case.snapshot.slices:  # A real cluster has no profiles.
        text = f"add machines with such devices: --profile {profile} brings class {name}"
        yield Proposal(text, FixRank.HARDWARE)
    if meant is None:
        yield Proposal(f"install the driver that brings class {name}", FixRank.ADVICE)


def _class_references(case: Case) -> Iterator[_ClassReference]:
    """Yield where the claims of the pod name their classes."""
    for claim in claims_of(case):
        source = case.sources.of_claim(claim, case.pod)
        for index, request in enumerate(claim.spec.devices.requests or ()):
            base: EditPath = ("devices", "requests", index)
            if request.exactly is not None:
                path = (*base, "exactly", "deviceClassName")
                yield _ClassReference(source, path, request.exactly.device_class_name)
            for number, each in enumerate(request.first_available):
                path = (*base, "firstAvailable", number, "deviceClassName")
                yield _ClassReference(source, path, each.device_class_name, each.name)


def claim_sources(case: Case) -> Iterator[Source]:
    """Yield the claims and templates that the pod names, where they exist."""
    for reference in _entry_references(case):
        found = case.sources.find(reference.kind, case.namespace, reference.name)
        if found is not None:
            is_template = reference.kind == "ResourceClaimTemplate"
            yield Source(found, CLAIM_TEMPLATE_SPEC if is_template else CLAIM_SPEC)


def claims_of(case: Case) -> Iterator[ResourceClaim]:
    """Yield the claims of the pod that exist."""
    pod = case.pod
    names = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses or ()}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or names.get(entry.name)
        claim = case.cluster.find_claim(case.namespace, name) if name else None
        if claim is not None:
            yield claim


# --- namespaces -----------------------------------------------------------------------------


def ending_namespace(case: Case) -> Iterator[Finding]:
    """Find a namespace that is being deleted, which takes nothing new."""
    if TERMINATING.format(case.namespace) not in case.over_quota.get(full_name(case.pod), ""):
        return
    advice = f"use another namespace, or wait until {case.namespace} is gone and create it anew"
    yield Finding(
        f"namespace {case.namespace} is being deleted (Terminating) and takes no new pods",
        (Proposal(advice, FixRank.ADVICE),),
    )


# --- priorities -----------------------------------------------------------------------------


def missing_priority(case: Case) -> Iterator[Finding]:
    """Find a priority class that does not exist, for which admission refuses the pod."""
    name = case.pod.spec.priority_class_name
    if NO_PRIORITY.format(name) not in case.over_quota.get(full_name(case.pod), ""):
        return
    known = [each.metadata.name for each in case.snapshot.priorities]
    meant, source = nearest(name, known), case.sources.of_pod(case.pod)
    proposals = [Proposal(f"create PriorityClass {name}", FixRank.ADVICE)]
    if meant is not None and source is not None:
        change = source.change(Edit(("priorityClassName",), meant))
        text = f"use priority class {meant} instead of {name}"
        proposals.insert(0, Proposal(text, FixRank.REPAIR, (change,)))
    hint = f": did you mean {meant}?" if meant else f"; {_there_is('priority class', known)}"
    yield Finding(f"priority class {name} does not exist{hint}", tuple(proposals))


# --- claims and templates -------------------------------------------------------------------


class _EntryReference(NamedTuple):
    """A claim or template that an entry of the pod names, and where."""

    kind: str
    noun: str
    name: str
    path: EditPath


def missing_claims(case: Case) -> Iterator[Finding]:
    """Find entries that name claims or templates that do not exist."""
    for reference in _entry_references(case):
        key = (reference.kind, case.namespace, reference.name)
        if case.sources.find(*key) is not None or _is_done(case, reference):
            continue
        if not case.unread.knows(reference.kind, case.namespace):
            continue
        refused = next((each for each in case.refused if each[:3] == key), None)
        if refused is not None:
            yield _refused(case, reference.noun, refused)
        else:
            yield _missing(case, reference)


def _is_done(case: Case, reference: _EntryReference) -> bool:
    """Return whether a reference is to a template from which the claim was made already."""
    entry = case.pod.spec.resource_claims[int(reference.path[1])]
    is_made = isinstance(reference_of(case.pod, entry), Named | NotNeeded)
    return is_made and entry.resource_claim_name is None


def _entry_references(case: Case) -> Iterator[_EntryReference]:
    for index, entry in enumerate(case.pod.spec.resource_claims):
        path: EditPath = ("resourceClaims", index)
        if entry.resource_claim_template_name is not None:
            name = entry.resource_claim_template_name
            where = (*path, "resourceClaimTemplateName")
            yield _EntryReference("ResourceClaimTemplate", "template", name, where)
        elif entry.resource_claim_name is not None:
            where = (*path, "resourceClaimName")
            yield _EntryReference("ResourceClaim", "claim", entry.resource_claim_name, where)


def _missing(case: Case, reference: _EntryReference) -> Finding:
    is_template = reference.kind == "ResourceClaimTemplate"
    of_kind: Sequence[Any] = case.snapshot.templates if is_template else case.snapshot.claims
    noun, name, namespace = reference.noun, reference.name, case.namespace
    if (other := _of_other_kind(case, reference)) is not None:
        return other
    here = {
        each.metadata.name
        for each in of_kind
        if each.metadata.namespace == namespace and controller_of(each.metadata) is None
    }
    elsewhere = sorted(e.metadata.namespace for e in of_kind if e.metadata.name == name)
    meant = nearest(name, here)
    proposals: list[Proposal] = []
    source = case.sources.of_pod(case.pod)
    if meant is not None and source is not None:
        change = source.change(Edit(reference.path, meant))
        text = f"use {noun} {meant} instead of {name}"
        proposals.append(Proposal(text, FixRank.REPAIR, (change,)))
    elif elsewhere:
        text = f"create {noun} {name} in namespace {namespace}, as in {elsewhere[0]}"
        copies = _copied(of_kind, name, elsewhere[0], namespace)
        proposals.append(Proposal(text, FixRank.REPAIR, copies))
    else:
        text = f"create {noun} {name} in namespace {namespace}"
        proposals.append(Proposal(text, FixRank.ADVICE))
    if elsewhere:
        cause = (
            f"{noun} {name} is in namespace {listed(elsewhere)}, but the pod is in {namespace}, "
            "and pods use those of their own"
        )
        return Finding(cause, tuple(proposals))
    hint = f": did you mean {meant}?" if meant else f"; {_there_is(noun, here)}"
    return Finding(f"{noun} {name} does not exist in namespace {namespace}{hint}", tuple(proposals))


def _of_other_kind(case: Case, reference: _EntryReference) -> Finding | None:
    """Return that a template is named as a claim, or a claim as a template."""
    is_template = reference.kind == "ResourceClaimTemplate"
    kind, noun, field = (
        ("ResourceClaim", "claim", "resourceClaimName")
        if is_template
        else ("ResourceClaimTemplate", "template", "resourceClaimTemplateName")
    )
    name, source = reference.name, case.sources.of_pod(case.pod)
    if case.sources.find(kind, case.namespace, name) is None or source is None:
        return None
    entry, written = reference.path[:-1], reference.path[-1]
    change = source.change(Edit((*entry, field), name), Edit(reference.path))
    return Finding(
        f"{name} is a {noun}, but the pod names it as a {reference.noun} ({written})",
        (Proposal(f"use {field}: {name} instead of {written}", FixRank.REPAIR, (change,)),),
    )


def _refused(case: Case, noun: str, refused: RefusedObject) -> Finding:
    """Return why the API server does not take what the pod waits for."""
    text = "; ".join(refused.reasons)
    found = refused_claim(case, noun, refused)
    if found is not None:
        return _with_all_repairs(case, refused, found)
    if ADMIN_NAMESPACE_LABEL not in text:
        found = refused_selector(case, noun, refused)
        if found is not None and any(each.changes for each in found.proposals):
            return _with_all_repairs(case, refused, found)
        return refused_object(case, refused)
    label = f"{ADMIN_NAMESPACE_LABEL}=true"
    changes: tuple[ObjectChange, ...] = ()
    instead = ""
    for space in case.snapshot.namespaces:
        if space.metadata.name == case.namespace:
            instead = _other_label(space.metadata.labels)
            changes = (
                change_of(space, Edit(("metadata", "labels", ADMIN_NAMESPACE_LABEL), "true")),
                ObjectChange(refused.kind, refused.namespace, refused.name, new=refused.tree),
            )
    said = f"label namespace {case.namespace} {label} (an administrator's change)"
    return Finding(
        f"admin access in {noun} {refused.name} needs label {label} on namespace {case.namespace}"
        f"{instead}",
        (Proposal(said, FixRank.ADMINISTRATOR, changes),),
    )


def _with_all_repairs(case: Case, refused: RefusedObject, found: Finding) -> Finding:
    """Return a finding about one mistake with the repair of all, where that one is not enough."""
    is_one = len(refused.reasons) == 1
    if is_one and any(each.changes for each in found.proposals):
        return found
    whole = refused_object(case, refused).proposals
    if any(each.changes for each in whole):
        return Finding(found.cause, (*whole, *found.proposals))
    return found if is_one else Finding(found.cause, (*found.proposals, *whole))


def _copied(
    of_kind: Iterable[Any], name: str, source: str, namespace: str
) -> tuple[ObjectChange, ...]:
    """Return a new object like one in another namespace."""
    for each in of_kind:
        if each.metadata.name == name and each.metadata.namespace == source:
            tree = to_tree(each)
            tree["metadata"] = {"name": name, "namespace": namespace}
            tree.pop("status", None)
            return (ObjectChange(each.kind, namespace, name, new=tree),)
    return ()


def _other_label(labels: Mapping[str, str]) -> str:
    """Return the label that was probably meant to allow admin access."""
    value = labels.get(ADMIN_NAMESPACE_LABEL)
    if value is not None:
        return f', which has it as "{value}"'
    near = nearest(ADMIN_NAMESPACE_LABEL, labels)
    return f", which has {near}={labels[near]}" if near is not None else ""


def _there_is(noun: str, names: Iterable[str]) -> str:
    known = sorted(names)
    return f"there is {listed(known)}" if known else f"there is no {noun} at all"


# --- what could not be read ---------------------------------------------------------------------
#
# Whoever may not list slices sees a cluster without devices. That no driver publishes any is not
# the cause then; that nobody may look is. The scheduler may look, so its words are passed on.

WORDS_MAX: Final = 300


def unread_findings(case: Case) -> Iterator[Finding]:
    """Find what decides about the pod and could not be read."""
    found = unknown_of(case.snapshot, case.pod)
    if found is not None:
        advice = Proposal(remedy_for(found.hidden), FixRank.ADVICE)
        yield Finding(str(found), (*_words_of_scheduler(case), advice))


def _words_of_scheduler(case: Case) -> Iterator[Proposal]:
    for each in case.pod.status.conditions:
        if each.type == POD_SCHEDULED and each.status == "False" and each.message:
            theirs, sign, ours = each.message.partition("Moorage: ")
            words = ours if sign else theirs
            yield Proposal(f"see what the scheduler says: {words[:WORDS_MAX]}", FixRank.ADVICE)
