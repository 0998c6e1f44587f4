"""autoscaling: HorizontalPodAutoscalers; Scale is in `apps`.

v2          the structs of v2, in which objects are stored
versions    the structs of v1, kinds in both versions, and conversion between them
"""

from moorage.api.autoscaling.v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
)
from moorage.api.autoscaling.versions import KINDS, from_hub, to_hub

__all__ = [
    "KINDS",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerSpec",
    "HorizontalPodAutoscalerStatus",
    "from_hub",
    "to_hub",
]
