"""Evaluates the expressions of a policy for one request.

Evaluations are pure functions of their inputs. Most take microseconds and run on the event loop.
One that costs more is restarted in the worker thread for expressions, with a time limit, so neither
a policy nor an object can delay other requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from moorage.api.admissionregistration import IGNORE
from moorage.api.codec import to_tree
from moorage.apiserver.auth.users import User
from moorage.apiserver.dynamic_admission.access_reviewer import authorizer_values
from moorage.apiserver.dynamic_admission.attributes import Attributes, ResourceEndpoint
from moorage.apiserver.dynamic_admission.policy_programs import PolicyProgram
from moorage.apiserver.worker_threads import EXPRESSIONS_BYTES_MAX
from moorage.cel.admission import (
    BUDGET,
    MATCH_CONDITIONS_BUDGET,
    MESSAGE_BYTES_MAX,
    Answer,
    Evaluator,
    OutOfBudget,
)
from moorage.cel.lang.metering import Interrupted, Meter

LOOP_COST_MAX = 20_000  # of one step on the event loop
WORKER_S_MAX = 10.0
INTERRUPTED = "operation interrupted"
_TOO_LONG = "it takes longer than the event loop may"

T = TypeVar("T")
Step = Callable[[Meter], T]


async def evaluated(attributes: Attributes, step: Step[T]) -> T:
    """Return the result of evaluations, or raise Interrupted if they take too long."""
    try:
        return step(_LoopMeter())
    except Interrupted:
        meter = Meter()
    until_s = time.monotonic() + WORKER_S_MAX
    with meter.bounded(lambda: INTERRUPTED if time.monotonic() > until_s else None):
        run = attributes.server.workers.run_expressions
        return await run(attributes.user.name, EXPRESSIONS_BYTES_MAX + 1, step, meter)


class _LoopMeter(Meter):
    """Interrupts evaluations that cost too much for the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._left = LOOP_COST_MAX

    def check(self) -> None:
        """Interrupt a single evaluation that costs too much."""
        raise Interrupted(_TOO_LONG)

    def record(
        self,
        expression: str,  # noqa: ARG002
        evaluations: int,  # noqa: ARG002
        start_s: float,  # noqa: ARG002
        costs: tuple[int, ...] = (),
    ) -> None:
        """Interrupt evaluations that together cost too much."""
        self._left -= sum(costs)
        if self._left < 0:
            raise Interrupted(_TOO_LONG)


# --- values ---------------------------------------------------------------------------------------


class Inputs(NamedTuple):
    """The values of all variables of one request, for one policy and one parameter."""

    values: dict[str, Any]
    authorizer: dict[str, Any]


async def inputs_of(
    attributes: Attributes, endpoint: ResourceEndpoint, params: Any = None
) -> Inputs:
    """Return the values of the variables of a request."""
    namespace = await attributes.namespace_object()
    values = {
        "object": attributes.object(endpoint),
        "oldObject": attributes.old_object(endpoint),
        "request": request_tree(attributes, endpoint),
        "namespaceObject": None if namespace is None else _namespace_tree(namespace),
        "params": params,
    }
    return Inputs(values, authorizer_values(attributes))


def request_tree(attributes: Attributes, endpoint: ResourceEndpoint) -> dict[str, Any]:
    """Return a request as an AdmissionRequest, without its objects and its uid."""
    asked, part = attributes.endpoint, attributes.subresource
    found: dict[str, Any] = {
        "kind": _kind_tree(endpoint),
        "resource": _resource_tree(endpoint),
        "subResource": part,
        "requestKind": _kind_tree(asked),
        "requestResource": _resource_tree(asked),
        "requestSubResource": part,
        "name": attributes.name,
        "namespace": attributes.namespace,
    }
    found = {name: value for name, value in found.items() if value}
    found["operation"] = attributes.operation
    found["userInfo"] = _user_tree(attributes.user)
    found["dryRun"] = attributes.is_dry_run
    found["options"] = attributes.options or None
    return found


def _kind_tree(endpoint: ResourceEndpoint) -> dict[str, str]:
    group, version = endpoint.kind_group, endpoint.kind_version
    return {"group": group, "version": version, "kind": endpoint.kind}


def _resource_tree(endpoint: ResourceEndpoint) -> dict[str, str]:
    group, version = endpoint.group, endpoint.version
    return {"group": group, "version": version, "resource": endpoint.resource}


def _user_tree(user: User) -> dict[str, Any]:
    found = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {name: value for name, value in found.items() if value}


def _namespace_tree(namespace: Any) -> dict[str, Any]:
    """Return a namespace without its type, owners and managers."""
    tree = to_tree(namespace)
    metadata = tree.get("metadata", {})
    hidden = ("managedFields", "ownerReferences", "selfLink")
    shown = {name: value for name, value in metadata.items() if name not in hidden}
    return {"metadata": shown, "spec": tree.get("spec", {}), "status": tree.get("status", {})}


# --- match conditions -----------------------------------------------------------------------------


class Matching(NamedTuple):
    """Whether the match conditions hold, or the error of their evaluation."""

    matches: bool
    error: str = ""


