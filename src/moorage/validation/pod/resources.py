"""Rules of the resources of containers and pods: requests, limits, claims, QoS classes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from moorage.api import names
from moorage.api.core.pod import Container, Pod, PodSpec, resources_at_once
from moorage.api.core.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    PODS,
    ContainerClaim,
    ResourceList,
    ResourceRequirements,
)
from moorage.api.errors import QuantityError
from moorage.api.field_path import Path
from moorage.api.quantity import Quantity
from moorage.validation.errors import (
    ErrorList,
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import NEGATIVE, each_invalid, label

_COUNTED = {
    "configmaps", "persistentvolumeclaims", PODS, "replicationcontrollers", "resourcequotas",
    "secrets", "services", "services.loadbalancers", "services.nodeports",
}  # fmt: skip
STANDARD_RESOURCES = _COUNTED | {
    CPU, MEMORY, EPHEMERAL_STORAGE, "limits.cpu", "limits.ephemeral-storage", "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory", "requests.storage", "storage",
}  # fmt: skip

NameCheck = Callable[[str, Path], ErrorList]


def validate_container_resources(
    resources: ResourceRequirements, path: Path, pod_claims: Collection[str]
) -> ErrorList:
    """Validate the resources of a container."""
    found = _validate_amounts(resources, path, validate_container_resource_name)
    return found + validate_container_claims(resources.claims, path.child("claims"), pod_claims)


def validate_pod_resources(
    resources: ResourceRequirements, path: Path, pod_claims: Collection[str]
) -> ErrorList:
    """Validate the resources of a pod as a whole, which has no claims."""
    found: ErrorList = []
    if resources.claims:
        detail = "claims may not be set for Resources at pod-level"
        found.append(forbidden(path.child("claims"), detail))
    found += _validate_amounts(resources, path, _validate_pod_resource_name)
    return found + validate_container_claims(resources.claims, path.child("claims"), pod_claims)


def validate_resources(spec: PodSpec, path: Path) -> ErrorList:
    """Validate the resources of a pod and of its containers, after defaults were added to them."""
    claims = {claim.name for claim in spec.resource_claims if claim.name}
    found: ErrorList = []
    for field, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ):
        for position, container in enumerate(containers):
            place = path.child(field).index(position).child("resources")
            found += validate_container_resources(container.resources, place, claims)
    return found + validate_whole_resources(spec, path.child("resources"))


def is_node_allocatable(name: str) -> bool:
    """Return whether a resource is a node allocatable resource."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


# --- claims -------------------------------------------------------------------------------


def validate_container_claims(
    claims: tuple[ContainerClaim, ...], path: Path, pod_claims: Collection[str]
) -> ErrorList:
    """Validate that a container uses claims of its pod, and each claim or request once."""
    found: ErrorList = []
    seen: dict[str, set[str]] = {}  # the requests of each claim; "" is all of them
    known = f": {', '.join(sorted(pod_claims))}" if pod_claims else " which is empty"
    unknown = f"must be one of the names in pod.spec.resourceClaims{known}"
    for position, claim in enumerate(claims):
        place = path.index(position)
        if not claim.name:
            found.append(required(place))
            continue
        found += _validate_claim_use(claim, place, seen.setdefault(claim.name, set()))
        if claim.name not in pod_claims:
            found.append(FieldError(ErrorType.NOT_FOUND, place, unknown, claim.name))
    return found


def _validate_claim_use(claim: ContainerClaim, path: Path, seen: set[str]) -> ErrorList:
    if "" in seen:
        return [duplicate(path, claim.name)]
    found: ErrorList = []
    if claim.request:
        found += label(claim.request, path.child("request"))
        if claim.request in seen:
            found.append(duplicate(path, f"{claim.name}/{claim.request}"))
    else:
        # Like Kubernetes, one error for each request of the claim that is used already.
        found += [duplicate(path, claim.name) for _ in seen]
    seen.add(claim.request)
    return found


# --- amounts ------------------------------------------------------------------------------


