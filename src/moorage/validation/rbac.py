"""Strategies of roles and role bindings."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from moorage.api import names
from moorage.api.field_path import Path, root
from moorage.api.meta import LabelSelector
from moorage.api.rbac import (
    GROUP,
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.validation.equality import both
from moorage.validation.errors import ErrorList, invalid, not_supported, required
from moorage.validation.field_rules import each, each_invalid, subdomain
from moorage.validation.metadata import validate_metadata_update
from moorage.validation.selectors import selector_of, validate_label_selector
from moorage.validation.strategy import Context, ObjectStrategy

RULES = root("rules")
ROLE_REF = root("roleRef")
SUBJECTS = root("subjects")

A = TypeVar("A", Role, ClusterRole, RoleBinding, ClusterRoleBinding)
B = TypeVar("B", RoleBinding, ClusterRoleBinding)


class AccessStrategy(ObjectStrategy[A]):
    """The strategy of RBAC kinds, whose names may be any path segment."""

    validate_name = staticmethod(names.path_segment)

    def validate_update(self, new: A, old: A, context: Context) -> ErrorList:
        """Validate everything."""
        found = self.validate(new, context)
        return (
            found
            + validate_metadata_update(new.metadata, old.metadata)
            + self.validate_changes(new, old)
        )


class RoleStrategy(AccessStrategy[Role]):
    """The strategy of Roles."""

    def validate_fields(self, new: Role) -> ErrorList:
        """Validate the rules."""
        return each(new.rules or (), _validate_namespaced_rule, RULES)


class ClusterRoleStrategy(AccessStrategy[ClusterRole]):
    """The strategy of ClusterRoles."""

    namespaced = False

    def validate_fields(self, new: ClusterRole) -> ErrorList:
        """Validate the rules and the aggregation rule."""
        found = each(new.rules or (), _validate_rule, RULES)
        if new.aggregation_rule is not None:
            found += _validate_aggregation(new.aggregation_rule)
        return found


class BindingStrategy(AccessStrategy[B]):
    """The strategy of bindings of roles to subjects."""

    role_kinds: tuple[str, ...]

    def default(self, value: B, api_version: str, context: Context) -> B:  # noqa: ARG002
        """Set the API groups of role and subjects."""
        role = value.role_ref
        return replace(
            value,
            role_ref=replace(role, api_group=role.api_group or GROUP),
            subjects=tuple(map(_default_subject, value.subjects)),
        )

    def validate_fields(self, new: B) -> ErrorList:
        """Validate role and subjects."""
        found = _validate_role_ref(new.role_ref, self.role_kinds)
        check = _validate_subject if self.namespaced else _validate_cluster_subject
        return found + each(new.subjects, check, SUBJECTS)

    def validate_changes(self, new: B, old: B) -> ErrorList:
        """Validate that the role is unchanged."""
        if new.role_ref == old.role_ref:
            return []
        role = new.role_ref
        shown = {"APIGroup": role.api_group, "Kind": role.kind, "Name": role.name}
        return [invalid(ROLE_REF, shown, "field is immutable")]


class RoleBindingStrategy(BindingStrategy[RoleBinding]):
    """The strategy of RoleBindings."""

    role_kinds = ("Role", "ClusterRole")


class ClusterRoleBindingStrategy(BindingStrategy[ClusterRoleBinding]):
    """The strategy of ClusterRoleBindings."""

    namespaced = False
    role_kinds = ("ClusterRole",)


# --- rules --------------------------------------------------------------------------------


def _validate_rule(rule: PolicyRule, path: Path, *, namespaced: bool = False) -> ErrorList:
    """Validate a rule, either for resources or for non-resource URLs."""
    found = _validate_verbs(rule, path.child("verbs"))
    if rule.non_resource_urls:
        return found + _validate_urls(rule, path.child("nonResourceURLs"), namespaced=namespaced)
    if not rule.api_groups:
        detail = "resource rules must supply at least one api group"
        found.append(required(path.child("apiGroups"), detail))
    if not rule.resources:
        detail = "resource rules must supply at least one resource"
        found.append(required(path.child("resources"), detail))
    return found


def _validate_urls(rule: PolicyRule, path: Path, *, namespaced: bool) -> ErrorList:
    found: ErrorList = []
    if namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        found.append(invalid(path, rule.non_resource_urls, detail))
    if rule.api_groups or rule.resources or rule.resource_names:
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        found.append(invalid(path, rule.non_resource_urls, detail))
    return found


def _validate_namespaced_rule(rule: PolicyRule, path: Path) -> ErrorList:
    return _validate_rule(rule, path, namespaced=True)


def _validate_verbs(rule: PolicyRule, path: Path) -> ErrorList:
    if rule.verbs:
        return []
    by_hand = [required(path, "verbs must contain at least one value")]
    return both(by_hand, [required(path, declared=True)])


def _validate_aggregation(aggregation: AggregationRule) -> ErrorList:
    path = root("aggregationRule").child("clusterRoleSelectors")
    if not aggregation.cluster_role_selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [required(path, detail)]
    return each(aggregation.cluster_role_selectors, _validate_role_selector, path)


def _validate_role_selector(selector: LabelSelector, path: Path) -> ErrorList:
    found = validate_label_selector(selector, path)
    if selector_of(selector) is None:
        found.append(invalid(path, None, "invalid label selector."))
    return found


# --- bindings -----------------------------------------------------------------------------


def _default_subject(subject: Subject) -> Subject:
    if subject.api_group or subject.kind not in ("User", "Group"):
        return subject
    return replace(subject, api_group=GROUP)


def _validate_role_ref(role: RoleRef, kinds: tuple[str, ...]) -> ErrorList:
    found: ErrorList = []
    if role.api_group != GROUP:
        found.append(not_supported(ROLE_REF.child("apiGroup"), role.api_group, (GROUP,)))
    if role.kind not in kinds:
        found.append(not_supported(ROLE_REF.child("kind"), role.kind, kinds))
    path = ROLE_REF.child("name")
    if not role.name:
        return [*found, required(path, declared=True)]
    return found + each_invalid(path, role.name, names.path_segment(role.name))


def _validate_subject(subject: Subject, path: Path) -> ErrorList:
    found: ErrorList = []
    if not subject.name:
        found.append(required(path.child("name"), declared=True))
    match subject.kind:
        case "ServiceAccount":
            if subject.name:
                found += subdomain(subject.name, path.child("name"))
            group = ""
        case "User" | "Group":
            group = GROUP
        case kind:
            kinds = ("ServiceAccount", "User", "Group")
            return [*found, not_supported(path.child("kind"), kind, kinds)]
    if subject.api_group != group:
        found.append(not_supported(path.child("apiGroup"), subject.api_group, (group,)))
    return found


def _validate_cluster_subject(subject: Subject, path: Path) -> ErrorList:
    found = _validate_subject(subject, path)
    if subject.kind == "ServiceAccount" and not subject.namespace:
        found.append(required(path.child("namespace")))
    return found
