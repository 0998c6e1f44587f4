"""How ResourceQuotas are admitted: names of resources, amounts, scopes."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core.namespace import (
    ResourceQuota,
    ResourceQuotaSpec,
    ScopedResourceSelectorRequirement,
)
from mooring.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, PODS, ResourceList
from mooring.api.fieldpath import Path, root
from mooring.validation.errors import Errors, invalid, required
from mooring.validation.ordinary import OrdinaryStrategy
from mooring.validation.pod.resources import STANDARD_RESOURCES, check_amount, check_resource_name

SPEC = root("spec")
STATUS = root("status")

_HUGE_PAGES = (HUGE_PAGES_PREFIX, f"requests.{HUGE_PAGES_PREFIX}")
_QUOTA_RESOURCES = STANDARD_RESOURCES - {"storage"}

_OF_PODS = frozenset(
    {PODS, CPU, MEMORY, "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
_OF_VOLUMES = frozenset({"persistentvolumeclaims", "requests.storage"})
# What quotas with a scope can count.
_SCOPES = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "BestEffort": frozenset({PODS}),
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "VolumeAttributesClass": _OF_VOLUMES,
}
_WITH_VALUES = ("PriorityClass", "VolumeAttributesClass")
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})

_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class ResourceQuotaStrategy(OrdinaryStrategy[ResourceQuota]):
    """Admission of ResourceQuotas."""

    def rules(self, new: ResourceQuota) -> Errors:
        """Check amounts and scopes."""
        found = _check_amounts(new.spec.hard, SPEC.child("hard"))
        found += _check_scopes(new.spec, SPEC.child("scopes"))
        return found + _check_selector(new.spec, SPEC.child("scopeSelector", "matchExpressions"))

    def changes(self, new: ResourceQuota, old: ResourceQuota) -> Errors:
        """Check that the scopes stay."""
        if set(new.spec.scopes) == set(old.spec.scopes):
            return []
        return [invalid(SPEC.child("scopes"), new.spec.scopes, "field is immutable")]

    def status_rules(self, new: ResourceQuota, old: ResourceQuota) -> Errors:  # noqa: ARG002
        """Check the amounts."""
        found = _check_amounts(new.status.hard, STATUS.child("hard"))
        return found + _check_amounts(new.status.used, STATUS.child("used"))


def _check_amounts(amounts: ResourceList, path: Path) -> Errors:
    found: Errors = []
    for name, amount in amounts.items():
        found += check_amount(name, amount, path.key(name), _check_name)
    return found


def _check_name(name: str, path: Path) -> Errors:
    found = check_resource_name(name, path)
    if "/" in name or _is_standard(name):
        return found
    return [*found, invalid(path, name, "must be a standard resource for quota")]


def _is_standard(name: str) -> bool:
    return name in _QUOTA_RESOURCES or name.startswith(_HUGE_PAGES)


# --- scopes -------------------------------------------------------------------------------


def _check_scopes(spec: ResourceQuotaSpec, path: Path) -> Errors:
    found: Errors = []
    for scope in spec.scopes:
        if scope not in _SCOPES:
            found.append(invalid(path, spec.scopes, "unsupported scope"))
        detail = "unsupported scope applied to resource"
        found += [invalid(path, spec.scopes, detail) for _ in _uncounted(scope, spec.hard)]
    return found + _check_conflicts(spec.scopes, spec, path)


def _check_selector(spec: ResourceQuotaSpec, path: Path) -> Errors:
    if spec.scope_selector is None:
        return []
    found: Errors = []
    requirements = spec.scope_selector.match_expressions
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in _SCOPES:
            found.append(invalid(path.child("scopeName"), scope, "unsupported scope"))
        detail = "unsupported scope applied to resource"
        found += [invalid(path, spec.scope_selector, detail) for _ in _uncounted(scope, spec.hard)]
        found += _check_requirement(requirement, path)
    scopes = tuple(requirement.scope_name for requirement in requirements)
    return found + _check_conflicts(scopes, spec, path)


def _check_requirement(requirement: ScopedResourceSelectorRequirement, path: Path) -> Errors:
    operator, scope = requirement.operator, requirement.scope_name
    place = path.child("operator")
    found: Errors = []
    if scope in _SCOPES and scope not in _WITH_VALUES and operator != "Exists":
        found.append(invalid(place, operator, _MUST_EXIST))
    values = path.child("values")
    match operator:
        case "In" | "NotIn" if not requirement.values:
            detail = (
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
            found.append(required(values, detail))
        case "Exists" | "DoesNotExist" if requirement.values:
            detail = (
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            )
            found.append(invalid(values, requirement.values, detail))
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            pass
        case _:
            found.append(invalid(place, operator, "not a valid selector operator"))
    return found


def _uncounted(scope: str, hard: ResourceList) -> Iterable[str]:
    """Return the resources that a quota with the scope cannot count."""
    counted = _SCOPES.get(scope)
    if counted is None:
        return ()
    return [name for name in sorted(hard) if _is_standard(name) and name not in counted]


def _check_conflicts(scopes: tuple[str, ...], spec: ResourceQuotaSpec, path: Path) -> Errors:
    return [
        invalid(path, spec.scopes or None, "conflicting scopes")
        for pair in _CONFLICTS
        if pair <= set(scopes)
    ]
