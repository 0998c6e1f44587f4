"""The claim of a run, and the pod that holds it while the command runs.

The pod's only process waits for the end of a pipe that `moor run` has open: the system closes it
however `moor run` ends, and then the pod ends, and its devices are free. The process looks first
whether `moor run` is still there, and takes the pipe away at its end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "runs"  # of the pipes, in the folder of a cluster
NAMESPACE = "default"
LABEL = "mooring.dev/run"
ENTRY, CONTAINER = "devices", "holder"
GRACE_S = 2
HOLDER = '[ -d "/proc/$1" ] && read -r _ <"$2"; rm -f "$2"'


class Run(NamedTuple):
    """One run: a name for its objects, the process that it is, and its pipe."""

    name: str
    pid: int
    pipe: Path
    node: str


def claim_tree(run: Run, devices: dict[str, Any]) -> dict[str, Any]:
    """Return the claim."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _metadata(run),
        "spec": {"devices": devices},
    }


def pod_tree(run: Run) -> dict[str, Any]:
    """Return the pod."""
    container = {
        "name": CONTAINER,
        "image": "none",  # a process of this machine
        "command": ["/bin/sh", "-c", HOLDER, "holder", str(run.pid), str(run.pipe)],
        "resources": {"claims": [{"name": ENTRY}]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(run),
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": GRACE_S,
            "automountServiceAccountToken": False,
            "nodeSelector": {"kubernetes.io/hostname": run.node},
            "containers": [container],
            "resourceClaims": [{"name": ENTRY, "resourceClaimName": run.name}],
        },
    }


def _metadata(run: Run) -> dict[str, Any]:
    return {"name": run.name, "namespace": NAMESPACE, "labels": {LABEL: str(run.pid)}}
