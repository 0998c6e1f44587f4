"""scheduling.k8s.io/v1: priority classes."""

from __future__ import annotations

from mooring.api.meta import ObjectMeta
from mooring.api.structs import Int32, Open, always

API_VERSION = "scheduling.k8s.io/v1"

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CRITICAL_PRIORITY = 2 * HIGHEST_USER_PRIORITY


class PriorityClass(Open, frozen=True, gc=False):
    """A name for a priority."""

    api_version: str = always(API_VERSION)
    kind: str = always("PriorityClass")
    metadata: ObjectMeta = always(ObjectMeta())
    value: Int32 = always(0)
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
