"""Strategic merge patch: lists are merged by what their items are, not as a whole."""

from __future__ import annotations

from mooring.apiserver.patching.strategic.maps import strategic_merge

__all__ = ["strategic_merge"]
