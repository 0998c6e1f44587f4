"""Audit: one audit.k8s.io/v1 event, as a line of JSON, for each request that the policy selects.

policy      which requests, and how much of them
event       an event, built from what a request left
auditor     the trail of a request, and the log file with its rotation
"""

from moorage.apiserver.audit.auditor import NO_AUDIT, Audit, AuditLog, Auditor, NoAudit, Rotation
from moorage.apiserver.audit.policy import DEFAULT_POLICY, AuditPolicy, read_policy
from moorage.apiserver.errors import AuditPolicyError

__all__ = [
    "DEFAULT_POLICY",
    "NO_AUDIT",
    "Audit",
    "AuditLog",
    "AuditPolicy",
    "AuditPolicyError",
    "Auditor",
    "NoAudit",
    "Rotation",
    "read_policy",
]
