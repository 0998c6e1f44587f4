"""The controllers that look after workloads, by their names in Kubernetes."""

from __future__ import annotations

from mooring.api.gates import Gate, Gates
from mooring.controllers.accounts import RootCertificates, ServiceAccounts
from mooring.controllers.controller import Controller
from mooring.controllers.daemonsets import DaemonSets
from mooring.controllers.deployments import Deployments
from mooring.controllers.finishedjobs import FinishedJobs
from mooring.controllers.garbage import GarbageCollector
from mooring.controllers.jobs import Jobs
from mooring.controllers.nodelifecycle import NodeLifecycle
from mooring.controllers.nodetaints import NodeTaintEvictions
from mooring.controllers.podgarbage import ENDED_MAX, PodGarbage
from mooring.controllers.podgroups import PodGroupProtection
from mooring.controllers.replicasets import ReplicaSets


def workload_controllers(
    *, authority: str, gates: Gates | None = None, ended_max: int = ENDED_MAX
) -> tuple[Controller, ...]:
    """Return one of each; `authority` is what signs for the server, in PEM, or empty for none.

    `ended_max` is kube-controller-manager's `--terminated-pod-gc-threshold`.
    """
    published = (RootCertificates(authority),) if authority else ()
    return (
        ServiceAccounts(),
        *published,
        Deployments(),
        ReplicaSets(),
        DaemonSets(),
        Jobs(makes_groups=(gates or Gates.parse()).enabled(Gate.WORKLOAD_WITH_JOB)),
        FinishedJobs(),
        PodGroupProtection(),
        NodeLifecycle(),
        NodeTaintEvictions(),
        PodGarbage(ended_max=ended_max),
        GarbageCollector(),
    )
