"""The strategy of ResourceQuotas: amounts of resources, and the scopes that they count for."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from moorage.api.codec import to_tree
from moorage.api.core.namespace import (
    ResourceQuota,
    ResourceQuotaSpec,
    ScopedResourceSelectorRequirement,
)
from moorage.api.core.resources import CPU, HUGE_PAGES_PREFIX, MEMORY, PODS, ResourceList
from moorage.api.field_path import Path, root
from moorage.validation.errors import ErrorList, invalid, required
from moorage.validation.go_layout import internal_form
from moorage.validation.pod.defaults import rounded
from moorage.validation.pod.resources import (
    STANDARD_RESOURCES,
    validate_amount,
    validate_resource_name,
)
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
STATUS = root("status")

_HUGE_PAGES = (HUGE_PAGES_PREFIX, f"requests.{HUGE_PAGES_PREFIX}")
_QUOTA_RESOURCES = STANDARD_RESOURCES - {"storage"}

_OF_PODS = frozenset(
    {PODS, CPU, MEMORY, "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"}
)
_OF_VOLUMES = frozenset({"persistentvolumeclaims", "requests.storage"})
# The resources that a quota with a scope can limit.
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


class ResourceQuotaStrategy(ObjectStrategy[ResourceQuota]):
    """The strategy of ResourceQuotas."""

    keeps_metadata_with_status = False

    def default(self, value: ResourceQuota, api_version: str, context: Context) -> ResourceQuota:  # noqa: ARG002
        """Round amounts up, like resources of containers."""
        spec = replace(value.spec, hard=rounded(value.spec.hard))
        status = replace(
            value.status, hard=rounded(value.status.hard), used=rounded(value.status.used)
        )
        return replace(value, spec=spec, status=status)

    def validate_fields(self, new: ResourceQuota) -> ErrorList:
        """Validate amounts and scopes."""
        found = _validate_quota(new.spec.hard, SPEC.child("hard"))
        found += _validate_scopes(new.spec, SPEC.child("scopes"))
        return found + _validate_scope_selector(
            new.spec, SPEC.child("scopeSelector", "matchExpressions")
        )

    def validate_changes(self, new: ResourceQuota, old: ResourceQuota) -> ErrorList:
        """Validate that the scopes are unchanged."""
        if set(new.spec.scopes) == set(old.spec.scopes):
            return []
        return [invalid(SPEC.child("scopes"), new.spec.scopes, "field is immutable")]

    def validate_status(self, new: ResourceQuota, old: ResourceQuota) -> ErrorList:  # noqa: ARG002
        """Validate the amounts."""
        found = _validate_quota(new.status.hard, STATUS.child("hard"))
        return found + _validate_quota(new.status.used, STATUS.child("used"))


def _validate_quota(amounts: ResourceList, path: Path) -> ErrorList:
    found: ErrorList = []
    for name, amount in amounts.items():
        found += validate_amount(name, amount, path.key(name), _validate_quota_resource)
    return found


def _validate_quota_resource(name: str, path: Path) -> ErrorList:
    found = validate_resource_name(name, path)
    if "/" in name or _is_standard_quota(name):
        return found
    return [*found, invalid(path, name, "must be a standard resource for quota")]


def _is_standard_quota(name: str) -> bool:
    return name in _QUOTA_RESOURCES or name.startswith(_HUGE_PAGES)


# --- scopes -------------------------------------------------------------------------------


def _validate_scopes(spec: ResourceQuotaSpec, path: Path) -> ErrorList:
    found: ErrorList = []
    for scope in spec.scopes:
        if scope not in _SCOPES:
            found.append(invalid(path, spec.scopes, "unsupported scope"))
        detail = "unsupported scope applied to resource"
        found += [invalid(path, spec.scopes, detail) for _ in _uncounted(scope, spec.hard)]
    return found + _validate_conflicts(spec.scopes, spec, path)


def _validate_scope_selector(spec: ResourceQuotaSpec, path: Path) -> ErrorList:
    if spec.scope_selector is None:
        return []
    found: ErrorList = []
    requirements = spec.scope_selector.match_expressions
    for requirement in requirements:
        scope = requirement.scope_name
        if scope not in _SCOPES:
            found.append(invalid(path.child("scopeName"), scope, "unsupported scope"))
        detail = "unsupported scope applied to resource"
        shown = internal_form(to_tree(spec.scope_selector), "ScopeSelector")
        found += [invalid(path, shown, detail) for _ in _uncounted(scope, spec.hard)]
        found += _validate_scope_requirement(requirement, path)
    scopes = tuple(requirement.scope_name for requirement in requirements)
    return found + _validate_conflicts(scopes, spec, path)


def _validate_scope_requirement(
    requirement: ScopedResourceSelectorRequirement, path: Path
) -> ErrorList:
    operator, scope = requirement.operator, requirement.scope_name
    place = path.child("operator")
    found: ErrorList = []
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
    """Return the resources that a quota with the scope cannot limit."""
    counted = _SCOPES.get(scope)
    if counted is None:
        return ()
    return [name for name in sorted(hard) if _is_standard_quota(name) and name not in counted]


def _validate_conflicts(scopes: tuple[str, ...], spec: ResourceQuotaSpec, path: Path) -> ErrorList:
    return [
        invalid(path, spec.scopes or None, "conflicting scopes")
        for pair in _CONFLICTS
        if pair <= set(scopes)
    ]
