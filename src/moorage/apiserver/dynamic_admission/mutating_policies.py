"""MutatingAdmissionPolicy: changes objects with apply configurations and JSON patches.

All policies that match a request are collected first; then each changes the object in turn. A
policy that fails rejects the request, unless its failure policy is Ignore.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.admissionregistration import (
    IF_NEEDED,
    IGNORE,
    AnyBinding,
    MutatingAdmissionPolicySpec,
)
from moorage.apiserver.dynamic_admission.attributes import Attributes, ResourceEndpoint
from moorage.apiserver.dynamic_admission.evaluation import (
    INTERRUPTED,
    Inputs,
    check_conditions,
    evaluated,
    inputs_of,
)
from moorage.apiserver.dynamic_admission.hook_source import PolicyHook
from moorage.apiserver.dynamic_admission.matching import match_request
from moorage.apiserver.dynamic_admission.mutated_objects import (
    MutationError,
    applied_tree,
    patched_tree,
    shape_for,
    take_tree,
)
from moorage.apiserver.dynamic_admission.params import ConfigurationError, collect_params
from moorage.apiserver.dynamic_admission.policy_programs import PolicyProgram
from moorage.apiserver.dynamic_admission.reinvocation import ReinvocationContext
from moorage.apiserver.http.status import StatusCause, StatusDetails, StatusError
from moorage.apiserver.patching.shapes import Shape
from moorage.cel.admission import BUDGET, Evaluator, OutOfBudget
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.metering import Interrupted, Meter
from moorage.cel.mutation_types import ObjectValue, as_json, mismatched_types
from moorage.kit.go_quote import go_quote


class PolicyInvocation(NamedTuple):
    """A policy with one binding and one parameter, in the version that its rules matched."""

    hook: PolicyHook
    binding: AnyBinding
    endpoint: ResourceEndpoint
    param: Any

    @property
    def key(self) -> tuple[str, ...]:
        """The identity of the invocation in the second round."""
        metadata = {} if self.param is None else self.param.get("metadata", {})
        where = metadata.get("namespace", ""), metadata.get("name", "")
        return self.hook.name, self.binding.metadata.name, *where

    @property
    def runs_again(self) -> bool:
        """Whether it may run again after others."""
        spec = self.hook.policy.spec
        return (
            isinstance(spec, MutatingAdmissionPolicySpec) and spec.reinvocation_policy == IF_NEEDED
        )


class _PolicyError(NamedTuple):
    """Why a policy rejects a request."""

    hook: PolicyHook
    binding: str
    message: str
    reason: str = ""

    @property
    def text(self) -> str:
        """The message with the policy and the binding."""
        if not self.binding:
            return f"policy {go_quote(self.hook.name)} denied request: {self.message}"
        by = f"policy '{self.hook.name}' with binding '{self.binding}'"
        return f"{by} denied request: {self.message}"


async def mutate_by_policies(
    attributes: Attributes, hooks: tuple[PolicyHook, ...], context: ReinvocationContext
) -> None:
    """Change the object of a request, or raise the error that rejects it."""
    errors: list[_PolicyError] = []
    invocations: list[PolicyInvocation] = []
    for hook in hooks:
        try:
            endpoint = await match_request(hook.criteria, attributes)
        except StatusError as error:
            fact = f"failed to configure policy: {error.status.message}"
            errors.append(_PolicyError(hook, "", fact))
            continue
        if endpoint is not None:
            invocations += await _invocations(attributes, hook, endpoint, errors)
    context.begin(attributes.new)
    for invocation in invocations:
        await _invoke(attributes, invocation, context, errors)
    context.end(attributes.new)
    told = [error for error in errors if error.hook.policy.spec.failure_policy != IGNORE]
    if told:
        raise _denied(attributes, told)


async def _invocations(
    attributes: Attributes, hook: PolicyHook, endpoint: ResourceEndpoint, errors: list[_PolicyError]
) -> list[PolicyInvocation]:
    found: list[PolicyInvocation] = []
    for binding, criteria in hook.bindings:
        try:
            if criteria is not None and await match_request(criteria, attributes) is None:
                continue
            kind, ref = hook.policy.spec.param_kind, binding.spec.param_ref
            params = await collect_params(attributes, kind, ref)
        except (StatusError, ConfigurationError) as error:
            fact = error.status.message if isinstance(error, StatusError) else str(error)
            text = f"failed to configure binding: {fact}"
            errors.append(_PolicyError(hook, binding.metadata.name, text))
            continue
        found += [PolicyInvocation(hook, binding, endpoint, param) for param in params]
    return found


def _denied(attributes: Attributes, errors: list[_PolicyError]) -> StatusError:
    status = attributes.forbidden("").status
    causes = tuple(StatusCause(message=error.text) for error in errors)
    first = errors[0]
    return StatusError(
        replace(
            status,
            message=first.text,
            reason=first.reason or status.reason,
            details=replace(status.details or StatusDetails(), causes=causes),
        )
    )


async def _invoke(
    attributes: Attributes,
    invocation: PolicyInvocation,
    context: ReinvocationContext,
    errors: list[_PolicyError],
) -> None:
    """Apply a policy to the object; after a failure, its other mutations are still applied."""
    hook, endpoint = invocation.hook, invocation.endpoint
    program = await hook.program(attributes)
    inputs = await inputs_of(attributes, endpoint, invocation.param)

    def note(message: str) -> None:
        name = invocation.binding.metadata.name
        errors.append(_PolicyError(hook, name, message, "Invalid"))

    try:
        matching = await evaluated(attributes, partial(check_conditions, program, inputs))
    except Interrupted:
        note(INTERRUPTED)
        return
    if matching.error:
        note(matching.error)
    if not matching.matches or not context.may_run(invocation.key):
        return
    before = attributes.new
    shape = shape_for(attributes, endpoint)
    for number in range(len(program.mutations)):
        inputs = await inputs_of(attributes, endpoint, invocation.param)
        try:
            step = partial(_mutated, program, number, inputs, shape, endpoint)
            tree = await evaluated(attributes, step)
            if tree is not None:
                take_tree(
                    attributes, endpoint, tree, is_strict=program.mutations[number].is_json_patch
                )
        except MutationError as error:
            note(str(error))
        except Interrupted:
            note(INTERRUPTED)
    is_changed = attributes.new != before
    context.note(invocation.key, is_changed=is_changed, if_needed=invocation.runs_again)


def _mutated(
    program: PolicyProgram,
    number: int,
    inputs: Inputs,
    shape: Shape,
    endpoint: ResourceEndpoint,
    meter: Meter,
) -> Any | None:
    """Return the tree after one mutation, or None if nothing changes; raises MutationError."""
    mutation = program.mutations[number]
    if mutation.compiled.error:
        raise MutationError(mutation.compiled.error)
    values = {**inputs.values, **inputs.authorizer}
    evaluator = Evaluator(values, program.variables, budget=BUDGET, meter=meter)
    try:
        answer = evaluator.evaluate(mutation.compiled)
        if answer.error:
            raise MutationError(answer.error)
        _check_types(answer.value, is_json_patch=mutation.is_json_patch)
        live = inputs.values["object"]
        if mutation.is_json_patch:
            try:
                return patched_tree(live, [_operation(each) for each in answer.value])
            except MutationError as error:
                raise MutationError(f"JSON Patch: {error}") from None
        return applied_tree(shape, endpoint, live, as_json(answer.value))
    except (OutOfBudget, EvalError) as error:
        raise MutationError(str(error)) from None


def _check_types(value: Any, *, is_json_patch: bool) -> None:
    values = [each.get("value") for each in value] if is_json_patch else [value]
    objects = (each for each in values if isinstance(each, ObjectValue))
    errors = [fact for each in objects for fact in mismatched_types(each)]
    if errors:
        raise MutationError("type mismatch: " + "\n".join(errors))


def _operation(patch: dict[str, Any]) -> dict[str, Any]:
    """Return an operation of a JSON patch."""
    found = {"op": patch.get("op", ""), "path": patch.get("path", "")}
    if patch.get("from"):
        found["from"] = patch["from"]
    if "value" in patch:
        try:
            found["value"] = as_json(patch["value"])
        except EvalError as error:
            fact = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
            raise MutationError(f"{fact}: {error}") from None
    return found
