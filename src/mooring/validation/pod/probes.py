"""Rules for what is done to a container while it runs: probes, and hooks of its life cycle."""

from __future__ import annotations

import re
from typing import Any

from mooring.api.core.container import Container
from mooring.api.fieldpath import Path
from mooring.validation.checks import each_invalid, not_negative
from mooring.validation.errors import Errors, forbidden, invalid, required
from mooring.validation.pod.field_rules import Tree, choice, given
from mooring.validation.pod.ports import check_port_number, port_name_faults

HTTP_SCHEMES = ("HTTP", "HTTPS")

_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HEADER = "[-A-Za-z0-9]+"
_HEADER_RULE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    f"regex used for validation is '{_HEADER}')"
)
_is_header = re.compile(_HEADER).fullmatch
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"


def check_probes(container: Container, grace_period_s: int | None, path: Path) -> Errors:
    """Check the hooks and probes of a container that runs as long as its pod."""
    found: Errors = []
    if container.lifecycle is not None:
        found += _check_lifecycle(container.lifecycle, grace_period_s, path.child("lifecycle"))
    for name, probe in _probes(container).items():
        if probe is not None:
            found += _check_probe(name, probe, path.child(name))
    return found


def check_no_probes(container: Container, path: Path) -> Errors:
    """Check that a container that ends before others start has neither hooks nor probes."""
    given_parts = {"lifecycle": container.lifecycle, **_probes(container)}
    return [
        forbidden(path.child(name), _ONLY_SIDECARS)
        for name, part in given_parts.items()
        if part is not None
    ]


def _probes(container: Container) -> dict[str, Any]:
    return {
        "livenessProbe": container.liveness_probe,
        "readinessProbe": container.readiness_probe,
        "startupProbe": container.startup_probe,
    }


def _check_probe(name: str, probe: Tree, path: Path) -> Errors:
    found = _check_handler(probe, None, path)
    for number in _NUMBERS:
        found += not_negative(probe.get(number), path.child(number))
    grace_period, place = (
        probe.get("terminationGracePeriodSeconds"),
        path.child("terminationGracePeriodSeconds"),
    )
    if grace_period is not None and grace_period <= 0:
        found.append(invalid(place, grace_period, "must be greater than 0"))
    if name == "readinessProbe":
        if grace_period is not None:
            found.append(invalid(place, grace_period, "must not be set for readinessProbes"))
    elif probe.get("successThreshold") != 1:
        threshold = probe.get("successThreshold", 0)
        found.append(invalid(path.child("successThreshold"), threshold, "must be 1"))
    return found


def _check_lifecycle(lifecycle: Tree, grace_period_s: int | None, path: Path) -> Errors:
    found: Errors = []
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            found += _check_handler(lifecycle[name], grace_period_s, path.child(name))
    return found


# --- handlers -------------------------------------------------------------------------------------


def _check_handler(handler: Tree, grace_period_s: int | None, path: Path) -> Errors:
    """Check what is done: one of a few things, of which only the first is looked at."""
    found: Errors = []
    chosen = ""
    for name in ("exec", "httpGet", "tcpSocket", "grpc", "sleep"):
        if name not in handler:
            continue
        place = path.child(name)
        if chosen:
            found.append(forbidden(place, "may not specify more than 1 handler type"))
            continue
        chosen = name
        match name:
            case "exec":
                found += given(handler[name], ("command",), place)
            case "httpGet":
                found += _check_http(handler[name], place)
            case "sleep":
                found += _check_sleep(handler[name], grace_period_s, place)
            case _:
                found += _check_port(handler[name].get("port", 0), place.child("port"))
    if not chosen:
        found.append(required(path, "must specify a handler type"))
    return found


def _check_http(action: Tree, path: Path) -> Errors:
    found = given(action, ("path",), path)
    found += _check_port(action.get("port", 0), path.child("port"))
    found += choice(action.get("scheme", ""), HTTP_SCHEMES, path.child("scheme"))
    for header in action.get("httpHeaders", ()):
        name = header.get("name", "")
        if not _is_header(name):
            found.append(invalid(path.child("httpHeaders"), name, _HEADER_RULE))
    return found


def _check_port(port: int | str, path: Path) -> Errors:
    if isinstance(port, int):
        return check_port_number(port, path)
    return each_invalid(path, port, port_name_faults(port))


def _check_sleep(action: Tree, grace_period_s: int | None, path: Path) -> Errors:
    seconds = action.get("seconds", 0)
    if grace_period_s is None or 0 <= seconds <= grace_period_s:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period_s})"
    return [invalid(path, seconds, detail)]
