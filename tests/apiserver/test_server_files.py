"""A server whose files cannot be written says so, works, and writes them later."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from moorage.apiserver import server_files
from moorage.apiserver.auth.credentials import write_privately
from moorage.apiserver.server import serve
from moorage.apiserver.settings import Settings
from tests.client.servers import until

WAIT_S = 60


def test_a_server_whose_kubeconfig_cannot_be_written_serves_and_writes_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_files, "WRITE_AGAIN_S", 0.01)
    path = tmp_path / "kubeconfig"
    path.mkdir()

    async def run() -> None:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        settings = Settings(tmp_path, port=0, allows_all=True)
        serving = asyncio.create_task(serve(settings, started.set_result))
        url = await started
        path.rmdir()
        await until(path.exists)
        assert url in path.read_text()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(asyncio.wait_for(run(), WAIT_S))
    assert f"kubeconfig cannot be written: {path}: Is a directory" in caplog.text


def test_certificates_that_cannot_be_renewed_are_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server_files, "RENEW_EVERY_S", 0.01)
    monkeypatch.setattr(server_files, "RENEW_AGAIN_S", 0.01)
    settings = Settings(tmp_path, port=0, has_rbac=True)
    (tmp_path / "pki").write_text("in the way")

    async def run() -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        task = asyncio.create_task(server_files.renew_regularly(settings, context))
        await until(lambda: "certificates are not renewed" in caplog.text)
        (tmp_path / "pki").unlink()
        await until((tmp_path / "pki" / "server.crt").exists)
        assert not task.done()
        task.cancel()

    asyncio.run(asyncio.wait_for(run(), WAIT_S))


def test_a_file_that_has_its_content_needs_no_disk(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write_privately(path, b"same")
    inode = path.stat().st_ino
    write_privately(path, b"same")
    assert path.stat().st_ino == inode
    write_privately(path, b"same, and more")
    assert path.read_bytes() == b"same, and more"
