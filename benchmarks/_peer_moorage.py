"""Moorage as a peer of itself: compare two checkouts in one run, before and after a change.

    dev.py bench live --peer env PYTHONPATH=../before/src python -m benchmarks._peer_moorage

It keeps the contract of `benchmarks._peer`, with the server and the programs of `bench live`.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from benchmarks._live_cluster import programs, serving
from benchmarks._peer import READY


async def run(folder: Path) -> None:
    """Run server and programs until interrupted."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end.set)
    async with serving(folder, plain=False), programs(folder):
        print(READY, flush=True)
        await end.wait()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
