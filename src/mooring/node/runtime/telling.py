"""Tells whoever follows a runtime what becomes of its containers.

A follower that is slow hears of each container how it is now, not all that it was: so nothing piles
up.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from mooring.node.runtime.contract import ContainerId, ContainerState


class _Follower:
    """What one follower has not heard yet."""

    def __init__(self) -> None:
        self.news: dict[ContainerId, ContainerState] = {}
        self.is_told = asyncio.Event()


class Teller:
    """All followers of a runtime."""

    def __init__(self) -> None:
        self._followers: list[_Follower] = []

    def tell(self, state: ContainerState) -> None:
        """Tell all that a container is now in this state."""
        for each in self._followers:
            each.news.pop(state.id, None)  # it comes in the order of what is said last
            each.news[state.id] = state
            each.is_told.set()

    def follow(self) -> AsyncIterator[ContainerState]:
        """Yield the states that are told from now on, also before the first is asked for."""
        follower = _Follower()
        self._followers.append(follower)
        return self._follow(follower)

    async def _follow(self, follower: _Follower) -> AsyncIterator[ContainerState]:
        try:
            while True:
                await follower.is_told.wait()
                while follower.news:
                    yield follower.news.pop(next(iter(follower.news)))
                follower.is_told.clear()
        finally:
            self._followers.remove(follower)
