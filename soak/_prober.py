"""A client of its own process that measures how long small requests take, until its input ends.

`python -m soak._prober PORT FOLDER` writes one line for each request: what it was, when it was
sent, and how long its answer took. It is a process, because the campaign's own work would delay it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from itertools import count
from pathlib import Path

from soak._http import Address, Connection
from soak._servers import client_context

PAUSE_S = 0.002
NAMESPACE = "bystander"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


async def probe(port: int, folder: Path, ended: asyncio.Event) -> None:
    """Send small requests, one after the other."""
    connection = await Connection.open(Address(port, client_context(folder)))
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await connection.ask("POST", "/api/v1/namespaces", namespace)
    for number in count():
        if ended.is_set():
            return
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number % 100}"}}
        for method, path, body in (
            ("POST", MAPS, tree),
            ("GET", f"{MAPS}/m{number % 100}", None),
            ("GET", f"{MAPS}?limit=5", None),
            ("DELETE", f"{MAPS}/m{number % 100}", None),
        ):
            sent = time.monotonic()
            reply = await connection.ask(method, path, body)
            took_s = time.monotonic() - sent
            print(f"{method} {sent:.4f} {took_s:.4f} {reply.status}")
            await asyncio.sleep(PAUSE_S)


async def main(port: int, folder: Path) -> None:
    """Probe until standard input ends."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    await probe(port, folder, ended)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
