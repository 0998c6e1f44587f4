"""What pods of a node want: devices of one driver or several, their own or shared ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.resource.v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate

Tree = dict[str, Any]
NAMESPACE = "default"
MARK = "SOAK_SITE"  # in the environment of all containers


def _made(struct: type[Any], name: str, namespace: str = NAMESPACE, **fields: Any) -> Any:
    return decode_tree({"metadata": {"name": name, "namespace": namespace}, **fields}, struct).value


def device_class(driver: str) -> DeviceClass:
    """Return the class of a driver's devices."""
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    found: DeviceClass = _made(DeviceClass, driver, "", spec={"selectors": selectors})
    return found


def _spec(drivers: Sequence[str], count: int, units: int) -> Tree:
    requests = []
    for number, driver in enumerate(drivers):
        exactly: Tree = {"deviceClassName": driver, "count": count}
        if units:
            exactly["capacity"] = {"requests": {"units": str(units)}}
        requests.append({"name": f"r{number}", "exactly": exactly})
    return {"devices": {"requests": requests}}


def template(name: str, *drivers: str, count: int = 1, units: int = 0) -> ResourceClaimTemplate:
    """Return a template for claims of some devices of each driver."""
    found: ResourceClaimTemplate = _made(
        ResourceClaimTemplate, name, spec={"spec": _spec(drivers, count, units)}
    )
    return found


def claim(name: str, *drivers: str, count: int = 1, units: int = 0) -> ResourceClaim:
    """Return a claim that pods may share."""
    found: ResourceClaim = _made(ResourceClaim, name, spec=_spec(drivers, count, units))
    return found


def pod(
    name: str,
    command: Sequence[str],
    *,
    mark: str = "",
    templates: Sequence[str] = (),
    claims: Sequence[str] = (),
    restart: str = "Always",
) -> Pod:
    """Return a pod with one container that has the devices of all its claims."""
    sources = [
        {"name": f"t{n}", "resourceClaimTemplateName": each} for n, each in enumerate(templates)
    ]
    sources += [{"name": f"c{n}", "resourceClaimName": each} for n, each in enumerate(claims)]
    container = {
        "name": "main",
        "image": "none",
        "command": list(command),
        "env": [{"name": MARK, "value": mark}],
        "resources": {"claims": [{"name": each["name"]} for each in sources]},
    }
    spec = {
        "containers": [container],
        "resourceClaims": sources,
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 1,
    }
    found: Pod = _made(Pod, name, spec=spec)
    return found
