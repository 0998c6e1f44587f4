"""Pods to try rules on, and the longer texts of Kubernetes that several tests expect."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.gates import Gate, Gates
from moorage.api.timestamp import Timestamp
from moorage.validation.errors import ErrorList
from moorage.validation.pod.defaults import default_pod
from moorage.validation.strategy import Context

Tree = dict[str, Any]

GATES = Gates.parse("")
ALL_OFF = Gates(frozenset())
CONTEXT = Context(gates=GATES, now=Timestamp.parse("2026-01-01T00:00:00Z"))

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def under(gates: Gates) -> Context:
    """Return the context with other gates."""
    return CONTEXT._replace(gates=gates)


def pod(spec: Tree | None = None, status: Tree | None = None, **metadata: Any) -> Pod:
    """Return a pod with one container, changed by the given parts."""
    tree = {
        "metadata": {"name": "p", "namespace": "default", "resourceVersion": "1", **metadata},
        "spec": {"containers": [{"name": "c", "image": "x"}], **(spec or {})},
        "status": status or {},
    }
    return default_pod(decode_tree(tree, Pod).value)


def container(**fields: Any) -> Tree:
    """Return a container, changed by the given fields."""
    return {"name": "c", "image": "x", **fields}


def without(*gates: Gate) -> Gates:
    """Return all gates but these."""
    return Gates(GATES.on - set(gates))


def texts(errors: ErrorList) -> list[str]:
    """Return the errors as users read them."""
    return [str(error) for error in errors]


GPU = {"name": "gpu", "resourceClaimName": "my-gpu"}


def using(*claims: Tree, pod_claims: tuple[Tree, ...] = (GPU,)) -> Tree:
    """Return the parts of a spec in which the container uses claims of the pod."""
    return {
        "containers": [container(resources={"claims": list(claims)})],
        "resourceClaims": list(pod_claims),
    }
