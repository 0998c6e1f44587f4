"""kubectl asks for tokens and meets quotas."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.apiserver.programs import NO_KUBECTL, find_kubectl
from tests.apiserver.test_secure_server import Running, running

KUBECTL = find_kubectl()

pytestmark = pytest.mark.skipif(KUBECTL is None, reason=NO_KUBECTL)


async def kubectl(server: Running, *arguments: str, token: str = "") -> str:
    """Return all that kubectl says, as the administrator or by a token."""
    folder = server.folder
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    environment["KUBECONFIG"] = "" if token else str(folder / "kubeconfig")
    shown = (
        f"--server=https://127.0.0.1:{server.port}",
        f"--certificate-authority={folder / 'pki' / 'ca.crt'}",
        f"--token={token}",
    )
    program = await asyncio.create_subprocess_exec(
        str(KUBECTL),
        *arguments,
        *(shown if token else ()),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await program.communicate()
    return output.decode()


def test_a_token_that_kubectl_creates_is_good(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        token = (await kubectl(server, "create", "token", "default", "--duration=20m")).strip()
        told = await kubectl(server, "auth", "whoami", "-o", "yaml", token=token)
        assert "username: system:serviceaccount:default:default" in told
        told = await kubectl(server, "get", "secrets", token=token)
        assert "cannot list resource" in told
        told = await kubectl(server, "create", "token", "default", "--duration=5s")
        assert "may not specify a duration less than 10 minutes" in told

    running(tmp_path, scenario)


def test_kubectl_meets_a_quota(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        await kubectl(server, "create", "quota", "q", "--hard=count/configmaps=1")
        ready = "--for=jsonpath={.status.used.count/configmaps}=0"
        assert "condition met" in await kubectl(server, "wait", ready, "quota/q")
        assert "created" in await kubectl(server, "create", "configmap", "a")
        told = await kubectl(server, "create", "configmap", "b")
        assert "exceeded quota: q, requested: count/configmaps=1" in told
        told = await kubectl(server, "describe", "quota", "q")
        assert "count/configmaps  1     1" in told

    running(tmp_path, scenario)