def check_conditions(program: PolicyProgram, inputs: Inputs, meter: Meter) -> Matching:
    """Return whether no match condition is false; the failure policy decides about errors."""
    if not program.conditions:
        return Matching(True)
    # They see neither the namespace nor, in a policy, the endpoint that its rules matched.
    values = {**inputs.values, **inputs.authorizer, "namespaceObject": None}
    budget = MATCH_CONDITIONS_BUDGET
    evaluator = Evaluator(values, program.variables, budget=budget, meter=meter)
    errors: list[str] = []
    is_ignored = program.failure_policy == IGNORE
    try:
        answers = [evaluator.evaluate(each.compiled) for each in program.conditions]
    except OutOfBudget as error:
        return Matching(False) if is_ignored else Matching(False, str(error))
    for answer in answers:
        if answer.error:
            errors.append(answer.error)
        elif answer.value is False:
            return Matching(False)
    if not errors:
        return Matching(True)
    return Matching(False) if is_ignored else Matching(False, _aggregate(errors))


def _aggregate(errors: list[str]) -> str:
    """Return errors as Go's aggregate prints them: each once, in brackets if there are several."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


# --- validations ----------------------------------------------------------------------------------


class PolicyDecision(NamedTuple):
    """The decision of one validation of a policy."""

    is_denied: bool
    message: str = ""
    reason: str = ""


class AnnotationResult(NamedTuple):
    """The value of an audit annotation or its error; neither if it is omitted."""

    key: str
    value: str = ""
    error: str = ""


class ValidateResult(NamedTuple):
    """The decisions of a policy, one for each validation, and its audit annotations."""

    decisions: tuple[PolicyDecision, ...] = ()
    annotations: tuple[AnnotationResult, ...] = ()


def failed(program: PolicyProgram, message: str) -> ValidateResult:
    """Return the result of a policy that cannot be evaluated."""
    is_denied = program.failure_policy != IGNORE
    return ValidateResult((PolicyDecision(is_denied, message),))


def validate_policy(program: PolicyProgram, inputs: Inputs, meter: Meter) -> ValidateResult:
    """Return the result of a validating policy."""
    matching = check_conditions(program, inputs, meter)
    if matching.error:
        return failed(program, matching.error)
    if not matching.matches:
        return ValidateResult()
    with_authorizer = {**inputs.values, **inputs.authorizer}
    variables = program.variables
    evaluator = Evaluator(with_authorizer, variables, budget=BUDGET, meter=meter)
    try:
        answers = [evaluator.evaluate(each.compiled) for each in program.validations]
    except OutOfBudget as error:
        return failed(program, str(error))
    decisions = _decisions(program, answers, inputs, evaluator.budget, meter)
    annotator = Evaluator(inputs.values, variables, budget=BUDGET, meter=meter)
    try:
        found = [annotator.evaluate(each.compiled) for each in program.annotations]
    except OutOfBudget as error:
        return failed(program, str(error))
    is_ignored = program.failure_policy == IGNORE
    annotations = tuple(
        _annotation(each.key, each.expression, answer, is_ignored=is_ignored)
        for each, answer in zip(program.annotations, found, strict=True)
    )
    return ValidateResult(decisions, annotations)


def _decisions(
    program: PolicyProgram, answers: list[Answer], inputs: Inputs, budget: int, meter: Meter
) -> tuple[PolicyDecision, ...]:
    """Return the decisions; messages are evaluated with the rest of the cost budget."""
    teller = Evaluator(inputs.values, program.variables, budget=budget, meter=meter)
    messages: list[Answer | None] = [None] * len(answers)
    spent = ""
    try:
        messages = [
            None if each.message is None else teller.evaluate(each.message)
            for each in program.validations
        ]
    except OutOfBudget as error:
        spent = f"failed messageExpression: {error}"
    is_denied = program.failure_policy != IGNORE
    found = []
    for each, answer, told in zip(program.validations, answers, messages, strict=True):
        if answer.error or spent:
            found.append(PolicyDecision(is_denied, answer.error or spent))
        elif answer.value is True:
            found.append(PolicyDecision(False))
        else:
            validation = each.validation
            text = _message(told) or validation.message.strip()
            text = text or f"failed expression: {validation.expression.strip()}"
            found.append(PolicyDecision(True, text, validation.reason or "Invalid"))
    return tuple(found)


def _message(told: Answer | None) -> str:
    """Return the value of a message expression, or "" if it is unusable."""
    if told is None or told.error or not isinstance(told.value, str):
        return ""
    text = told.value.strip()
    return "" if len(text.encode()) > MESSAGE_BYTES_MAX or "\n" in text else text


def _annotation(key: str, expression: str, answer: Answer, *, is_ignored: bool) -> AnnotationResult:
    if answer.error:
        return AnnotationResult(key, error="" if is_ignored else answer.error)
    if answer.value is None:
        return AnnotationResult(key)
    if isinstance(answer.value, str):
        return AnnotationResult(key, answer.value.strip())
    return AnnotationResult(
        key,
        error=f"valueExpression '{expression}' resulted in unsupported return type: "
        f"{type(answer.value).__name__}. Return type must be either string or null.",
    )
