"""Rules about claims, templates, classes, taint rules, and about all objects; no devices needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from moorage.api.gates import Gate
from moorage.api.resource.v1 import (
    ADMIN_NAMESPACE_LABEL,
    DEVICE_CLASS_RESOURCE_PREFIX,
    DeviceClass,
    ResourceClaim,
)
from moorage.cel.device import COST_LIMIT
from moorage.claims.leftovers import HOW_TO_FREE, UNRESERVED, freeing_command, is_unreserved
from moorage.hardware.machine import EXAMPLE_PROFILES
from moorage.insight.expressions.evaluation import TOO_COMPLEX, TOO_LONG, InvalidExpression
from moorage.insight.expressions.repairs import diagnose
from moorage.insight.expressions.respelling import respelt
from moorage.insight.expressions.syntax import shown_cost
from moorage.insight.lint.context import ExpressionStage, key_of
from moorage.insight.lint.rule import (
    ANYTHING,
    CLAIMS,
    SELECTING,
    Case,
    E,
    N,
    Needs,
    Oddity,
    RuleTable,
    W,
    devices_of,
)
from moorage.insight.lint.subjects import claim_of, constraints_of, selections_of
from moorage.insight.messages import nearest
from moorage.validation.registry import strategy_for

RULES = RuleTable(SELECTING)
NEAR_THE_LIMIT: Final = COST_LIMIT // 2
CHEAPER: Final = "loop over less, or compare with includes(), in or == instead of in a loop"
RESOURCE_NAME_MAX: Final = 63  # the part of a resource's name behind the slash


@RULES.add(E, is_shared=True)
def does_not_compile(case: Case) -> Iterator[Oddity]:
    """An expression that Kubernetes refuses."""
    for stage in case.stages:
        if isinstance(stage.evaluator, InvalidExpression):
            remedy = _how_to_compile(stage, stage.evaluator, case)
            yield Oddity(stage.expression.place, stage.evaluator.error, remedy)


def _how_to_compile(stage: ExpressionStage, refusal: InvalidExpression, case: Case) -> str:
    if refusal.error == TOO_LONG:
        return "split it: all selectors of a request must be true"
    if case.context.compiles_when_stored(stage.expression):
        return "switch on DRAListTypeAttributes and DRAConsumableCapacity: with them it compiles"
    if stage.expression.purpose == "selector" and stage.candidates:
        found = diagnose([stage.expression.text], case.context.compiler, devices_of(case, stage))
        if found is not None and found.repairs:
            return found.repairs[0].text
    is_derived = stage.expression.purpose == "derived"
    devices = devices_of(case, stage)
    meant = respelt(
        stage.expression.text, refusal.error, case.context.compiler, devices, derived=is_derived
    )
    if meant is not None:
        return meant.text
    return "correct it; `moor cel` tries it on devices"


@RULES.add(E, is_shared=True)
def too_expensive(case: Case) -> Iterator[Oddity]:
    """An expression, or all derived attributes of a claim, over the cost limit."""
    for stage, cost in _estimates(case):
        if cost > COST_LIMIT:
            message = f"{TOO_COMPLEX}: it may cost {shown_cost(cost)} of {COST_LIMIT:,}"
            yield Oddity(stage.expression.place, message, CHEAPER)
    derived = [cost for stage, cost in _estimates(case) if stage.expression.purpose == "derived"]
    if sum(derived) > COST_LIMIT >= max(derived, default=0):
        place, _ = claim_of(case.subject)
        message = (
            f"too complex, the derived attributes of the claim may cost {sum(derived):,} together; "
            f"the limit is {COST_LIMIT:,}"
        )
        yield Oddity(place, message, CHEAPER)


@RULES.add(W, is_shared=True)
def expensive(case: Case) -> Iterator[Oddity]:
    """An expression that may use half of the cost limit or more."""
    for stage, cost in _estimates(case):
        if NEAR_THE_LIMIT <= cost <= COST_LIMIT:
            message = f"near the cost limit: it may cost {cost:,} of {COST_LIMIT:,}"
            yield Oddity(stage.expression.place, message, CHEAPER)


def _estimates(case: Case) -> Iterator[tuple[ExpressionStage, int]]:
    for stage in case.stages:
        if not isinstance(stage.evaluator, InvalidExpression):
            yield stage, stage.evaluator.compiled.cost_max


@RULES.add(W, about=ANYTHING)
def deprecated_form(case: Case) -> Iterator[Oddity]:
    """A form that Kubernetes 1.37 does not have, such as include() or device.name."""
    remedy = "write the form that Kubernetes 1.37 has; with --strict Moorage knows no other"
    for remark in (*case.subject.remarks, *case.subject.problems):
        if not remark.is_strict:
            yield Oddity(remark.place, remark.message, remedy)


@RULES.add(W, about=ANYTHING)
def unknown_field(case: Case) -> Iterator[Oddity]:
    """A field that the kind does not have, or that is set twice."""
    for remark in case.subject.remarks:
        if remark.is_strict:
            yield Oddity(remark.place, remark.message, "correct or delete it: it has no effect")


@RULES.add(W, is_shared=True)
def match_and_distinct(case: Case) -> Iterator[Oddity]:
    """A constraint with both matchAttribute and distinctAttribute."""
    for place, constraint in constraints_of(case.subject):
        if constraint.match_attribute is not None and constraint.distinct_attribute is not None:
            yield Oddity(
                (*place, "distinctAttribute"),
                "matchAttribute is set, too, and then distinctAttribute is ignored",
                "make two constraints of it",
            )


@RULES.add(N, about=frozenset(("ResourceClaim",)))
def unreserved_devices(case: Case) -> Iterator[Oddity]:
    """A claim that has devices, and is reserved for nobody."""
    claim, objects = case.subject.value, case.context.objects
    if not isinstance(claim, ResourceClaim) or not is_unreserved(claim):
        return
    if not objects.users.get(key_of(claim.metadata)) and not objects.is_made_by_given(
        claim.metadata
    ):
        remedy = f"if no pod is to use it, {HOW_TO_FREE}: {freeing_command(claim)}"
        yield Oddity(("status", "allocation"), f"has devices, and is {UNRESERVED}", remedy)


@RULES.add(N)
def long_class_name(case: Case) -> Iterator[Oddity]:
    """A class whose name is too long for an implicit extended resource."""
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


@RULES.add(W)
def shadowed_extended_resource(case: Case) -> Iterator[Oddity]:
    """A class whose extended resource Kubernetes takes from a newer class."""
    value = case.subject.value
    if not isinstance(value, DeviceClass) or not value.spec.extended_resource_name:
        return
    name, resource = value.metadata.name, value.spec.extended_resource_name
    winner = case.context.class_index.class_for(resource)
    if winner is None or winner.metadata.name == name or name not in case.context.classes:
        return
    ages = (winner.metadata.creation_timestamp, value.metadata.creation_timestamp)
    why = "of the same age and the first by name" if ages[0] == ages[1] else "newer"
    yield Oddity(
        ("spec", "extendedResourceName"),
        f"DeviceClass {winner.metadata.name} has {resource}, too, and is {why}: no pod that asks "
        "for the resource gets devices of this class",
        "give the resource to one class; pods can name this one as "
        f"{DEVICE_CLASS_RESOURCE_PREFIX}{name}",
    )


@RULES.add(W, Needs.CLASSES, is_shared=True)
def unknown_class(case: Case) -> Iterator[Oddity]:
    """A request for a class that is not among the classes given."""
    classes = case.context.classes
    for selection in selections_of(case.subject):
        name = selection.class_name
        if name and name not in classes:
            remedy = "create the class, or give its file, too"
            if profile := EXAMPLE_PROFILES.get(name):  # a driver's class, so not a mistyped one
                remedy += f"; --profile {profile} has it"
            elif near := nearest(name, classes):
                remedy = f'did you mean "{near}"?'
            place = (*selection.place, "deviceClassName")
            yield Oddity(place, f'there is no class "{name}" among those given', remedy)


@RULES.add(W, Needs.DEVICES, is_shared=True)
def count_of_shared_device(case: Case) -> Iterator[Oddity]:
    """A count that needs one device several times, which a request gets only once."""
    _, claim = claim_of(case.subject)
    requests = () if claim is None else claim.requests or ()
    exact = {each.name: each.exactly for each in requests}
    for selection in selections_of(case.subject):
        request = exact.get(selection.reference)
        if request is None or request.allocation_mode == "All" or (request.count or 1) < 2:
            continue
        devices = [case.context.devices.devices[n] for n in case.context.selected(selection)]
        places = Counter(each.node for each in devices)
        anywhere = places.pop("", 0) + max(places.values(), default=0)
        shared = next((each for each in devices if each.is_shareable), None)
        count = request.count or 1
        if shared is not None and anywhere < count:
            yield Oddity(
                (*selection.place, "count"),
                f"{count} devices are wanted, and no node has more than {anywhere}: a device that "
                f"can be shared, such as {shared.name}, counts once for a request",
                f"write {count} requests for one device each: they may share it",
            )


@RULES.add(W, about=ANYTHING)
def given_twice(case: Case) -> Iterator[Oddity]:
    """An object in whose place a later one of the same name comes."""
    later = case.context.objects.later(case.subject)
    if later is not None:
        line, _ = later.locate(())
        yield Oddity(
            ("metadata", "name"),
            f"there is another {case.subject.kind.name} of this name at "
            f"{later.document.source}:{line}, which takes its place",
            "rename one of them, or leave one out",
        )


@RULES.add(W, about=ANYTHING)
def dropped_field(case: Case) -> Iterator[Oddity]:
    """A field that is dropped because its feature gate is off."""
    subject, context = case.subject, case.context.objects.context
    for gate in strategy_for(subject.kind).disabled_gates(subject.value, None, context):
        is_list = gate is Gate.DRA_LIST_TYPE_ATTRIBUTES
        instead = (
            "publish single values (numaNode: --numa-node scalar)" if is_list else "do without"
        )
        yield Oddity(
            ("spec",),
            f"{gate} is off: an API server drops the fields that belong to it",
            f"switch on {gate} in the cluster, or {instead}",
        )


@RULES.add(E, Needs.NAMESPACES, CLAIMS)
def admin_access_namespace(case: Case) -> Iterator[Oddity]:
    """Admin access in a namespace without the label for it."""
    objects = case.context.objects
    name = key_of(case.subject.value.metadata).namespace
    namespace = objects.namespaces.get(name)
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