def _validate_amounts(
    resources: ResourceRequirements, path: Path, validate_name: NameCheck
) -> ErrorList:
    found = _validate_list(resources.limits, path.child("limits"), validate_name)
    requests_path = path.child("requests")
    for name, amount in resources.requests.items():
        found += validate_amount(name, amount, requests_path.key(name), validate_name)
        found += _validate_request(name, amount, resources.limits, path)
        found += _validate_huge_pages(name, amount, requests_path.key(name))
    asked = resources.limits.keys() | resources.requests.keys()
    if any(n.startswith(HUGE_PAGES_PREFIX) for n in asked) and not asked & {CPU, MEMORY}:
        found.append(forbidden(path, "HugePages require cpu or memory"))
    return found


def _validate_list(amounts: ResourceList, path: Path, validate_name: NameCheck) -> ErrorList:
    found: ErrorList = []
    for name, amount in amounts.items():
        found += validate_amount(name, amount, path.key(name), validate_name)
        found += _validate_huge_pages(name, amount, path.key(name))
    return found


def validate_amount(name: str, amount: Quantity, path: Path, validate_name: NameCheck) -> ErrorList:
    """Validate a resource: its name, and that its amount is not negative."""
    found = validate_name(name, path)
    if amount.sign < 0:
        found.append(invalid(path, str(amount), NEGATIVE))
    is_counted = name in _COUNTED or names.is_extended_resource(name)
    if is_counted and amount.milli_value % 1000:
        found.append(invalid(path, amount, "must be an integer"))
    return found


def _validate_request(name: str, amount: Quantity, limits: ResourceList, path: Path) -> ErrorList:
    """Validate a request against its limit, which only native resources may lack."""
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


def _validate_huge_pages(name: str, amount: Quantity, path: Path) -> ErrorList:
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


