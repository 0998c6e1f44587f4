"""MOVED."""

from mooring.claims.reservations import consumer_of as consumer_of
from mooring.claims.reservations import is_at_most_for as is_at_most_for
from mooring.claims.reservations import is_group_consumer as is_group_consumer
from mooring.claims.reservations import is_pod_consumer as is_pod_consumer
from mooring.claims.reservations import is_reserved_for as is_reserved_for
from mooring.claims.reservations import pod_consumer as pod_consumer
from mooring.claims.reservations import reserved as reserved
from mooring.claims.reservations import unprotected as unprotected

__all__ = [
    "consumer_of",
    "is_at_most_for",
    "is_group_consumer",
    "is_pod_consumer",
    "is_reserved_for",
    "pod_consumer",
    "reserved",
    "unprotected",
]
