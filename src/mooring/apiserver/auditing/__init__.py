"""Who did what, and what came of it: one line of JSON for each request that the policy names.

policy      which requests, and how much of them
events      one line, as audit.k8s.io/v1 has it
trail       a request on its way, and what is noted of it
log         the file, written beside requests and turned over in time
"""

from mooring.apiserver.auditing.log import AuditLog, Rotation
from mooring.apiserver.auditing.policy import DEFAULT_POLICY, Policy, PolicyError, read_policy
from mooring.apiserver.auditing.trail import NO_AUDIT, Audit, Auditor, NoAudit

__all__ = [
    "DEFAULT_POLICY",
    "NO_AUDIT",
    "Audit",
    "AuditLog",
    "Auditor",
    "NoAudit",
    "Policy",
    "PolicyError",
    "Rotation",
    "read_policy",
]
