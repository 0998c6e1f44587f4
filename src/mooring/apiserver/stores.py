"""The store of a server: in its folder, or in etcd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mooring.apiserver.settings import Etcd
from mooring.store.contract import Store


@asynccontextmanager
async def open_store(folder: Path, etcd: Etcd | None) -> AsyncIterator[Store]:
    """Open the store that is meant; close it at the end."""
    if etcd is None:
        from mooring.store.sqlite import open_sqlite

        async with open_sqlite(folder) as sqlite:
            yield sqlite
    else:
        from mooring.store.etcd import Trust, open_etcd

        trust = Trust(etcd.authority, etcd.certificate, etcd.key)
        async with open_etcd(etcd.servers, root=etcd.root, trust=trust) as remote:
            yield remote
