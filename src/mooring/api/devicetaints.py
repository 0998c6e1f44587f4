"""Which taints tolerations cover and rules put on devices; for allocation and eviction alike."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.resource.v1 import Device, DeviceTaint, DeviceTaintRule, DeviceToleration

NONE = "None"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Return whether a toleration covers a taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
    return False


class DeviceName(NamedTuple):
    """What names a device."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


def means_by_name(rule: DeviceTaintRule, name: DeviceName, device: Device | None) -> bool:  # noqa: ARG001
    """Tell whether a rule means a device, as Kubernetes has it: by driver, pool and name."""
    selector = rule.spec.device_selector
    if selector is None or selector.device_class_name is not None or selector.selectors:
        return False
    wanted = (selector.driver, selector.pool, selector.device)
    return all(want in (None, has) for want, has in zip(wanted, name, strict=True))
