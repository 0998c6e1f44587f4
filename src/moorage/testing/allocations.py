"""Assertions about the devices of a claim; the message says what it got instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.api.resource.v1 import (
    Device,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceSlice,
)

__tracebackhide__ = True  # pytest shows the test, not us


def assert_allocated(
    claim: ResourceClaim,
    *,
    count: int | None = None,
    driver: str = "",
    devices: Iterable[str] | None = None,
    same: str = "",
    slices: Sequence[ResourceSlice] = (),
    why: str = "",
) -> tuple[DeviceRequestAllocationResult, ...]:
    """Return the devices of a claim; raise AssertionError if they are not as required.

    `count` devices, all of `driver`, with the names `devices`, and with one value of the attribute
    `same` in `slices`. `why` explains a missing allocation in the message.
    """
    __tracebackhide__ = True
    name = f"claim {claim.metadata.namespace}/{claim.metadata.name}"
    if claim.status.allocation is None:
        raise AssertionError(f"{name} is not allocated{f': {why}' if why else ''}")
    results = claim.status.allocation.devices.results
    shown = ", ".join(f"{each.driver}/{each.pool}/{each.device}" for each in results) or "nothing"
    if count is not None and len(results) != count:
        raise AssertionError(f"{name} has {len(results)} devices, not {count}: {shown}")
    if driver and (others := sorted({each.driver for each in results} - {driver})):
        raise AssertionError(f"{name} has devices of {', '.join(others)}, not of {driver}: {shown}")
    if devices is not None and sorted(each.device for each in results) != sorted(devices):
        raise AssertionError(f"{name} has {shown}, not {', '.join(sorted(devices))}")
    if same:
        _check_same(name, results, same, slices)
    return tuple(results)


def _check_same(
    name: str,
    results: Iterable[DeviceRequestAllocationResult],
    attribute: str,
    slices: Sequence[ResourceSlice],
) -> None:
    __tracebackhide__ = True
    values = {each.device: _values(each, attribute, slices) for each in results}
    if values and not set.intersection(*values.values()):
        shown = ", ".join(
            f"{device} has {' and '.join(sorted(found)) or 'none'}"
            for device, found in values.items()
        )
        raise AssertionError(f"{name}: devices do not have the same {attribute}: {shown}")


def _values(
    result: DeviceRequestAllocationResult, attribute: str, slices: Sequence[ResourceSlice]
) -> set[str]:
    """Return the values that a device publishes; a list has several."""
    published = _published(result, slices)
    domain, _, short = attribute.rpartition("/")
    names = [attribute, *([short] if domain == result.driver else [])]
    for name in names if published is not None else ():
        assert published is not None
        if (found := (published.attributes or {}).get(name)) is not None:
            return _texts(found)
    return set()


def _published(
    result: DeviceRequestAllocationResult, slices: Sequence[ResourceSlice]
) -> Device | None:
    for each in slices:
        if (each.spec.driver, each.spec.pool.name) == (result.driver, result.pool):
            for device in each.spec.devices or ():
                if device.name == result.device:
                    return device
    return None


def _texts(value: DeviceAttribute) -> set[str]:
    fields = (getattr(value, name) for name in value.__struct_fields__)
    found: set[str] = set()
    for each in fields:
        if each is not None and each != ():
            found |= set(map(str, each)) if isinstance(each, tuple) else {str(each)}
    return found
