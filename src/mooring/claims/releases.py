"""MOVED."""

from mooring.claims.reservations import Absent as Absent  # noqa
from mooring.claims.reservations import AskServer as AskServer
from mooring.claims.reservations import DeleteClaim as Delete
from mooring.claims.reservations import ConsumerState as Knowledge
from mooring.claims.reservations import RemoveFinalizer as RemoveFinalizer
from mooring.claims.reservations import ReleaseStep as Step
from mooring.claims.reservations import Unknown as Unknown
from mooring.claims.reservations import WriteStatus as WriteStatus
from mooring.claims.reservations import is_pod_done as is_pod_done
from mooring.claims.reservations import release_steps as release_steps
from mooring.claims.reservations import review as review
from mooring.claims.reservations import seen_group as seen_group
from mooring.claims.reservations import seen_pod as seen_pod

__all__ = [
    "Absent",
    "AskServer",
    "Delete",
    "Knowledge",
    "RemoveFinalizer",
    "Step",
    "Unknown",
    "WriteStatus",
    "is_pod_done",
    "release_steps",
    "review",
    "seen_group",
    "seen_pod",
]
