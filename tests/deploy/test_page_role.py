"""The page beside a cluster: `moor ui --live` with exactly the role of deploy/kustomize/page."""

from __future__ import annotations

import asyncio
import signal
import urllib.request
from contextlib import AsyncExitStack
from http.cookiejar import CookieJar
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from moorage.api.gates import Gates
from moorage.apiserver.settings import Auditing, Settings
from moorage.client.client_factory import http_client, load_rest_config
from tests.deploy.manifests import ROOT, Tree, command_of, of_kind, serving, trees_of
from tests.deploy.test_roles import Access, Recorded, Server, allowed
from tests.stories.stage import profile_trees

PROGRAM = "page"
# What is not asked for here, and why it is allowed.
RARE = {
    *(
        Access("watch", "scheduling.k8s.io", resource)
        for resource in ("compositepodgroups", "podgroups", "workloads")  # not served by default
    ),
    Access("get", "", "namespaces"),  # one rule for all that read a cluster
}
PAGE = ROOT / "deploy" / "kustomize" / "page" / "page.yaml"
NAMESPACED = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "moorage"}}'
WAIT_S = 60.0


class Shown(NamedTuple):
    """What the page showed, and what it asked the server for."""

    devices: int
    links: list[str]
    recorded: Recorded


def page_trees() -> list[Tree]:
    return trees_of(PAGE.read_text())


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return asyncio.run(_shown(tmp_path_factory.mktemp("page")))


async def _shown(folder: Path) -> Shown:
    log, trees = folder / "audit.log", page_trees()
    settings = Settings(
        folder / "server",
        port=0,
        has_rbac=True,
        gates=Gates.parse(preset="kubernetes-1.37"),
        auditing=Auditing(str(log)),
    )
    async with asyncio.timeout(180), AsyncExitStack() as stack:
        await stack.enter_async_context(serving(settings))
        kubeconfig = folder / "server" / "kubeconfig"
        client = await stack.enter_async_context(http_client(load_rest_config(str(kubeconfig))))
        server = Server(client, log, kubeconfig, (PROGRAM,))
        await server.create(NAMESPACED)
        for tree in (*trees, *profile_trees("dgx-h100", "scalar")):
            await server.create(tree)
        command = command_of(of_kind(trees, "Deployment")["moorage-page"], trees, folder / "page")
        own = await server.kubeconfig_of("moorage-page", folder / "page")
        command = ["--port=0" if each.startswith("--port=") else each for each in command]
        devices, links = await _looked_at([*command, f"--kubeconfig={own}"])
        return Shown(devices, links, server.recorded())


async def _looked_at(command: list[str]) -> tuple[int, list[str]]:
    """Run the page; return how many devices it shows, and its first link and the one after it."""
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_S):
            first = (await process.stdout.readline()).decode().strip()
            devices = await asyncio.to_thread(_devices_at, first)
            process.send_signal(signal.SIGHUP)
            second = (await process.stdout.readline()).decode().strip()
            assert await asyncio.to_thread(_devices_at, second) == devices
    finally:
        process.terminate()
        await process.wait()
    return devices, [first, second]


def _devices_at(link: str) -> int:
    """Sign in with a link, and count the devices of the fleet."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    with opener.open(link, timeout=30):
        pass
    page = f"{link.partition('/ui/')[0]}/ui"
    with opener.open(f"{page}/object?kind=Node&name=dgx-h100-0", timeout=30) as answer:
        assert "dgx-h100-0" in msgspec.json.decode(answer.read())["yaml"]
    with opener.open(f"{page}/fleet", timeout=30) as answer:
        fleet = msgspec.json.decode(answer.read())
    return sum(_column(fleet["nodes"]["devices"]))


def _column(column: list[int] | dict[str, list[int]]) -> list[int]:
    """Return a column of numbers, which may be written as runs."""
    if isinstance(column, list):
        return column
    runs = column["rle"]
    pairs = zip(runs[::2], runs[1::2], strict=True)
    return [value for value, count in pairs for _ in range(count)]


def test_the_page_shows_the_fleet_to_who_has_its_link_and_gives_another_when_asked(
    shown: Shown,
) -> None:
    assert shown.devices == 24
    assert len(set(shown.links)) == 2


def test_it_asks_for_nothing_but_what_its_role_allows(shown: Shown) -> None:
    assert shown.recorded.forbidden == []
    assert shown.recorded.asked[PROGRAM] - allowed(page_trees(), PROGRAM) == set()


def test_its_role_allows_nothing_but_what_it_asks_for(shown: Shown) -> None:
    unused: set[Access] = allowed(page_trees(), PROGRAM) - shown.recorded.asked[PROGRAM]
    assert unused - RARE == set()
