"""Rules of lint about objects as such: forms, fields, classes, constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.api.resource.v1 import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from mooring.insight.cases import Case, Oddity
from mooring.insight.nearness import nearest
from mooring.insight.subjects import asks_of, constraints_of

RESOURCE_NAME_MAX: Final = 63  # the part of a resource's name behind the slash


def deprecated_form(case: Case) -> Iterator[Oddity]:
    """Give the forms of designs that shipped differently, and extensions."""
    remedy = "write the form that Kubernetes 1.37 has; with --strict Mooring knows no other"
    for remark in (*case.subject.remarks, *case.subject.problems):
        if not remark.is_strict:
            yield Oddity(remark.place, remark.message, remedy)


def unknown_field(case: Case) -> Iterator[Oddity]:
    """Give the fields that the kind does not have, and those set twice."""
    for remark in case.subject.remarks:
        if remark.is_strict:
            yield Oddity(remark.place, remark.message, "correct or delete it: it has no effect")


def match_and_distinct(case: Case) -> Iterator[Oddity]:
    """Give the constraints of which half is ignored."""
    for place, constraint in constraints_of(case.subject):
        if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
            yield Oddity(
                (*place, "distinctAttribute"),
                "matchAttribute is set, too, and then distinctAttribute is ignored",
                "make two constraints of it",
            )


def long_class_name(case: Case) -> Iterator[Oddity]:
    """Give the classes that pods cannot ask for as an extended resource by their name."""
    if not isinstance(case.subject.value, DeviceClass):
        return
    name = case.subject.value.metadata.name
    if len(name) > RESOURCE_NAME_MAX:
        yield Oddity(
            ("metadata", "name"),
            f"{len(name)} characters are too many for the implicit extended resource "
            f"{DEVICE_CLASS_RESOURCE_PREFIX}…, of which {RESOURCE_NAME_MAX} may follow the slash",
            "shorten the name, or set spec.extendedResourceName",
        )


def unknown_class(case: Case) -> Iterator[Oddity]:
    """Give the requests and rules that name a class which is not there."""
    classes = case.world.classes
    for ask in asks_of(case.subject):
        name = ask.class_name
        if name and name not in classes:
            near = nearest(name, classes)
            remedy = (
                f'did you mean "{near}"?' if near else "create the class, or give its file, too"
            )
            place = (*ask.place, "deviceClassName")
            yield Oddity(place, f'there is no class "{name}" among those given', remedy)
