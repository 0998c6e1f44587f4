"""Health endpoints: a server that cannot write is alive, and says that it is not ready."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.store.sqlite import writer as writer_module
from tests.apiserver.client import CLASSES, CONFIG_MAPS, Client, device_class


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_healthy_server_lists_its_checks(client: Client) -> None:
    for path, checks in (
        ("/livez", ["ping", "store"]),
        ("/healthz", ["ping", "store"]),
        ("/readyz", ["ping", "store", "store-writable"]),
    ):
        assert client.get(path).body == b"ok"
        lines = client.get(f"{path}?verbose").body.decode().splitlines()
        assert lines == [*(f"[+]{name} ok" for name in checks), f"{path[1:]} check passed"]
        for name in checks:
            assert client.get(f"{path}/{name}").body == b"ok"
    assert client.get("/livez/store-writable").status == 404


def test_a_server_that_cannot_write_refuses_writes_and_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "PAUSE_S_TROUBLE", 0.002)
    client = Client(tmp_path / "store")
    try:
        assert client.post(CONFIG_MAPS, config_map("before")).status == 201
        watch = client.watch(f"{CONFIG_MAPS}?watch=true")
        assert watch.seen(1) == [("ADDED", "before")]
        (tmp_path / "store").rename(tmp_path / "away")
        answer = client.post(CONFIG_MAPS, config_map("during"))
        assert answer.status == 503
        assert answer.json["reason"] == "ServiceUnavailable"
        fact = "the database was deleted while the server ran"
        assert answer.json["message"] == fact
        assert client.get(CONFIG_MAPS).status == 200  # reads go on
        ready = client.get("/readyz")
        assert ready.status == 500
        assert ready.body.decode().splitlines() == [
            "[+]ping ok",
            "[+]store ok",
            f"[-]store-writable failed: {fact}",
            "readyz check failed",
        ]
        assert client.get("/livez").status == 200
        (tmp_path / "away").rename(tmp_path / "store")
        client.until(lambda: client.get("/readyz").status == 200)
        assert client.post(CLASSES, device_class()).status == 201
        assert client.post(CONFIG_MAPS, config_map("after")).status == 201
        assert ("ADDED", "after") in watch.seen(2)
    finally:
        client.close()
