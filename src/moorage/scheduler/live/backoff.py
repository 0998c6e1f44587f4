"""How long entries of the queue wait before they are tried again: longer each time.

Kubernetes tries a group again when its backoff is over, whatever happens, in whole seconds. We
wait for an event that can help it, and then until the time at which Kubernetes would have tried it:
the attempts between would have ended as the last one did.
"""

from __future__ import annotations

from math import ceil, floor, sqrt

from msgspec import Struct

WINDOW_S = 1.0  # groups are tried at the end of a second


class Backoff(Struct, frozen=True):
    """How long an entry waits after a try: longer each time."""

    first_s: float = 1.0
    most_s: float = 10.0
    parked_most_s: float = 300.0

    def after(self, tries: int, *, pods: int = 1) -> float:
        """Return how long to wait after this number of tries, for an entry of so many pods."""
        most_s = self.most_s * sqrt(max(pods, 1))
        return float(min(self.first_s * 2 ** min(max(tries - 1, 0), 30), most_s))

    def group_until_s(self, tried_s: float, tries: int, pods: int) -> float:
        """Return until when a group waits that was tried at a moment."""
        return floor(tried_s + self.after(tries, pods=pods)) + WINDOW_S

    def next_of_group(
        self, until_s: float, tries: int, pods: int, now_s: float
    ) -> tuple[float, int]:
        """Return the first time from now on at which a group is tried, and how often it was then.

        `until_s` is when it could be tried after the last of these tries.
        """
        while until_s < now_s:
            tries += 1
            step_s = self.group_until_s(until_s, tries, pods) - until_s
            if self.after(tries, pods=pods) == self.after(tries + 1, pods=pods):
                return until_s + ceil((now_s - until_s) / step_s) * step_s, tries
            until_s += step_s
        return until_s, tries
