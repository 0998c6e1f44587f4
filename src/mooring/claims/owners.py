"""MOVED."""

from mooring.api.meta import namespaced_name as key_of
from mooring.claims.pod_claims import Owner as Owner
from mooring.claims.pod_claims import check_made_for_group as check_made_for_group
from mooring.claims.pod_claims import check_made_for_pod as check_made_for_pod
from mooring.claims.pod_claims import controller_of as controller_of
from mooring.claims.pod_claims import group_name as group_name
from mooring.claims.pod_claims import is_group as is_group
from mooring.claims.pod_claims import is_pod as is_pod
from mooring.claims.pod_claims import owning_pod as owning_pod

__all__ = [
    "Owner",
    "check_made_for_group",
    "check_made_for_pod",
    "controller_of",
    "group_name",
    "is_group",
    "is_pod",
    "key_of",
    "owning_pod",
]
