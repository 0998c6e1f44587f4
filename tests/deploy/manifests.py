"""The manifests of deploy/, and the programs of their Deployments as processes of this machine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from moorage.apiserver.server import serve
from moorage.apiserver.settings import Settings

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy" / "kustomize" / "base"
MOOR = Path(sys.executable).parent / "moor"
NAMESPACE = "moorage"
WAIT_S = 60.0

Tree = dict[str, Any]


def trees_of(text: str) -> list[Tree]:
    return [tree for tree in yaml.safe_load_all(text) if tree]


def base() -> list[Tree]:
    """Return the manifests of the kustomize base, in the order of its files."""
    names = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [tree for name in names for tree in trees_of((BASE / name).read_text())]


def of_kind(trees: Iterable[Tree], kind: str) -> dict[str, Tree]:
    return {tree["metadata"]["name"]: tree for tree in trees if tree["kind"] == kind}


def command_of(deployment: Tree, trees: Iterable[Tree], folder: Path) -> list[str]:
    """Return a Deployment's command for this machine: files in a folder, ports of its own."""
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    maps = of_kind(trees, "ConfigMap")
    config = folder / "config"
    config.mkdir(parents=True)
    for volume in pod["volumes"]:
        if "configMap" in volume:
            for name, text in maps[volume["configMap"]["name"]]["data"].items():
                (config / name).write_text(text)
    program, *arguments = container["command"]
    assert program == "moor"
    files = {"=/etc/moorage/": f"={config}/", "=/var/run/moorage/": f"={folder}/run/"}
    return [str(MOOR), *(_here(each, files) for each in arguments)]


def _here(argument: str, files: dict[str, str]) -> str:
    start = "--metrics-bind-address="
    if argument.startswith(start):
        return f"{start}127.0.0.1:0"
    path = next((path for path in files if path in argument), "")
    return argument.replace(path, files[path]) if path else argument


class RunningProgram:
    """A process, and the lines that it has printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.lines: list[str] = []

    async def printed(self, start: str) -> str:
        """Wait for a line with this start, and return the rest of it."""
        async with asyncio.timeout(WAIT_S):
            while True:
                for line in self.lines:
                    if line.startswith(start):
                        return line.removeprefix(start)
                assert self._process.stderr is not None
                line = (await self._process.stderr.readline()).decode()
                assert line, f"it ended: {self.lines}"
                self.lines.append(line.rstrip("\n"))

    async def stop(self) -> None:
        """Stop it, and read what it printed last."""
        if self._process.returncode is None:
            self._process.terminate()
        _, rest = await self._process.communicate()
        self.lines += rest.decode().splitlines()


@asynccontextmanager
async def running(command: list[str]) -> AsyncIterator[RunningProgram]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    program = RunningProgram(process)
    try:
        yield program
    finally:
        await program.stop()


@asynccontextmanager
async def serving(settings: Settings) -> AsyncIterator[str]:
    """Run a server on a free port during a block, and give its URL."""
    started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve(settings, started.set_result))
    try:
        yield await started
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
