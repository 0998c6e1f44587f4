"""How roles and their bindings are admitted."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from mooring.api import names
from mooring.api.fieldpath import Path, root
from mooring.api.meta import LabelSelector
from mooring.api.rbac import (
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
from mooring.validation.equality import both
from mooring.validation.errors import ErrorList, invalid, not_supported, required
from mooring.validation.field_rules import each, each_invalid, subdomain, unchanged
from mooring.validation.metadata import check_metadata_update
from mooring.validation.selectors import check_label_selector, selector_of
from mooring.validation.strategy import Context, ObjectStrategy

RULES = root("rules")
ROLE_REF = root("roleRef")
SUBJECTS = root("subjects")

A = TypeVar("A", Role, ClusterRole, RoleBinding, ClusterRoleBinding)
B = TypeVar("B", RoleBinding, ClusterRoleBinding)


class AccessStrategy(ObjectStrategy[A]):
    """Admission of what says who may do what; its names may be anything that fits into a URL."""

    check_name = staticmethod(names.path_segment)

    def validate_update(self, new: A, old: A, context: Context) -> ErrorList:
        """Check everything."""
        found = self.validate(new, context)
        return (
            found
            + check_metadata_update(new.metadata, old.metadata)
            + self.validate_changes(new, old)
        )


class RoleStrategy(AccessStrategy[Role]):
    """Admission of Roles."""

    def validate_fields(self, new: Role) -> ErrorList:
        """Check the rules."""
        return each(new.rules or (), _check_namespaced_rule, RULES)


class ClusterRoleStrategy(AccessStrategy[ClusterRole]):
    """Admission of ClusterRoles."""

    namespaced = False

    def validate_fields(self, new: ClusterRole) -> ErrorList:
        """Check the rules, and where others come from."""
        found = each(new.rules or (), _check_rule, RULES)
        if new.aggregation_rule is not None:
            found += _check_aggregation(new.aggregation_rule)
        return found


class RoleBindingStrategy(AccessStrategy[RoleBinding]):
    """Admission of RoleBindings."""

    def default(self, value: RoleBinding, api_version: str, context: Context) -> RoleBinding:
        """Set the groups of the role and of who gets it."""
        return _default_binding(value)

    def validate_fields(self, new: RoleBinding) -> ErrorList:
        """Check the role and who gets it."""
        found = _check_role_ref(new.role_ref, ("Role", "ClusterRole"))
        return found + each(new.subjects, _check_subject, SUBJECTS)

    def validate_changes(self, new: RoleBinding, old: RoleBinding) -> ErrorList:
        """Check that the role stays."""
        return unchanged(new.role_ref, old.role_ref, ROLE_REF)


class ClusterRoleBindingStrategy(AccessStrategy[ClusterRoleBinding]):
    """Admission of ClusterRoleBindings."""

    namespaced = False

    def default(
        self, value: ClusterRoleBinding, api_version: str, context: Context
    ) -> ClusterRoleBinding:
        """Set the groups of the role and of who gets it."""
        return _default_binding(value)

    def validate_fields(self, new: ClusterRoleBinding) -> ErrorList:
        """Check the role and who gets it."""
        found = _check_role_ref(new.role_ref, ("ClusterRole",))
        return found + each(new.subjects, _check_cluster_subject, SUBJECTS)

    def validate_changes(self, new: ClusterRoleBinding, old: ClusterRoleBinding) -> ErrorList:
        """Check that the role stays."""
        return unchanged(new.role_ref, old.role_ref, ROLE_REF)


# --- rules --------------------------------------------------------------------------------


def _check_rule(rule: PolicyRule, path: Path, *, namespaced: bool = False) -> ErrorList:
    """Check a rule, which is about resources or about paths."""
    found = _check_verbs(rule, path.child("verbs"))
    if rule.non_resource_urls:
        return found + _check_urls(rule, path.child("nonResourceURLs"), namespaced=namespaced)
    if not rule.api_groups:
        detail = "resource rules must supply at least one api group"
        found.append(required(path.child("apiGroups"), detail))
    if not rule.resources:
        detail = "resource rules must supply at least one resource"
        found.append(required(path.child("resources"), detail))
    return found


def _check_urls(rule: PolicyRule, path: Path, *, namespaced: bool) -> ErrorList:
    found: ErrorList = []
    if namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        found.append(invalid(path, rule.non_resource_urls, detail))
    if rule.api_groups or rule.resources or rule.resource_names:
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        found.append(invalid(path, rule.non_resource_urls, detail))
    return found


def _check_namespaced_rule(rule: PolicyRule, path: Path) -> ErrorList:
    return _check_rule(rule, path, namespaced=True)


def _check_verbs(rule: PolicyRule, path: Path) -> ErrorList:
    if rule.verbs:
        return []
    by_hand = [required(path, "verbs must contain at least one value")]
    return both(by_hand, [required(path, declared=True)])


def _check_aggregation(aggregation: AggregationRule) -> ErrorList:
    path = root("aggregationRule").child("clusterRoleSelectors")
    if not aggregation.cluster_role_selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [required(path, detail)]
    return each(aggregation.cluster_role_selectors, _check_role_selector, path)


def _check_role_selector(selector: LabelSelector, path: Path) -> ErrorList:
    found = check_label_selector(selector, path)
    if selector_of(selector) is None:
        found.append(invalid(path, None, "invalid label selector."))
    return found


# --- bindings -----------------------------------------------------------------------------


def _default_binding(binding: B) -> B:
    role = binding.role_ref
    return replace(
        binding,
        role_ref=replace(role, api_group=role.api_group or GROUP),
        subjects=tuple(map(_default_subject, binding.subjects)),
    )


def _default_subject(subject: Subject) -> Subject:
    if subject.api_group or subject.kind not in ("User", "Group"):
        return subject
    return replace(subject, api_group=GROUP)


def _check_role_ref(role: RoleRef, kinds: tuple[str, ...]) -> ErrorList:
    found: ErrorList = []
    if role.api_group != GROUP:
        found.append(not_supported(ROLE_REF.child("apiGroup"), role.api_group, (GROUP,)))
    if role.kind not in kinds:
        found.append(not_supported(ROLE_REF.child("kind"), role.kind, kinds))
    path = ROLE_REF.child("name")
    if not role.name:
        return [*found, required(path, declared=True)]
    return found + each_invalid(path, role.name, names.path_segment(role.name))


def _check_subject(subject: Subject, path: Path) -> ErrorList:
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


def _check_cluster_subject(subject: Subject, path: Path) -> ErrorList:
    found = _check_subject(subject, path)
    if subject.kind == "ServiceAccount" and not subject.namespace:
        found.append(required(path.child("namespace")))
    return found