def validate_container_resource_name(name: str, path: Path) -> ErrorList:
    """Validate the name of a resource that containers can have."""
    found = validate_resource_name(name, path)
    if "/" not in name:
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not name.startswith(HUGE_PAGES_PREFIX):
            found.append(invalid(path, name, "must be a standard resource for containers"))
    elif not _is_native(name) and not names.is_extended_resource(name):
        found.append(invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def _validate_pod_resource_name(name: str, path: Path) -> ErrorList:
    found = validate_resource_name(name, path)
    if not found and not is_node_allocatable(name):
        found.append(not_supported(path, name, [CPU, HUGE_PAGES_PREFIX, MEMORY]))
    return found


def validate_resource_name(name: str, path: Path) -> ErrorList:
    """Validate the name of a resource."""
    found = each_invalid(path, name, names.label_name(name))
    if found or "/" in name or name in STANDARD_RESOURCES:
        return found
    if name.startswith((HUGE_PAGES_PREFIX, f"requests.{HUGE_PAGES_PREFIX}")):
        return []
    return [invalid(path, name, "must be a standard resource type or fully qualified")]


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


# --- resources of the pod as a whole ------------------------------------------------------


def _requests(container: Container) -> ResourceList:
    return container.resources.requests


def _limits(container: Container) -> ResourceList:
    return container.resources.limits


def validate_whole_resources(spec: PodSpec, path: Path) -> ErrorList:
    """Validate pod-level resources, by themselves and against those of the containers."""
    resources = spec.resources
    if resources is None:
        return []
    if spec.os is not None and spec.os.get("name") == "windows":
        return [forbidden(path, "may not be set for a windows pod")]
    claims = {claim.name for claim in spec.resource_claims if claim.name}
    found = validate_pod_resources(resources, path, claims)
    pod = Pod(spec=spec)
    found += _validate_sums(resources.requests, resources_at_once(pod, _requests), "requests", path)
    huge = {
        n: q for n, q in resources_at_once(pod, _limits).items() if n.startswith(HUGE_PAGES_PREFIX)
    }
    found += _validate_sums(resources.limits, huge, "limits", path)
    return found + _validate_each_limit(spec, resources.limits, path)


def _validate_sums(whole: ResourceList, sums: ResourceList, field: str, path: Path) -> ErrorList:
    """Validate that the pod has at least the sum of its containers."""
    return [
        invalid(
            path.child(field).key(name),
            str(whole[name]),
            f"must be greater than or equal to aggregate container {field} of {amount}",
        )
        for name, amount in sums.items()
        if name in whole and amount > whole[name]
    ]


def _validate_each_limit(spec: PodSpec, limits: ResourceList, path: Path) -> ErrorList:
    """Validate that no container has more than the pod; Kubernetes reports this odd path."""
    return [
        invalid(
            path.child("containers").index(position).key(name).child("limits"),
            str(amount),
            f"must be less than or equal to pod limits of {limits[name]}",
        )
        for position, container in enumerate(spec.containers)
        for name, amount in container.resources.limits.items()
        if name in limits and amount > limits[name]
    ]


# --- defaults -----------------------------------------------------------------------------


def default_whole_resources(spec: PodSpec) -> PodSpec:
    """Return a spec with defaults in its pod-level resources, if it has any.

    1. Limits of huge pages are the sum of the containers.
    2. Requests are the sum of the containers, or else the limits of the pod.
    3. Limits are the sum of the containers if each has one, and at least the requests.
    """
    resources = spec.resources
    if resources is None or not (resources.requests or resources.limits):
        return spec
    pod = Pod(spec=spec)
    asked, allowed = resources_at_once(pod, _requests), resources_at_once(pod, _limits)
    limits = {**_huge_limits(resources, allowed), **resources.limits}
    overcommitted = {name: asked[name] for name in (CPU, MEMORY) if name in asked}
    supported = {name: q for name, q in limits.items() if is_node_allocatable(name)}
    requests = {**supported, **overcommitted, **resources.requests}
    for name, request in requests.items():
        if name not in limits and is_node_allocatable(name) and _all_limited(spec, name):
            limits[name] = max(allowed[name], request)
    return replace(spec, resources=replace(resources, limits=limits, requests=requests))


def _huge_limits(resources: ResourceRequirements, allowed: ResourceList) -> ResourceList:
    return {
        name: amount
        for name, amount in allowed.items()
        if name.startswith(HUGE_PAGES_PREFIX) and name not in resources.requests
    }


def _all_limited(spec: PodSpec, name: str) -> bool:
    containers = (*spec.containers, *spec.init_containers)
    return bool(containers) and all(name in each.resources.limits for each in containers)


# --- QoS classes --------------------------------------------------------------------------

BEST_EFFORT = "BestEffort"
BURSTABLE = "Burstable"
GUARANTEED = "Guaranteed"

_ZERO = Quantity.from_int(0)


def qos_class(spec: PodSpec) -> str:
    """Return the QoS class of a pod.

    Guaranteed if requests equal limits in every container, for cpu and memory; BestEffort if there
    are none; otherwise Burstable.
    """
    if spec.resources is not None and _counts(spec.resources):
        return _class_of(spec.resources)
    return _common(_class_of(c.resources) for c in (*spec.init_containers, *spec.containers))


def _counts(resources: ResourceRequirements) -> bool:
    """Return whether pod-level resources contain a supported one."""
    names = (*resources.requests, *resources.limits)
    return any(n in (CPU, MEMORY) or n.startswith(HUGE_PAGES_PREFIX) for n in names)


def _class_of(resources: ResourceRequirements) -> str:
    return _common(_class_of_resource(resources, name) for name in (CPU, MEMORY))


def _class_of_resource(resources: ResourceRequirements, name: str) -> str:
    request, limit = resources.requests.get(name, _ZERO), resources.limits.get(name, _ZERO)
    if request != limit:
        return BURSTABLE
    return BEST_EFFORT if request.is_zero else GUARANTEED


def _common(classes: Iterable[str]) -> str:
    """Return the class that all have, or Burstable."""
    found = set(classes) or {BEST_EFFORT}
    return found.pop() if len(found) == 1 else BURSTABLE
