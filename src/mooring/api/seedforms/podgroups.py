"""PodGroup and Workload in scheduling.k8s.io/v1alpha2, the version of the concept page.

Conversion knows what differs from the later versions; here it is only said that there are such.
"""

from __future__ import annotations

from mooring.api.seedforms.notes import Notes
from mooring.api.seedforms.trees import Tree


def rewrite_pod_group(tree: Tree, notes: Notes) -> Tree:
    """Return a PodGroup or Workload as it is, its old version noted."""
    if notes.version == "v1alpha2":
        notes.warn(
            "scheduling version",
            ("apiVersion",),
            f"Kubernetes 1.37 serves {tree['kind']} as scheduling.k8s.io/v1beta1 and v1alpha3",
        )
    return tree
