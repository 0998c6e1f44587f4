"""Strategies of admission policies, and the list of those of their whole API group."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api import names
from moorage.api.admissionregistration import (
    FAIL,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicySpec,
    ParamKind,
    TypeChecking,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicySpec,
)
from moorage.api.field_path import Path, root
from moorage.cel.admission import AdmissionCompiler
from moorage.cel.library.strings import FORMATS
from moorage.validation.admission_binding import MutatingBindingStrategy, ValidatingBindingStrategy
from moorage.validation.admission_rules import (
    FAILURE_POLICIES,
    REINVOCATION_POLICIES,
    default_match_resources,
    required_word,
    static_suffix_warnings,
    validate_match_conditions,
    validate_match_resources,
    validate_mutated,
    validate_static_suffix,
)
from moorage.validation.admission_webhook import MutatingWebhookStrategy, ValidatingWebhookStrategy
from moorage.validation.errors import (
    ErrorList,
    invalid,
    required,
)
from moorage.validation.metadata import validate_conditions, validate_metadata_update
from moorage.validation.policy_expressions import (
    PolicyExpressions,
    validate_audit_annotations,
    validate_mutation,
    validate_validation,
    validate_variable,
)
from moorage.validation.strategy import Context, ObjectStrategy, Strategy

SPEC = root("spec")
STATUS = root("status")

P = TypeVar("P", ValidatingAdmissionPolicy, MutatingAdmissionPolicy)


class PolicyStrategy(ObjectStrategy[P]):
    """What the strategies of both kinds of policies share."""

    namespaced = False
    tracks_generation = True
    qualified_finalizers = False
    rechecks_metadata = True
    allow_unconditional_update = False

    def default(self, value: P, api_version: str, context: Context) -> P:  # noqa: ARG002
        """Set the failure policy, and complete the match constraints."""
        spec: Any = value.spec
        failure = FAIL if spec.failure_policy is None else spec.failure_policy
        match = default_match_resources(spec.match_constraints)
        return replace(value, spec=replace(spec, failure_policy=failure, match_constraints=match))

    def validate_policy(self, new: P, old: P | None) -> ErrorList:
        """Return the errors of a policy besides those of its metadata."""
        raise NotImplementedError

    def validate(self, new: P, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = self.validate_metadata(new) + self.validate_policy(new, None)
        return found + validate_static_suffix(new.metadata)

    def validate_update(self, new: P, old: P, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything; what was stored may use newer functions."""
        found = self.validate_metadata_update(new, old)
        return found + self.validate_policy(new, old)

    def warnings_on_create(self, new: P) -> list[str]:  # noqa: ARG002
        """Return none."""
        return []

    def warnings_on_update(self, new: P, old: P) -> list[str]:  # noqa: ARG002
        """Warn of a reserved name."""
        return static_suffix_warnings(new.metadata)


class ValidatingPolicyStrategy(PolicyStrategy[ValidatingAdmissionPolicy]):
    """The strategy of ValidatingAdmissionPolicies."""

    def validate_policy(
        self, new: ValidatingAdmissionPolicy, old: ValidatingAdmissionPolicy | None
    ) -> ErrorList:
        """Return the errors of a policy besides those of its metadata."""
        spec = new.spec
        expressions = PolicyExpressions(
            AdmissionCompiler(composes=bool(spec.variables)),
            spec.param_kind is not None,
            _stored_validations(old),
        )
        found = _validate_common(spec, None if old is None else old.spec, expressions)
        if not spec.validations and not spec.audit_annotations:
            detail = "validations or auditAnnotations must contain at least one item"
            found.append(required(SPEC.child("validations"), detail))
            found.append(required(SPEC.child("auditAnnotations"), detail))
            return found
        for position, validation in enumerate(spec.validations):
            path = SPEC.child("validations").index(position)
            found += validate_validation(validation, path, expressions)
        return found + validate_audit_annotations(new.metadata, spec, expressions)

    def validate_status_update(
        self,
        new: ValidatingAdmissionPolicy,
        old: ValidatingAdmissionPolicy,
        context: Context,  # noqa: ARG002
    ) -> ErrorList:
        """Validate type checking and conditions."""
        found = validate_metadata_update(new.metadata, old.metadata)
        found += _validate_type_checking(new.status.type_checking)
        return found + validate_conditions(new.status.conditions, STATUS.child("conditions"))


