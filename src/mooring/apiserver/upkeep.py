"""What a server does for its store while it runs: forget old changes."""

from __future__ import annotations

import asyncio
import logging

from mooring.store.contract import Store
from mooring.store.errors import StoreError

LOG = logging.getLogger(__name__)

KEPT_S = 300.0  # how far back watches and pages of lists can go, at the least


async def compact_regularly(store: Store, kept_s: float = KEPT_S) -> None:
    """Forget changes that are older than a while, again and again."""
    while True:
        try:
            revision = await store.revision()
            await asyncio.sleep(kept_s)
            await store.compact(revision)
        except StoreError as error:
            LOG.warning("compaction: %s", error)
            await asyncio.sleep(kept_s)
