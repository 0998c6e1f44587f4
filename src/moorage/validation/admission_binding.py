"""Strategies of the bindings of admission policies."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api import names
from moorage.api.admissionregistration import (
    ALLOW,
    AUDIT,
    DENY,
    GROUP,
    WARN,
    MutatingAdmissionPolicyBinding,
    ParamRef,
    ValidatingAdmissionPolicyBinding,
)
from moorage.api.field_path import Path, root
from moorage.validation.admission_rules import (
    default_match_resources,
    static_suffix_warnings,
    validate_match_resources,
    validate_mutated,
    validate_static_suffix,
)
from moorage.validation.equality import both
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import each_invalid
from moorage.validation.selectors import validate_label_selector
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
ACTIONS = (AUDIT, DENY, WARN)
V1ALPHA1 = f"{GROUP}/v1alpha1"

B = TypeVar("B", ValidatingAdmissionPolicyBinding, MutatingAdmissionPolicyBinding)


class BindingStrategy(ObjectStrategy[B]):
    """What the strategies of both kinds of bindings share."""

    namespaced = False
    tracks_generation = True
    qualified_finalizers = False
    rechecks_metadata = True
    allow_unconditional_update = False

    def default(self, value: B, api_version: str, context: Context) -> B:  # noqa: ARG002
        """Complete the match resources; v1alpha1 also has a default for missing parameters."""
        spec: Any = value.spec
        ref = spec.param_ref
        if api_version == V1ALPHA1 and ref and ref.parameter_not_found_action is None:
            ref = replace(ref, parameter_not_found_action=DENY)
        match = default_match_resources(spec.match_resources)
        return replace(value, spec=replace(spec, match_resources=match, param_ref=ref))

    def validate_fields(self, new: B) -> ErrorList:
        """Validate everything but the metadata."""
        spec = new.spec
        found = self.validate_policy_name(spec.policy_name, SPEC.child("policyName"))
        found += _validate_param_ref(spec.param_ref, SPEC.child("paramRef"))
        return found + validate_match_resources(spec.match_resources, SPEC.child("matchResources"))

    def validate_policy_name(self, name: str, path: Path) -> ErrorList:
        """Validate the name of the policy."""
        return each_invalid(path, name, names.dns1123_subdomain(name)) if name else [required(path)]

    def validate(self, new: B, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = self.validate_metadata(new) + self.validate_fields(new)
        return found + validate_static_suffix(new.metadata)

    def validate_update(self, new: B, old: B, context: Context) -> ErrorList:  # noqa: ARG002
        """Validate everything."""
        found = self.validate_metadata_update(new, old)
        return found + self.validate_fields(new)

    def warnings_on_create(self, new: B) -> list[str]:  # noqa: ARG002
        """Return none."""
        return []

    def warnings_on_update(self, new: B, old: B) -> list[str]:  # noqa: ARG002
        """Warn of a reserved name."""
        return static_suffix_warnings(new.metadata)


class ValidatingBindingStrategy(BindingStrategy[ValidatingAdmissionPolicyBinding]):
    """The strategy of ValidatingAdmissionPolicyBindings."""

    def validate_policy_name(self, name: str, path: Path) -> ErrorList:
        """Validate the name of the policy, which is declared as required."""
        found = super().validate_policy_name(name, path)
        return found if name else both(found, [required(path, declared=True)])

    def validate_fields(self, new: ValidatingAdmissionPolicyBinding) -> ErrorList:
        """Validate the actions, too."""
        found = super().validate_fields(new)
        actions = new.spec.validation_actions
        found += _validate_actions(actions, SPEC.child("validationActions"))
        return sorted(found, key=lambda error: error.declared)  # declared rules come last


class MutatingBindingStrategy(BindingStrategy[MutatingAdmissionPolicyBinding]):
    """The strategy of MutatingAdmissionPolicyBindings."""

    def validate_fields(self, new: MutatingAdmissionPolicyBinding) -> ErrorList:
        """Validate that there is an object to change."""
        found = super().validate_fields(new)
        match = new.spec.match_resources
        if match is not None:
            found += validate_mutated(match, SPEC.child("matchResources"))
        return found


def _validate_actions(actions: tuple[str, ...], path: Path) -> ErrorList:
    if not actions:
        by_hand = [required(path, "at least one validation action is required")]
        return both(by_hand, [required(path, declared=True)])
    found: ErrorList = []
    for position, action in enumerate(actions):
        if action not in ACTIONS:
            found.append(not_supported(path.index(position), action, ACTIONS))
        if action in actions[:position]:
            found.append(duplicate(path.index(position), action))
    if DENY in actions and WARN in actions:
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure "
            "information in the API response and headers serves no purpose)"
        )
        found.append(invalid(path, actions, detail))
    return found


def _validate_param_ref(ref: ParamRef | None, path: Path) -> ErrorList:
    if ref is None:
        return []
    found: ErrorList = []
    exclusive = "name and selector are mutually exclusive"
    if ref.name:
        found += each_invalid(path.child("name"), ref.name, names.path_segment(ref.name))
        if ref.selector is not None:
            found.append(forbidden(path.child("name"), exclusive))
    if ref.selector is not None:
        found += validate_label_selector(ref.selector, path.child("selector"))
        if ref.name:
            found.append(forbidden(path.child("selector"), exclusive))
    if not ref.name and ref.selector is None:
        found.append(required(path, "one of name or selector must be specified"))
    action, place = ref.parameter_not_found_action, path.child("parameterNotFoundAction")
    if not action:
        found.append(required(place))
    elif action not in (DENY, ALLOW):
        found.append(not_supported(place, action, (DENY, ALLOW)))
    return found
