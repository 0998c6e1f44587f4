"""What a server does while it runs."""

from __future__ import annotations

import asyncio

from moorage.apiserver.storage.store import compact_regularly
from tests.apiserver.client import CLASSES, Client, device_class


def test_old_changes_are_forgotten(client: Client) -> None:
    before = client.get(CLASSES).json["metadata"]["resourceVersion"]
    client.post(CLASSES, device_class())

    async def begin() -> asyncio.Task[None]:
        return asyncio.create_task(compact_regularly(client.store, kept_s=0.001))

    task = client.run(begin())
    exact = f"{CLASSES}?resourceVersion={before}&resourceVersionMatch=Exact"
    client.until(lambda: client.get(exact).status == 410)
    task.cancel()
    assert client.get(CLASSES).status == 200
