"""Extended resources that neither a class nor a device plugin offers, and their containers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.insight.answer.changes.edits import REMOVED, Edit, EditPath, ObjectChange, change_of
from moorage.insight.answer.changes.sources import Source
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.messages import nearest
from moorage.kit.similar_names import telling_words

IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"


def unbacked(case: Case, name: str) -> Finding:
    """Return that neither a class nor a device plugin has an extended resource."""
    source = case.sources.of_pod(case.pod)
    if name.startswith(IMPLICIT):
        return _no_such_class(case, source, name)
    known = {c.spec.extended_resource_name for c in case.snapshot.classes} - {None}
    known |= {n for s in case.cluster.snapshot.nodes.values() for n in s.facts.allocatable.others}
    meant = nearest(name, [each for each in known if each is not None])
    proposals: list[Proposal] = []
    if meant is not None and source is not None:
        changes = tuple(_renamed(case, source, name, meant))
        proposals.append(Proposal(f"ask for {meant} instead of {name}", FixRank.REPAIR, changes))
    proposals += _mappings(case, source, name)
    text = f"install the DRA driver or device plugin that offers {name}"
    proposals.append(Proposal(text, FixRank.ADVICE))
    hint = f": did you mean {meant}?" if meant else ""
    return Finding(
        f"{name}: no device class has this extendedResourceName, and no device plugin offers "
        f"it{hint}",
        tuple(proposals),
    )


def _no_such_class(case: Case, source: Source | None, name: str) -> Finding:
    wanted = name.removeprefix(IMPLICIT)
    meant = nearest(wanted, [each.metadata.name for each in case.snapshot.classes])
    proposals: list[Proposal] = []
    if meant is not None and source is not None:
        changes = tuple(_renamed(case, source, name, f"{IMPLICIT}{meant}"))
        text = f"ask for {IMPLICIT}{meant} instead of {name}"
        proposals.append(Proposal(text, FixRank.REPAIR, changes))
    hint = f": did you mean {meant}?" if meant else ""
    return Finding(f"{name} names class {wanted}, which does not exist{hint}", tuple(proposals))


def _mappings(case: Case, source: Source | None, name: str) -> Iterator[Proposal]:
    """Yield how the devices of the most similar class can be asked for."""
    classes = sorted(case.snapshot.classes, key=lambda c: _distance(c.metadata.name, name))
    for each in classes:
        class_name = each.metadata.name
        if each.spec.extended_resource_name is not None or not _common_words(class_name, name):
            continue  # Other hardware is not what was meant.
        if source is not None:
            changes = tuple(_renamed(case, source, name, f"{IMPLICIT}{class_name}"))
            text = f"ask for {IMPLICIT}{class_name} instead of {name}: that is class {class_name}"
            yield Proposal(text, FixRank.REPAIR, changes)
        change = change_of(each, Edit(("spec", "extendedResourceName"), name))
        text = (
            f"map class {class_name} to it: extendedResourceName {name} (an administrator's change)"
        )
        yield Proposal(text, FixRank.ADMINISTRATOR, (change,))
        return


def _distance(class_name: str, resource: str) -> tuple[int, str]:
    return -len(_common_words(class_name, resource)), class_name


def _common_words(class_name: str, resource: str) -> set[str]:
    return telling_words(resource) & telling_words(class_name)


def _renamed(case: Case, source: Source, name: str, new: str) -> Iterator[ObjectChange]:
    edits: list[Edit] = []
    for path, amounts in container_amounts(case):
        if name in amounts and source.has((*path, name)):
            edits += [Edit((*path, new), str(amounts[name])), Edit((*path, name), REMOVED)]
    if edits:
        yield source.change(*edits)


def container_amounts(case: Case) -> Iterator[tuple[EditPath, dict[str, object]]]:
    """Yield the requests and limits of all containers, and where they are written."""
    spec = case.pod.spec
    for group, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for index, container in enumerate(containers):
            for field in ("requests", "limits"):
                amounts = getattr(container.resources, field)
                yield (group, index, "resources", field), amounts
