"""coordination.k8s.io/v1: leases, by which programs agree on a leader."""

from __future__ import annotations

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Int32, Open, always
from moorage.api.timestamp import MicroTimestamp

API_VERSION = "coordination.k8s.io/v1"


class LeaseSpec(Open, frozen=True, gc=False):
    """Who holds a lease, since when and for how long."""

    holder_identity: str | None = None
    lease_duration_seconds: Int32 | None = None
    acquire_time: MicroTimestamp | None = None
    renew_time: MicroTimestamp | None = None
    lease_transitions: Int32 | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Open, frozen=True, gc=False):
    """Something that one holder has at a time."""

    api_version: str = always(API_VERSION)
    kind: str = always("Lease")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: LeaseSpec = always(LeaseSpec())


KINDS: tuple[Kind, ...] = (declare_kind(Lease, "leases"),)
