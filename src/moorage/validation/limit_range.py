"""The strategy of LimitRanges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from moorage.api.core.limit_range import LimitRange, LimitRangeItem
from moorage.api.core.resources import ResourceList
from moorage.api.field_path import Path, root
from moorage.api.names import label_name
from moorage.api.quantity import Quantity
from moorage.validation.errors import ErrorList, duplicate, forbidden, invalid, required
from moorage.validation.field_rules import each_invalid
from moorage.validation.pod.resources import (
    validate_container_resource_name,
    validate_resource_name,
)
from moorage.validation.strategy import Context, ObjectStrategy

LIMITS = root("spec").child("limits")

CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"

_ONE = Quantity.parse("1")


class LimitRangeStrategy(ObjectStrategy[LimitRange]):
    """The strategy of LimitRanges."""

    rechecks_metadata = True

    def default(self, value: LimitRange, api_version: str, context: Context) -> LimitRange:  # noqa: ARG002
        """Set defaults of containers: a limit from the maximum, a request from limit or minimum."""
        limits = tuple(_defaulted(item) for item in value.spec.limits)
        return replace(value, spec=replace(value.spec, limits=limits))

    def validate_fields(self, new: LimitRange) -> ErrorList:
        """Validate the bounds of each type."""
        found: ErrorList = []
        seen: set[str] = set()
        for position, item in enumerate(new.spec.limits):
            path = LIMITS.index(position)
            found += _validate_type(item.type, path.child("type"))
            if item.type in seen:
                found.append(duplicate(path.child("type"), item.type))
            seen.add(item.type)
            found += _validate_names(item, path)
            if item.type == CLAIM and "storage" not in {**item.min, **item.max}:
                detail = (
                    "either minimum or maximum storage value is required, but neither was provided"
                )
                found.append(required(path.child("limits"), detail))
            for name in {**item.max, **item.min, **item.default, **item.default_request}:
                found += _validate_bounds(item, name, path)
            for name in item.max_limit_request_ratio:
                found += _validate_ratio(item, name, path)
        return found


def _defaulted(item: LimitRangeItem) -> LimitRangeItem:
    if item.type != CONTAINER:
        return item
    default = {**item.max, **item.default}
    request = {**item.min, **default, **item.default_request}
    return replace(item, default=default, default_request=request)


def _validate_type(name: str, path: Path) -> ErrorList:
    found = each_invalid(path, name, label_name(name))
    if not found and "/" not in name and name not in (CONTAINER, POD, CLAIM):
        found.append(invalid(path, name, "must be a standard limit type or fully qualified"))
    return found


def _validate_names(item: LimitRangeItem, path: Path) -> ErrorList:
    found: ErrorList = []
    check = _name_check(item.type)
    for field, amounts in _lists(item):
        place = path.child(field)
        if item.type == POD and field in ("default", "defaultRequest"):
            if amounts:
                found.append(forbidden(place, "may not be specified when `type` is 'Pod'"))
            continue
        for name in amounts:
            found += check(name, place.key(name))
    return found


def _name_check(kind: str) -> Callable[[str, Path], ErrorList]:
    return validate_container_resource_name if kind in (CONTAINER, POD) else validate_resource_name


def _lists(item: LimitRangeItem) -> Iterator[tuple[str, ResourceList]]:
    yield "max", item.max
    yield "min", item.min
    yield "default", item.default
    yield "defaultRequest", item.default_request
    yield "maxLimitRequestRatio", item.max_limit_request_ratio


def _validate_bounds(item: LimitRangeItem, name: str, path: Path) -> ErrorList:
    least, most = item.min.get(name), item.max.get(name)
    limit, request = item.default.get(name), item.default_request.get(name)
    if item.type == POD:
        limit = request = None
    # (the lower value, its name, the higher one, its name, the field, which of both is shown)
    rules = (
        (least, "min value", most, "max value", "min", least),
        (least, "min value", request, "default request value", "defaultRequest", request),
        (request, "default request value", most, "max value", "defaultRequest", request),
        (request, "default request value", limit, "default limit value", "defaultRequest", request),
        (least, "min value", limit, "default value", "default", least),
        (limit, "default value", most, "max value", "default", most),
    )
    found: ErrorList = []
    for low, low_name, high, high_name, field, shown in rules:
        if low is not None and high is not None and high < low:
            detail = f"{low_name} {low} is greater than {high_name} {high}"
            found.append(invalid(path.child(field).key(name), str(shown), detail))
    is_exact = "/" in name and not name.partition("/")[0].endswith("kubernetes.io")
    is_exact = is_exact or name.startswith("hugepages-")
    if is_exact and limit is not None and request is not None and limit != request:
        detail = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        found.append(invalid(path.child("defaultRequest").key(name), str(request), detail))
    return found


def _validate_ratio(item: LimitRangeItem, name: str, path: Path) -> ErrorList:
    ratio = item.max_limit_request_ratio[name]
    place = path.child("maxLimitRequestRatio").key(name)
    found: ErrorList = []
    if ratio < _ONE:
        found.append(invalid(place, str(ratio), f"ratio {ratio} is less than 1"))
    least, most = item.min.get(name), item.max.get(name)
    if least is not None and most is not None and least.sign > 0:
        bound = most.nano / least.nano
        if ratio.nano / 10**9 > bound:
            detail = f"ratio {ratio} is greater than max/min = {bound:.6f}"
            found.append(invalid(place, str(ratio), detail))
    return found
