"""How long a diagnosis may take: some seconds for each, and not too many for all."""

from __future__ import annotations

from collections.abc import Callable

from mooring.insight.explain.trials import EFFORT, Effort

EACH_S = 5.0
ALL_S = 60.0


class Patience:
    """Gives each diagnosis its time, by a clock in seconds."""

    def __init__(
        self, clock: Callable[[], float], *, each_s: float = EACH_S, all_s: float = ALL_S
    ) -> None:
        self._clock = clock
        self._each_s = each_s
        self._end_s = clock() + all_s

    def effort(self) -> Effort:
        """Return what a diagnosis that begins now may take."""
        begin_s = self._clock()
        end_s = min(begin_s + self._each_s, self._end_s)

        def interrupt() -> str | None:
            if self._clock() < end_s:
                return None
            return f"no answer after {end_s - begin_s:.0f} s" if begin_s < end_s else "no time left"

        return EFFORT._replace(interrupt=interrupt)
