"""ResourcePoolStatusRequest: the version and the driver name of the concept page."""

from __future__ import annotations

import re

from mooring.api.seedforms.notes import Notes
from mooring.api.seedforms.trees import Tree

_SLASHED = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def is_slashed_driver_name(name: str) -> bool:
    """Whether this is `example.com/gpu`, a name that no driver can have and no pool answers to."""
    return _SLASHED.fullmatch(name) is not None


def rewrite_pool_status_request(tree: Tree, notes: Notes) -> Tree:
    """Return a ResourcePoolStatusRequest as it is, its oddities noted."""
    if notes.version == "v1beta2":
        notes.warn(
            "pool status version",
            ("apiVersion",),
            "Kubernetes 1.37 serves ResourcePoolStatusRequest as resource.k8s.io/v1alpha3",
        )
    spec = tree.get("spec")
    driver = spec.get("driver") if isinstance(spec, dict) else None
    if isinstance(driver, str) and is_slashed_driver_name(driver):
        notes.warn(
            "pool status driver",
            ("spec", "driver"),
            f'no pool has a driver named "{driver}": '
            'in Kubernetes 1.37 a driver is named like a host, such as "gpu.example.com"',
        )
    return tree
