"""policy/v1: how many pods may be disrupted at a time."""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Condition, Json, LabelSelector, ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always
from moorage.api.timestamp import Timestamp

GROUP = "policy"
API_VERSION = f"{GROUP}/v1"

DISRUPTION_ALLOWED = "DisruptionAllowed"  # the condition, and its reasons
SUFFICIENT_PODS = "SufficientPods"
INSUFFICIENT_PODS = "InsufficientPods"
SYNC_FAILED = "SyncFailed"

IF_HEALTHY_BUDGET = "IfHealthyBudget"  # policies for pods that are not ready
ALWAYS_ALLOW = "AlwaysAllow"


class PodDisruptionBudgetSpec(Open, frozen=True, gc=False):
    """Which pods, and how many of them must stay or may be missing."""

    min_available: Json = None  # an integer or a percentage
    selector: LabelSelector | None = None
    max_unavailable: Json = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Open, frozen=True, gc=False):
    """How many pods there are, and how many may be disrupted now."""

    observed_generation: Int64 = 0
    disrupted_pods: dict[str, Timestamp] = field(default_factory=dict)
    disruptions_allowed: Int32 = always(0)
    current_healthy: Int32 = always(0)
    desired_healthy: Int32 = always(0)
    expected_pods: Int32 = always(0)
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Open, frozen=True, gc=False):
    """A bound on how many pods are disrupted at a time, by evictions or by preemption."""

    api_version: str = always(API_VERSION)
    kind: str = always("PodDisruptionBudget")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodDisruptionBudgetSpec = always(PodDisruptionBudgetSpec())
    status: PodDisruptionBudgetStatus = always(PodDisruptionBudgetStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(PodDisruptionBudget, "poddisruptionbudgets", "pdb", has_status=True),
)
