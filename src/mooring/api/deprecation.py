"""Deprecated versions of built-in kinds, and the warnings that Kubernetes 1.37 gives for them."""

from __future__ import annotations

from mooring.api.kinds import Kind

# "GROUP/VERSION" or "VERSION KIND": since when, until when, and what replaces it ("" if nothing).
_DEPRECATED = {
    "admissionregistration.k8s.io/v1alpha1": ("1.35", "1.38", ""),
    "admissionregistration.k8s.io/v1beta1": ("1.37", "1.40", "admissionregistration.k8s.io/v1"),
    "resource.k8s.io/v1beta1": ("1.35", "1.38", ""),
    "resource.k8s.io/v1beta2": ("1.36", "1.39", ""),
    "resource.k8s.io/v1alpha3 DeviceTaintRule": ("1.36", "1.39", ""),
}
_OTHERS = {
    "v1 Endpoints": "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
_CURRENT = {  # kinds of deprecated versions that have no newer one
    "resource.k8s.io/v1beta2 DeviceTaintRule",
    "resource.k8s.io/v1beta2 ResourcePoolStatusRequest",
}


def deprecation_of(kind: Kind) -> str:
    """Return the warning for whoever uses a version of a kind; "" if it is not deprecated."""
    name = f"{kind.api_version} {kind.name}"
    if name in _OTHERS or name in _CURRENT:
        return _OTHERS.get(name, "")
    found = _DEPRECATED.get(name) or _DEPRECATED.get(kind.api_version)
    if found is None:
        return ""
    since, until, newer = found
    hint = f"; use {newer} {kind.name}" if newer else ""
    return f"{name} is deprecated in v{since}+, unavailable in v{until}+{hint}"
