"""What Kubernetes itself fills in when it reads a Pod or a Node; no seed form, so no warning.

A container's requests come from its limits, a node's allocatable from its capacity. Pod templates
are left alone, as Kubernetes leaves them.
"""

from __future__ import annotations

from mooring.api.seedforms.trees import Tree, each, is_absent, within


def fill_defaults(tree: Tree) -> Tree:
    """Return a Pod with its requests, a Node with its allocatable; anything else as it is."""
    if tree.get("apiVersion") != "v1":
        return tree
    if tree.get("kind") == "Pod":
        return within(tree, ("spec",), _pod_spec)
    if tree.get("kind") == "Node":
        return within(tree, ("status",), _node_status)
    return tree


def _pod_spec(spec: Tree) -> Tree:
    return each(each(spec, "containers", _container), "initContainers", _container)


def _container(container: Tree, _: int) -> Tree:
    return within(container, ("resources",), _resources)


def _resources(resources: Tree) -> Tree:
    limits, requests = resources.get("limits"), resources.get("requests")
    if not isinstance(limits, dict) or not (requests is None or isinstance(requests, dict)):
        return resources
    asked = requests or {}
    missing = {name: limit for name, limit in limits.items() if name not in asked}
    return {**resources, "requests": {**asked, **missing}} if missing else resources


def _node_status(status: Tree) -> Tree:
    capacity = status.get("capacity")
    if not isinstance(capacity, dict) or not is_absent(status, "allocatable"):
        return status
    return {**status, "allocatable": dict(capacity)}
