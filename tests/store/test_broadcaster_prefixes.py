"""Each watch gets the changes of the keys that begin with its prefix, whatever it is."""

from __future__ import annotations

import asyncio
import random

import pytest

from moorage.store.broadcaster import Broadcaster, BroadcastWatch, HistoryPage
from moorage.store.contract import Deletion, Entry, KeyChange, Put

PARTS = ("a", "a/", "ab/", "b/", "b/a", "b/c/", "c")


@pytest.mark.parametrize("seed", range(10))
def test_watches_get_the_changes_below_their_prefix(seed: int) -> None:
    asyncio.run(_check(random.Random(seed)))


async def _check(chosen: random.Random) -> None:
    def text() -> str:
        return "/" + "".join(chosen.choice(PARTS) for _ in range(chosen.randrange(4)))

    broadcaster = Broadcaster(0, _no_history)
    watches: dict[BroadcastWatch, list[int]] = {}
    revision = 0
    for _ in range(30):
        for _ in range(chosen.randrange(3)):
            watch = broadcaster.watch(text(), revision, 1000)
            watch.request_progress()
            await watch.batch()  # So it is subscribed.
            watches[watch] = []
        if watches and chosen.random() < 0.2:
            gone = chosen.choice(list(watches))
            gone.close()
            del watches[gone]
        changes: list[KeyChange] = []
        for _ in range(chosen.randrange(1, 6)):
            revision += 1
            entry = Entry(text() + "k", b"v", revision, revision)
            changes.append(chosen.choice((Put(entry, None), Deletion(entry, revision))))
        broadcaster.publish(changes)
        for watch, seen in watches.items():
            if wanted := [each.revision for each in changes if each.key.startswith(watch.prefix)]:
                seen += [event.revision for event in await watch.batch()]
                assert seen[-len(wanted) :] == wanted
            watch.request_progress()
            assert len(await watch.batch()) == 1  # There is nothing else.


async def _no_history(prefix: str, after: int, through: int) -> HistoryPage:
    raise AssertionError((prefix, after, through))
