"""ValidatingAdmissionPolicy: evaluates the policies that match a request.

If selectors, parameters or expressions of a policy fail, its failure policy decides. The actions of
a binding say what a failed validation does: deny the request, warn, or appear in the audit log.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.admissionregistration import AUDIT, DENY, IGNORE, WARN, AnyBinding
from moorage.api.raw_json import go_json
from moorage.apiserver.dynamic_admission.attributes import Attributes, ResourceEndpoint
from moorage.apiserver.dynamic_admission.evaluation import (
    INTERRUPTED,
    ValidateResult,
    evaluated,
    failed,
    inputs_of,
    validate_policy,
)
from moorage.apiserver.dynamic_admission.hook_source import PolicyHook
from moorage.apiserver.dynamic_admission.matching import match_request
from moorage.apiserver.dynamic_admission.params import ConfigurationError, collect_params
from moorage.apiserver.http.status import StatusCause, StatusDetails, StatusError
from moorage.cel.lang.metering import Interrupted

FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"
FAILURES_MAX = 50
ANNOTATION_BYTES_MAX = 10 * 1024

_CODES = {
    "Forbidden": HTTPStatus.FORBIDDEN,
    "Unauthorized": HTTPStatus.UNAUTHORIZED,
    "RequestEntityTooLarge": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
}


class Denial(NamedTuple):
    """Why a policy denies a request; without a binding, because its configuration is invalid."""

    policy: str
    binding: str
    message: str
    reason: str = ""


class _Findings:
    """The findings of all policies about a request."""

    def __init__(self) -> None:
        self.denials: list[Denial] = []
        self.failures: list[dict[str, Any]] = []


async def validate_by_policies(attributes: Attributes, hooks: tuple[PolicyHook, ...]) -> None:
    """Raise if a policy denies a request; record warnings and audit annotations."""
    found = _Findings()
    for hook in hooks:
        try:
            endpoint = await match_request(hook.criteria, attributes)
        except StatusError as error:
            _note_configuration(found, hook, "", error.status.message)
            continue
        if endpoint is not None:
            await _evaluate(attributes, hook, endpoint, found)
    if found.failures:
        attributes.request.annotate(FAILURE_KEY, go_json(found.failures[:FAILURES_MAX]))
    if found.denials:
        raise denied(attributes, found.denials[0])


def denied(attributes: Attributes, denial: Denial) -> StatusError:
    """Return the error for a denied request."""
    by = f" with binding '{denial.binding}'" if denial.binding else ""
    text = f"ValidatingAdmissionPolicy '{denial.policy}'{by} denied request: {denial.message}"
    status = attributes.forbidden(text).status
    reason = denial.reason or "Invalid"
    details = replace(status.details or StatusDetails(), causes=(StatusCause(message=text),))
    code = int(_CODES.get(reason, HTTPStatus.UNPROCESSABLE_ENTITY))
    return StatusError(replace(status, reason=reason, code=code, details=details))


async def _evaluate(
    attributes: Attributes, hook: PolicyHook, endpoint: ResourceEndpoint, found: _Findings
) -> None:
    annotations: dict[str, list[str]] = {}
    for binding, criteria in hook.bindings:
        name = binding.metadata.name
        try:
            if criteria is not None and await match_request(criteria, attributes) is None:
                continue
            kind, ref = hook.policy.spec.param_kind, binding.spec.param_ref
            params = await collect_params(attributes, kind, ref)
        except StatusError as error:
            _note_configuration(found, hook, name, error.status.message)
            continue
        except ConfigurationError as error:
            _note_configuration(found, hook, name, str(error))
            continue
        for param in params:
            result = await _result(attributes, hook, endpoint, param)
            _note_decisions(attributes, hook, binding, result, found)
            _note_annotations(hook, binding, result, annotations, found)
    for key, values in annotations.items():
        attributes.request.annotate(f"{hook.name}/{key}", ", ".join(values))


async def _result(
    attributes: Attributes, hook: PolicyHook, endpoint: ResourceEndpoint, param: Any
) -> ValidateResult:
    program = await hook.program(attributes)
    inputs = await inputs_of(attributes, endpoint, param)
    try:
        return await evaluated(attributes, partial(validate_policy, program, inputs))
    except Interrupted:
        return failed(program, INTERRUPTED)


def _note_configuration(found: _Findings, hook: PolicyHook, binding: str, fact: str) -> None:
    if hook.policy.spec.failure_policy == IGNORE:
        return
    noun = "binding" if binding else "policy"
    found.denials.append(Denial(hook.name, binding, f"failed to configure {noun}: {fact}"))


def _note_decisions(
    attributes: Attributes,
    hook: PolicyHook,
    binding: AnyBinding,
    result: ValidateResult,
    found: _Findings,
) -> None:
    name = binding.metadata.name
    actions: tuple[str, ...] = getattr(binding.spec, "validation_actions", ())
    for number, decision in enumerate(result.decisions):
        if not decision.is_denied:
            continue
        if DENY in actions:
            found.denials.append(Denial(hook.name, name, decision.message, decision.reason))
        if AUDIT in actions:
            failure = {
                "message": decision.message,
                "policy": binding.spec.policy_name,
                "binding": name,
                "expressionIndex": number,
                "validationActions": list(actions),
            }
            found.failures.append(failure)
        if WARN in actions:
            attributes.request.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{hook.name}' with binding "
                f"'{name}': {decision.message}"
            )


def _note_annotations(
    hook: PolicyHook,
    binding: AnyBinding,
    result: ValidateResult,
    annotations: dict[str, list[str]],
    found: _Findings,
) -> None:
    for annotation in result.annotations:
        if annotation.error:
            found.denials.append(Denial(hook.name, binding.metadata.name, annotation.error))
        elif annotation.value:
            cut = annotation.value.encode()[:ANNOTATION_BYTES_MAX].decode(errors="ignore")
            values = annotations.setdefault(annotation.key, [])
            if cut not in values:
                values.append(cut)