class MutatingPolicyStrategy(PolicyStrategy[MutatingAdmissionPolicy]):
    """The strategy of MutatingAdmissionPolicies."""

    def validate_policy(
        self, new: MutatingAdmissionPolicy, old: MutatingAdmissionPolicy | None
    ) -> ErrorList:
        """Return the errors of a policy besides those of its metadata."""
        spec = new.spec
        stored = () if old is None else old.spec.mutations
        expressions = PolicyExpressions(
            AdmissionCompiler(),
            spec.param_kind is not None,
            frozenset(
                each.apply_configuration.expression for each in stored if each.apply_configuration
            ),
        )
        found = _validate_common(spec, None if old is None else old.spec, expressions)
        if not spec.mutations:
            detail = "mutations must contain at least one item"
            found.append(required(SPEC.child("mutations"), detail))
        for position, mutation in enumerate(spec.mutations):
            path = SPEC.child("mutations").index(position)
            found += validate_mutation(mutation, path, expressions)
        policy = spec.reinvocation_policy or None
        return found + required_word(
            policy, REINVOCATION_POLICIES, SPEC.child("reinvocationPolicy")
        )


def _stored_validations(old: ValidatingAdmissionPolicy | None) -> frozenset[str]:
    if old is None:
        return frozenset()
    spec = old.spec
    return frozenset(
        (
            *(each.expression for each in spec.validations),
            *(each.message_expression for each in spec.validations),
            *(each.value_expression for each in spec.audit_annotations),
        )
    )


def _validate_common(
    spec: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec,
    old: ValidatingAdmissionPolicySpec | MutatingAdmissionPolicySpec | None,
    expressions: PolicyExpressions,
) -> ErrorList:
    """Validate what both kinds of policies have; mutating ones are for fewer operations."""
    found = required_word(spec.failure_policy, FAILURE_POLICIES, SPEC.child("failurePolicy"))
    if spec.param_kind is not None:
        found += _validate_param_kind(spec.param_kind, SPEC.child("paramKind"))
    place = SPEC.child("matchConstraints")
    if spec.match_constraints is None:
        found.append(required(place))
    else:
        found += validate_match_resources(spec.match_constraints, place)
        if not spec.match_constraints.resource_rules:
            found.append(required(place.child("resourceRules")))
        if isinstance(spec, MutatingAdmissionPolicySpec):
            found += validate_mutated(spec.match_constraints, place)
    is_same = old is not None and (spec.param_kind, spec.match_conditions) == (
        old.param_kind,
        old.match_conditions,
    )
    if not is_same:
        stored = () if old is None else old.match_conditions
        found += validate_match_conditions(
            spec.match_conditions,
            SPEC.child("matchConditions"),
            has_params=expressions.has_params,
            preexisting=frozenset(each.expression for each in stored),
        )
    for position, variable in enumerate(spec.variables):
        found += validate_variable(variable, SPEC.child("variables").index(position), expressions)
    return found


def _validate_param_kind(kind: ParamKind, path: Path) -> ErrorList:
    found = _validate_api_version(kind.api_version, path.child("apiVersion"))
    if not kind.kind:
        return [*found, required(path.child("kind"))]
    if faults := FORMATS["dns1035Label"].check(names.lowered(kind.kind)):
        words = "may have mixed case, but should otherwise match: "
        found.append(invalid(path.child("kind"), kind.kind, words + ",".join(faults)))
    return found


def _validate_api_version(text: str, path: Path) -> ErrorList:
    if not text:
        return [required(path)]
    if text.count("/") > 1:
        return [invalid(path, text, f"unexpected GroupVersion string: {text}")]
    group, _, version = text.rpartition("/")
    found: ErrorList = []
    if group and (faults := names.dns1123_subdomain(group)):
        found.append(invalid(path, group, ",".join(faults)))
    if not version:
        found.append(invalid(path, text, "version must be specified"))
    elif faults := FORMATS["dns1035Label"].check(version):
        found.append(invalid(path, version, ",".join(faults)))
    return found


def _validate_type_checking(checking: TypeChecking | None) -> ErrorList:
    found: ErrorList = []
    for position, warning in enumerate(() if checking is None else checking.expression_warnings):
        path = STATUS.child("typeChecking", "expressionWarnings").index(position)
        if not warning.warning:
            found.append(required(path.child("warning")))
        if not warning.field_ref.strip():
            found.append(required(path.child("fieldRef")))
    return found


ADMISSION_STRATEGIES: dict[str, Strategy[Any]] = {
    "MutatingAdmissionPolicy": MutatingPolicyStrategy(),
    "MutatingAdmissionPolicyBinding": MutatingBindingStrategy(),
    "MutatingWebhookConfiguration": MutatingWebhookStrategy(),
    "ValidatingAdmissionPolicy": ValidatingPolicyStrategy(),
    "ValidatingAdmissionPolicyBinding": ValidatingBindingStrategy(),
    "ValidatingWebhookConfiguration": ValidatingWebhookStrategy(),
}
