"""Resource quotas: how much objects use, whether they fit, and the usage in their status.

usage       the names that quotas use, and the usage of a pod and of a claim
storage     the usage of services and volume claims
evaluators  the same for objects of any resource, and scopes
accounting  charge quotas at admission, and recalculate usage
"""

from moorage.claims.quotas.accounting import (
    NamespaceObjects,
    charged,
    counted_resources,
    recalculated,
    usage_context,
)
from moorage.claims.quotas.evaluators import CLAIMS, PODS, Evaluator, GroupResource, evaluator_for
from moorage.claims.quotas.usage import (
    UsageContext,
    claim_usage,
    is_living,
    is_special,
    pod_usage,
    special_by_pod,
)

__all__ = [
    "CLAIMS",
    "PODS",
    "Evaluator",
    "GroupResource",
    "NamespaceObjects",
    "UsageContext",
    "charged",
    "claim_usage",
    "counted_resources",
    "evaluator_for",
    "is_living",
    "is_special",
    "pod_usage",
    "recalculated",
    "special_by_pod",
    "usage_context",
]
