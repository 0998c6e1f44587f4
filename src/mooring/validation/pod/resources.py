"""Rules for what containers and pods ask for: node resources, and claims of the pod."""

from __future__ import annotations

from collections.abc import Callable, Collection

from mooring.api import names
from mooring.api.core.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    ContainerClaim,
    ResourceList,
    ResourceRequirements,
)
from mooring.api.errors import QuantityError
from mooring.api.fieldpath import Path
from mooring.api.quantity import Quantity
from mooring.validation.checks import NEGATIVE, each_invalid, label
from mooring.validation.errors import (
    Errors,
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

_COUNTED = {
    "configmaps", "persistentvolumeclaims", PODS, "replicationcontrollers", "resourcequotas",
    "secrets", "services", "services.loadbalancers", "services.nodeports",
}  # fmt: skip
STANDARD_RESOURCES = _COUNTED | {
    CPU, MEMORY, EPHEMERAL_STORAGE, "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory", "requests.storage", "storage",
}  # fmt: skip

NameCheck = Callable[[str, Path], Errors]


def check_container_resources(
    resources: ResourceRequirements, path: Path, pod_claims: Collection[str]
) -> Errors:
    """Check what a container asks for."""
    found = _check_amounts(resources, path, _check_container_resource_name)
    return found + check_container_claims(resources.claims, path.child("claims"), pod_claims)


def check_pod_resources(
    resources: ResourceRequirements, path: Path, pod_claims: Collection[str]
) -> Errors:
    """Check what a pod asks for as a whole, which cannot be claims."""
    found: Errors = []
    if resources.claims:
        detail = "claims may not be set for Resources at pod-level"
        found.append(forbidden(path.child("claims"), detail))
    found += _check_amounts(resources, path, _check_pod_resource_name)
    return found + check_container_claims(resources.claims, path.child("claims"), pod_claims)


def is_node_allocatable(name: str) -> bool:
    """Tell whether devices can stand for the node resource."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


# --- claims -------------------------------------------------------------------------------


def check_container_claims(
    claims: tuple[ContainerClaim, ...], path: Path, pod_claims: Collection[str]
) -> Errors:
    """Check that a container uses claims of its pod, and no claim or request twice."""
    found: Errors = []
    seen: set[str] = set()  # `claim`, or `claim/request`
    for position, claim in enumerate(claims):
        place = path.index(position)
        if not claim.name:
            found.append(required(place))
            continue
        found += _check_claim_use(claim, place, seen)
        if claim.name not in pod_claims:
            found.append(_unknown_claim(claim.name, place, pod_claims))
    return found


def _check_claim_use(claim: ContainerClaim, path: Path, seen: set[str]) -> Errors:
    if claim.name in seen:
        return [duplicate(path, claim.name)]
    found: Errors = []
    use = claim.name
    if claim.request:
        found += label(claim.request, path.child("request"))
        use = f"{claim.name}/{claim.request}"
    if use in seen:
        found.append(duplicate(path, use))
    elif not claim.request:
        # One error for each request of the claim that is used already, as Kubernetes has it.
        overlaps = (other for other in seen if other.partition("/")[0] == claim.name)
        found += [duplicate(path, claim.name) for _ in overlaps]
    seen.add(use)
    return found


def _unknown_claim(name: str, path: Path, pod_claims: Collection[str]) -> FieldError:
    known = f": {', '.join(sorted(pod_claims))}" if pod_claims else " which is empty"
    detail = f"must be one of the names in pod.spec.resourceClaims{known}"
    return FieldError(ErrorType.NOT_FOUND, path, detail, name)


# --- amounts ------------------------------------------------------------------------------


def _check_amounts(resources: ResourceRequirements, path: Path, check_name: NameCheck) -> Errors:
    found = _check_list(resources.limits, path.child("limits"), check_name)
    requests_path = path.child("requests")
    for name, amount in resources.requests.items():
        found += check_amount(name, amount, requests_path.key(name), check_name)
        found += _check_request(name, amount, resources.limits, path)
        found += _check_huge_pages(name, amount, requests_path.key(name))
    asked = resources.limits.keys() | resources.requests.keys()
    if any(n.startswith(HUGE_PAGES_PREFIX) for n in asked) and not asked & {CPU, MEMORY}:
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return found


def _check_list(amounts: ResourceList, path: Path, check_name: NameCheck) -> Errors:
    found: Errors = []
    for name, amount in amounts.items():
        found += check_amount(name, amount, path.key(name), check_name)
        found += _check_huge_pages(name, amount, path.key(name))
    return found


def check_amount(name: str, amount: Quantity, path: Path, check_name: NameCheck) -> Errors:
    """Check the amount of a resource: a name that is known, and not less than nothing."""
    found = check_name(name, path)
    if amount.sign < 0:
        found.append(invalid(path, str(amount), NEGATIVE))
    is_counted = name in _COUNTED or names.is_extended_resource(name)
    if is_counted and amount.milli_value % 1000:
        found.append(invalid(path, amount, "must be an integer"))
    return found


def _check_request(name: str, amount: Quantity, limits: ResourceList, path: Path) -> Errors:
    """Check a request against its limit, which only native resources may exceed or lack."""
    limit = limits.get(name)
    may_differ = _is_native(name) and not name.startswith(HUGE_PAGES_PREFIX)
    if limit is None:
        detail = "Limit must be set for non overcommitable resources"
        return [] if may_differ else [required(path.child("limits"), detail)]
    if not may_differ and amount != limit:
        detail = f"must be equal to {name} limit of {limit}"
    elif amount > limit:
        detail = f"must be less than or equal to {name} limit of {limit}"
    else:
        return []
    return [invalid(path.child("requests"), str(amount), detail)]


def _check_huge_pages(name: str, amount: Quantity, path: Path) -> Errors:
    if not name.startswith(HUGE_PAGES_PREFIX) or _is_whole_pages(name, amount):
        return []
    return [invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")]


def _is_whole_pages(name: str, amount: Quantity) -> bool:
    try:
        size = Quantity.parse(name.removeprefix(HUGE_PAGES_PREFIX))
    except QuantityError:
        return False
    return size.sign > 0 and size.milli_value % 1000 == 0 and amount.value % size.value == 0


# --- names --------------------------------------------------------------------------------


def _check_container_resource_name(name: str, path: Path) -> Errors:
    found = check_resource_name(name, path)
    if "/" not in name:
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not name.startswith(HUGE_PAGES_PREFIX):
            found.append(invalid(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not names.is_extended_resource(name):
        found.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def _check_pod_resource_name(name: str, path: Path) -> Errors:
    found = check_resource_name(name, path)
    if not found and not is_node_allocatable(name):
        found.append(not_supported(path, name, [CPU, HUGE_PAGES_PREFIX, MEMORY]))
    return found


def check_resource_name(name: str, path: Path) -> Errors:
    """Check the name of a resource, of whatever it is."""
    found = each_invalid(path, name, names.label_name(name))
    if found or "/" in name or name in STANDARD_RESOURCES:
        return found
    if name.startswith((HUGE_PAGES_PREFIX, f"requests.{HUGE_PAGES_PREFIX}")):
        return []
    return [invalid(path, name, "must be a standard resource type or fully qualified")]


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name
