"""Custom workloads: what well-known operators create from their own kinds, as built-in objects.

    JobSet ─► Jobs        LeaderWorkerSet ─► StatefulSets     ComputeDomain ─► ResourceClaimTemplate
    MPIJob, PyTorchJob, RayCluster, Volcano Job, Kueue Workload … ─► Pods

    documents      converts a custom workload to documents of what its operator creates
    written        values of a custom resource with their paths
    made_object    a created object, and the source of each of its parts
    pod_sets       kinds that are lists of pod templates with counts: one table
    job_sets, leader_worker_sets   jobs and stateful sets
    adapters       all adapters by version and kind; those of ComputeDomain and AppWrapper

Only parts that matter for pods and their devices are created: templates, counts, names, labels,
claims. Services, environment variables and other helpers of operators are omitted.
"""

from moorage.api.custom_workloads.adapters import ADAPTERS
from moorage.api.custom_workloads.documents import MadeDocument, expand_workload, is_workload
from moorage.api.custom_workloads.made_object import MadeObject

__all__ = ["ADAPTERS", "MadeDocument", "MadeObject", "expand_workload", "is_workload"]
