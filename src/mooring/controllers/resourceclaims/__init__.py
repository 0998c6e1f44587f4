"""Claims come from templates and go with those who use them.

Three loops share this work; each has objects of one kind as its keys.

pods      claims for the entries of pods, their names in the status, repair of bypassed scheduling
groups    claims for the entries of groups of pods
releases  stale reservations, deallocation, deletion of what nobody needs any more

entries   what is to be done for one entry of a pod or group
indexes   how claims, pods and groups are found by each other
counting  the metrics
"""

from mooring.controllers.resourceclaims.counting import ClaimMetrics, claim_counts
from mooring.controllers.resourceclaims.groups import GroupClaims, plan_group
from mooring.controllers.resourceclaims.pods import PodClaims, plan_pod
from mooring.controllers.resourceclaims.releases import ClaimReleases, plan_claim
from mooring.controllers.vanished import Vanished

__all__ = [
    "ClaimMetrics",
    "ClaimReleases",
    "GroupClaims",
    "PodClaims",
    "Vanished",
    "claim_counts",
    "plan_claim",
    "plan_group",
    "plan_pod",
]
