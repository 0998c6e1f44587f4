"""Table printers of admissionregistration.k8s.io."""

from __future__ import annotations

from moorage.api.admissionregistration import (
    AnyBinding,
    AnyWebhookConfiguration,
    MutatingAdmissionPolicy,
    ParamKind,
    ParamRef,
    ValidatingAdmissionPolicy,
)
from moorage.api.timestamp import Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    NAME,
    Cell,
    Printer,
    age,
    number,
    selector_text,
    text,
)

_UNSET = "<unset>"
_PARAM_KIND = text("ParamKind", "Kind of the parameters.")


def _kind(kind: ParamKind | None) -> str:
    return _UNSET if kind is None else f"{kind.api_version}/{kind.kind}"


def _reference(ref: ParamRef | None) -> str:
    if ref is None:
        return _UNSET
    if ref.name:
        return f"{ref.namespace or '*'}/{ref.name}"
    return _UNSET if ref.selector is None else selector_text(ref.selector)


def _validating_policy(value: ValidatingAdmissionPolicy, now: Timestamp) -> list[Cell]:
    spec, metadata = value.spec, value.metadata
    made = age(metadata.creation_timestamp, now)
    return [metadata.name, len(spec.validations), _kind(spec.param_kind), made]


def _mutating_policy(value: MutatingAdmissionPolicy, now: Timestamp) -> list[Cell]:
    spec, metadata = value.spec, value.metadata
    made = age(metadata.creation_timestamp, now)
    return [metadata.name, len(spec.mutations), _kind(spec.param_kind), made]


def _binding(value: AnyBinding, now: Timestamp) -> list[Cell]:
    spec, metadata = value.spec, value.metadata
    made = age(metadata.creation_timestamp, now)
    return [metadata.name, spec.policy_name, _reference(spec.param_ref), made]


def _webhooks(value: AnyWebhookConfiguration, now: Timestamp) -> list[Cell]:
    metadata = value.metadata
    return [metadata.name, len(value.webhooks), age(metadata.creation_timestamp, now)]


VALIDATING_POLICY = Printer(
    (NAME, number("Validations", "Number of validations."), _PARAM_KIND, AGE), _validating_policy
)
MUTATING_POLICY = Printer(
    (NAME, number("Mutations", "Number of mutations."), _PARAM_KIND, AGE), _mutating_policy
)
POLICY_BINDING = Printer(
    (
        NAME,
        text("PolicyName", "Policy that is put into force."),
        text("ParamRef", "Parameters of the policy."),
        AGE,
    ),
    _binding,
)
WEBHOOKS = Printer((NAME, number("Webhooks", "Number of webhooks."), AGE), _webhooks)
