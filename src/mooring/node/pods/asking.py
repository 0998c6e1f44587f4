"""How a container is: a command run beside it, a page got, a connection opened."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import NamedTuple

from mooring.kit.clock import Clock
from mooring.node.pods.probes import Action, Exec, Http, Pause, Tcp, Unsupported
from mooring.node.runtime.contract import ContainerId, ExecSession, Runtime, RuntimeRefusedError

TEXT_MAX = 1024


class Answer(NamedTuple):
    """What came back."""

    is_well: bool
    text: str = ""


class Asking:
    """Asks containers, with a bound on the time."""

    def __init__(self, runtime: Runtime, clock: Clock, host: str) -> None:
        self._runtime = runtime
        self._clock = clock
        self._host = host or "127.0.0.1"

    async def ask(self, id_: ContainerId, action: Action, timeout_s: float) -> Answer:
        """Return how it went; never raises but when cancelled."""
        work = asyncio.ensure_future(self._ask(id_, action))
        timer = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return Answer(False, f"timed out after {timeout_s:g}s")
            return work.result()
        except (OSError, RuntimeRefusedError, ValueError, ssl.SSLError) as error:
            return Answer(False, str(error)[:TEXT_MAX])
        finally:
            for task in (work, timer):
                task.cancel()
            await asyncio.gather(work, timer, return_exceptions=True)

    async def _ask(self, id_: ContainerId, action: Action) -> Answer:
        match action:
            case Exec(command=command):
                return await self._execute(id_, command)
            case Http():
                return await self._get(action)
            case Tcp(host=host, port=port):
                _, writer = await asyncio.open_connection(host or self._host, port)
                writer.close()
                return Answer(True)
            case Pause(seconds=seconds):
                await self._clock.sleep(seconds)
                return Answer(True)
            case Unsupported(what=what):
                return Answer(False, f"{what} is not supported by this node")

    async def _execute(self, id_: ContainerId, command: tuple[str, ...]) -> Answer:
        session = await self._runtime.execute(id_, command, tty=False, stdin=False)
        try:
            text = await _output(session)
            code = await session.wait()
            return Answer(code == 0, text)
        except asyncio.CancelledError:
            await session.kill()
            raise

    async def _get(self, page: Http) -> Answer:
        host = page.host or self._host
        context = _unchecked() if page.is_secure else None
        reader, writer = await asyncio.open_connection(host, page.port, ssl=context)
        try:
            lines = [f"GET {page.path} HTTP/1.1", f"Host: {host}:{page.port}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in page.headers]
            if any("\r" in line or "\n" in line for line in lines):
                raise ValueError("a line break in a path or header of the probe")
            writer.write(("\r\n".join((*lines, "User-Agent: kube-probe/1.37", "", ""))).encode())
            await writer.drain()
            status = (await reader.readline()).decode("latin-1", "replace").split()
        finally:
            writer.close()
        code = int(status[1]) if len(status) > 1 and status[1].isdigit() else 0
        return Answer(200 <= code < 400, f"HTTP probe failed with statuscode: {code}")


async def _output(session: ExecSession) -> str:
    data = b""
    async for _, part in session.output():
        data = (data + part)[:TEXT_MAX]
    return data.decode("utf-8", "replace")


def _unchecked() -> ssl.SSLContext:
    """Return how to speak TLS with whoever answers: probes check no certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLError):
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    return context
