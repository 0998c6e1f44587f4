"""A client that limits its concurrent requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.api.core import Pod
from moorage.client.errors import UnavailableError
from moorage.client.writes import Create, Delete, Target
from moorage.node.agent import LimitedClient
from tests.node.world import make_pod


class Counting:
    """Counts who asks at the same time; the first calls fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.now = self.most = self.calls = 0

    async def write(self, write: Any) -> None:
        self.calls += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        if self.calls <= self.failures:
            raise UnavailableError("the connection was closed")


def written(client: Counting, write: Any, times: int = 1) -> None:
    async def run() -> None:
        few = LimitedClient(client, 3)  # type: ignore[arg-type]
        await asyncio.gather(*(few.write(write) for _ in range(times)))

    asyncio.run(run())


def test_few_are_asked_at_the_same_time() -> None:
    client = Counting()
    written(client, Delete(Target(Pod, "default", "p", "u")), 20)
    assert (client.calls, client.most) == (20, 3)


def test_what_may_be_done_twice_is_tried_once_more() -> None:
    client = Counting(failures=1)
    written(client, Delete(Target(Pod, "default", "p", "u")))
    assert client.calls == 2
    with pytest.raises(UnavailableError):
        written(Counting(failures=1), Create(make_pod()))
