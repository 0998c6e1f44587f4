"""The expected "no": a value with its reason, in Kubernetes' words where it has some."""

from __future__ import annotations

from msgspec import Struct


class Refused(Struct, frozen=True):
    """Something cannot be had as things are."""

    reason: str
