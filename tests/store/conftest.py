"""One etcd for all tests of a run, started when first wanted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.etcdserver import EtcdServer, find_etcd, running_etcd
from tests.store.harness import EtcdHarness, Harness, MemoryHarness, SqliteHarness

NO_ETCD = "etcd-server cannot be had: the store on etcd is not tested"


@pytest.fixture(scope="session")
def etcd() -> Iterator[EtcdServer]:
    if find_etcd() is None:
        pytest.skip(NO_ETCD)
    with running_etcd() as server:
        yield server


@pytest.fixture(params=["sqlite", "etcd", "memory"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Harness:
    if request.param == "sqlite":
        return SqliteHarness(tmp_path)
    if request.param == "memory":
        return MemoryHarness()
    return EtcdHarness(request.getfixturevalue("etcd"))
