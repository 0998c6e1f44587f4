"""Claims that pods were given and that are not written yet."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api.resource.v1 import ResourceClaim


class Hold(NamedTuple):
    """A claim that `reserve` gave to pods, and how it was before that."""

    before: ResourceClaim
    pods: frozenset[str]  # keys of those that have not been released
