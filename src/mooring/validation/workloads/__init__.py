"""How controllers of pods are admitted: what is set in them, and the rules of apps and batch.

Their templates are checked by the rules for pods. Left out are Kubernetes' checks of what a job's
status may become.
"""

from mooring.validation.workloads.daemonset import DaemonSetStrategy
from mooring.validation.workloads.defaults import with_selector
from mooring.validation.workloads.job import JobStrategy
from mooring.validation.workloads.replicas import DeploymentStrategy, ReplicaSetStrategy
from mooring.validation.workloads.statefulset import StatefulSetStrategy

__all__ = [
    "DaemonSetStrategy",
    "DeploymentStrategy",
    "JobStrategy",
    "ReplicaSetStrategy",
    "StatefulSetStrategy",
    "with_selector",
]
