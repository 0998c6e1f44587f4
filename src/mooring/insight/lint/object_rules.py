"""Rules of lint about objects as such: forms, fields, classes, constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mooring.api.resource.v1 import ADMIN_NAMESPACE_LABEL, DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from mooring.hardware.nodes import EXAMPLE_PROFILES
from mooring.insight.lint.cases import (
    ANYTHING,
    CLAIMS,
    Case,
    E,
    N,
    Needs,
    Oddity,
    Rule,
    W,
)
from mooring.insight.lint.context import key_of
from mooring.insight.lint.subjects import asks_of, claim_of, constraints_of
from mooring.insight.messages import nearest
from mooring.validation.admission import strategy_of

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
            remedy = "create the class, or give its file, too"
            if profile := EXAMPLE_PROFILES.get(name):  # a driver's class, so not a mistyped one
                remedy += f"; --profile {profile} has it"
            elif near := nearest(name, classes):
                remedy = f'did you mean "{near}"?'
            place = (*ask.place, "deviceClassName")
            yield Oddity(place, f'there is no class "{name}" among those given', remedy)


def given_twice(case: Case) -> Iterator[Oddity]:
    """Give the objects of which there is a later one of the same name."""
    later = case.world.around.later(case.subject)
    if later is not None:
        line, _ = later.locate(())
        yield Oddity(
            ("metadata", "name"),
            f"there is another {case.subject.kind.name} of this name at "
            f"{later.document.source}:{line}, which takes its place",
            "rename one of them, or leave one out",
        )


def dropped_field(case: Case) -> Iterator[Oddity]:
    """Give the features whose fields an API server drops because their gates are off."""
    subject, context = case.subject, case.world.around.context
    for gate in strategy_of(subject.kind).disabled(subject.value, None, context):
        yield Oddity(
            ("spec",),
            f"{gate} is off: an API server drops the fields that belong to it",
            f"switch on {gate} in the cluster, or do without",
        )


def admin_access_namespace(case: Case) -> Iterator[Oddity]:
    """Give the requests for admin access in a namespace that does not allow it."""
    around = case.world.around
    name = key_of(case.subject.value.metadata).namespace
    namespace = around.namespaces.get(name)
    if namespace is None or namespace.metadata.labels.get(ADMIN_NAMESPACE_LABEL) == "true":
        return
    place, claim = claim_of(case.subject)
    for i, request in enumerate((claim.requests or ()) if claim is not None else ()):
        if request.exactly is not None and request.exactly.admin_access:
            yield Oddity(
                (*place, "requests", i, "exactly", "adminAccess"),
                f"an API server refuses admin access in namespace {name}, which does not have "
                f'the label {ADMIN_NAMESPACE_LABEL}: "true"',
                "label the namespace, or do without adminAccess",
            )


RULES = (
    Rule(
        "deprecated-form",
        W,
        Needs.NOTHING,
        "a form that Kubernetes 1.37 does not have, such as include() or device.name",
        deprecated_form,
        ANYTHING,
    ),
    Rule(
        "unknown-field",
        W,
        Needs.NOTHING,
        "a field that the kind does not have, or that is set twice",
        unknown_field,
        ANYTHING,
    ),
    Rule(
        "match-and-distinct",
        W,
        Needs.NOTHING,
        "a constraint with both matchAttribute and distinctAttribute",
        match_and_distinct,
    ),
    Rule(
        "long-class-name",
        N,
        Needs.NOTHING,
        "a class whose name is too long for an implicit extended resource",
        long_class_name,
    ),
    Rule(
        "unknown-class",
        W,
        Needs.CLASSES,
        "a request for a class that is not among the classes given",
        unknown_class,
    ),
    Rule(
        "given-twice",
        W,
        Needs.NOTHING,
        "an object in whose place a later one of the same name comes",
        given_twice,
        ANYTHING,
    ),
    Rule(
        "dropped-field",
        W,
        Needs.NOTHING,
        "a field that is dropped because its feature gate is off",
        dropped_field,
        ANYTHING,
    ),
    Rule(
        "admin-access-namespace",
        E,
        Needs.NAMESPACES,
        "admin access in a namespace without the label for it",
        admin_access_namespace,
        CLAIMS,
    ),
)
