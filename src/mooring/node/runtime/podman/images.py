"""Images, pulled as the policy of a container wants it.

# Always            each time          IfNotPresent   when it is not here      Never
# pull fails        ErrImagePull, then ImagePullBackOff: 10 s, 20 s, … 5 minutes
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple
from weakref import WeakValueDictionary

from mooring.kit.backoff import Backoff
from mooring.kit.clock import Clock
from mooring.node.runtime.contract import RuntimeRefusedError
from mooring.node.runtime.podman.commandlines import checked_image
from mooring.node.runtime.podman.commands import Podman

ALWAYS, NEVER = "Always", "Never"
PULL_S_MAX = 600.0
FAILURES_MAX = 1024  # images whose failures are remembered
BACKOFF = Backoff(first_s=10.0, longest_s=300.0)


class _Failure(NamedTuple):
    times: int
    until_s: float
    text: str


class Images:
    """Has images where they are needed."""

    def __init__(self, podman: Podman, clock: Clock) -> None:
        self._podman = podman
        self._clock = clock
        self._failures: dict[str, _Failure] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def have(self, image: str, policy: str) -> None:
        """Have an image here, or raise RuntimeRefusedError."""
        checked_image(image)
        async with self._turns.setdefault(image, asyncio.Lock()):
            if policy != ALWAYS and await self._is_here(image):
                return
            if policy == NEVER:
                text = f'Container image "{image}" is not present with pull policy of Never'
                raise RuntimeRefusedError("ErrImageNeverPull", text)
            await self._pull(image)

    async def _is_here(self, image: str) -> bool:
        return (await self._podman.run(["image", "exists", image])).code == 0

    async def _pull(self, image: str) -> None:
        last = self._failures.get(image)
        if last is not None and self._clock.monotonic() < last.until_s:
            text = f'Back-off pulling image "{image}": ErrImagePull: {last.text}'
            raise RuntimeRefusedError("ImagePullBackOff", text)
        done = await self._podman.run(["pull", "--quiet", image], PULL_S_MAX)
        if done.code == 0:
            self._failures.pop(image, None)
            return
        text = f'failed to pull image "{image}": {done.why}'
        self._note(image, 1 if last is None else last.times + 1, text)
        raise RuntimeRefusedError("ErrImagePull", text)

    def _note(self, image: str, count: int, text: str) -> None:
        until_s = self._clock.monotonic() + BACKOFF.delay_s(count)
        self._failures.pop(image, None)
        while len(self._failures) >= FAILURES_MAX:
            del self._failures[next(iter(self._failures))]  # the oldest
        self._failures[image] = _Failure(count, until_s, text)


def default_policy(image: str) -> str:
    """Return the policy of a container that says none: what may change is looked up each time."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return ALWAYS if not digest and tag in ("", "latest") else "IfNotPresent"
