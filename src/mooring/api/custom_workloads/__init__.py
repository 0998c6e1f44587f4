"""Custom workloads: what well-known operators create from their own kinds, as built-in objects.

    JobSet ─► Jobs        LeaderWorkerSet ─► StatefulSets     ComputeDomain ─► ResourceClaimTemplate
    MPIJob, PyTorchJob, RayCluster, Volcano Job, Kueue Workload … ─► Pods

    documents      a document of a custom workload as documents of what its operator creates
    written        a custom resource as it is written: values with their paths
    made_object    an object made of it, and where each of its parts is written
    pod_sets       kinds that are lists of pod templates with counts: one table
    job_sets, leader_worker_sets   jobs and stateful sets
    adapters       all of them by version and kind; those of ComputeDomain and AppWrapper

Only what decides about pods and their devices is made: templates, counts, names, labels, claims.
Services, environment variables and other helpers of the operators are left out.
"""

from mooring.api.custom_workloads.adapters import ADAPTERS
from mooring.api.custom_workloads.documents import MadeDocument, expand_workload, is_workload
from mooring.api.custom_workloads.made_object import MadeObject

__all__ = ["ADAPTERS", "MadeDocument", "MadeObject", "expand_workload", "is_workload"]
