"""What every runtime owes, as tests: a runtime's own module subclasses `RuntimeContract`.

class TestSim(RuntimeContract):
    @pytest.fixture
    def bench(self, …) -> Iterator[Bench]: …
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest

from moorage.api.timestamp import Timestamp
from moorage.node.runtime.contract import (
    NOT_SUPPORTED,
    ContainerId,
    ContainerSpec,
    ContainerState,
    LogRange,
    Phase,
    Runtime,
    RuntimeRefusedError,
)

WAIT_S_MAX = 60
MAIN = ContainerId("8a1c7c9e-0000-4000-8000-000000000001", "main", 0)
AGAIN = ContainerId(MAIN.pod_uid, "main", 1)
OTHER = ContainerId("8a1c7c9e-0000-4000-8000-000000000002", "main", 0)
HOSTILE = ("..", "../../x", "/srv/x", "a/b", "a\0b", "a\nb", "x" * 300, "-x", "")
FOREVER = "echo begun; while true; do sleep 0.1; done"
OBSTINATE = "trap '' TERM; echo begun; while true; do sleep 0.1; done"
POLITE = "trap 'exit 7' TERM; echo begun; while true; do sleep 0.1; done"


class Bench(Protocol):
    """A runtime that is tried."""

    runs_commands: bool  # False: on paper only

    async def open(self) -> Runtime:
        """Return a new client; all see the same containers."""

    async def close(self, runtime: Runtime) -> None:
        """Be done with a client, as if its agent had ended."""

    async def pass_time(self) -> None:
        """Let some seconds pass, where time does not pass by itself."""

    def spec(self, id_: ContainerId, script: str, **fields: Any) -> ContainerSpec:
        """Return a container that runs a script of sh."""


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test."""
    asyncio.run(asyncio.wait_for(main(), WAIT_S_MAX))


@asynccontextmanager
async def opened(bench: Bench) -> AsyncIterator[Runtime]:
    """A client, and no containers after it."""
    runtime = await bench.open()
    try:
        yield runtime
    finally:
        for uid in {each.id.pod_uid for each in await runtime.containers()}:
            await runtime.remove(uid)
        await bench.close(runtime)


async def state_of(runtime: Runtime, id_: ContainerId) -> ContainerState | None:
    """Return how a container is."""
    found = [each for each in await runtime.containers() if each.id == id_]
    return found[0] if found else None


async def ended(bench: Bench, runtime: Runtime, id_: ContainerId) -> ContainerState:
    """Return how a container ended, when it has."""
    changes = runtime.changes()
    await bench.pass_time()
    now = await state_of(runtime, id_)
    if now is not None and now.phase is Phase.EXITED:
        return now
    async for each in changes:
        if each.id == id_ and each.phase is Phase.EXITED:
            return each
    raise AssertionError("changes have no end")


async def log_of(runtime: Runtime, id_: ContainerId, log_range: LogRange | None = None) -> bytes:
    """Return a whole log."""
    parts = [part async for part in runtime.logs(id_, log_range or LogRange())]
    return b"".join(parts)


async def begun(runtime: Runtime, id_: ContainerId) -> None:
    """Wait until a script has said that it begins, so that its traps are set."""
    async for part in runtime.logs(id_, LogRange(follow=True)):
        if b"begun" in part:
            return


class RuntimeContract:
    """The tests."""

    def test_container_that_starts_runs_and_is_listed(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                state = await runtime.start(bench.spec(MAIN, FOREVER))
                assert (state.id, state.phase) == (MAIN, Phase.RUNNING)
                assert (state.finished_at, state.reason) == (None, "")
                assert state.handle.startswith(runtime.name.partition(":")[0] + "://")
                assert [each.id for each in await runtime.containers()] == [MAIN]

        run(main)

    def test_start_again_changes_nothing(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                first = await runtime.start(bench.spec(MAIN, FOREVER))
                assert await runtime.start(bench.spec(MAIN, FOREVER)) == first
                await runtime.stop(MAIN, 0)
                again = await runtime.start(bench.spec(MAIN, FOREVER))
                assert again.phase is Phase.EXITED
                assert len(await runtime.containers()) == 1

        run(main)

    @pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error")])
    def test_exit_code_and_reason_are_told(self, bench: Bench, code: int, reason: str) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                started = await runtime.start(bench.spec(MAIN, f"echo hello; exit {code}"))
                state = await ended(bench, runtime, MAIN)
                assert (state.exit_code, state.reason) == (code, reason)
                assert state.finished_at is not None
                assert not state.finished_at < started.started_at

        run(main)

    def test_changes_tell_of_the_end(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                changes = runtime.changes()
                await runtime.start(bench.spec(MAIN, FOREVER))
                await runtime.stop(MAIN, 0)
                async for each in changes:
                    assert each.id == MAIN
                    if each.phase is Phase.EXITED:
                        break

        run(main)

    def test_container_may_end_by_itself_when_it_is_stopped(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, POLITE))
                await begun(runtime, MAIN) if bench.runs_commands else None
                await runtime.stop(MAIN, 30)
                state = await state_of(runtime, MAIN)
                assert state is not None
                assert state.phase is Phase.EXITED
                assert state.exit_code == (7 if bench.runs_commands else 143)

        run(main)

    def test_container_that_does_not_end_is_killed_after_its_grace(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, OBSTINATE))
                await begun(runtime, MAIN) if bench.runs_commands else None
                await runtime.stop(MAIN, 0.2)
                state = await state_of(runtime, MAIN)
                assert state is not None
                assert state.exit_code == (137 if bench.runs_commands else 143)
                assert state.reason == "Error"

        run(main)

    def test_stop_of_what_has_ended_or_never_was_is_nothing(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, "exit 3"))
                await ended(bench, runtime, MAIN)
                await runtime.stop(MAIN, 1)
                await runtime.stop(OTHER, 1)
                state = await state_of(runtime, MAIN)
                assert state is not None
                assert state.exit_code == 3

        run(main)

    def test_removed_pod_is_gone_and_others_stay(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                for id_ in (MAIN, OTHER):
                    await runtime.start(bench.spec(id_, FOREVER))
                await runtime.remove(MAIN.pod_uid)
                await runtime.remove(MAIN.pod_uid)
                assert [each.id for each in await runtime.containers()] == [OTHER]
                with pytest.raises(RuntimeRefusedError):
                    await log_of(runtime, MAIN)

        run(main)

    def test_old_attempt_is_forgotten_alone_but_not_while_it_runs(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, "exit 1"))
                await ended(bench, runtime, MAIN)
                await runtime.start(bench.spec(AGAIN, FOREVER))
                await runtime.forget(MAIN)
                await runtime.forget(AGAIN)
                assert [each.id for each in await runtime.containers()] == [AGAIN]

        run(main)

    def test_containers_outlive_the_client(self, bench: Bench) -> None:
        async def main() -> None:
            first = await bench.open()
            before = await first.start(bench.spec(MAIN, FOREVER))
            await first.start(bench.spec(OTHER, "exit 3"))
            await ended(bench, first, OTHER)
            await bench.close(first)
            async with opened(bench) as second:
                found = {each.id: each for each in await second.containers()}
                assert found[MAIN] == before
                assert (found[OTHER].phase, found[OTHER].exit_code) == (Phase.EXITED, 3)
                assert await second.start(bench.spec(MAIN, FOREVER)) == before
                await second.stop(MAIN, 0)
                state = await state_of(second, MAIN)
                assert state is not None
                assert state.phase is Phase.EXITED

        run(main)

    def test_container_that_ends_without_a_client_has_ended(self, bench: Bench) -> None:
        async def main() -> None:
            first = await bench.open()
            await first.start(bench.spec(MAIN, "sleep 0.2; exit 4"))
            await bench.close(first)
            await bench.pass_time()
            async with opened(bench) as second:
                state = await ended(bench, second, MAIN)
                assert state.exit_code == 4

        run(main)

    def test_log_has_what_was_said(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                script = "echo one; echo two; echo hello"
                state = await runtime.start(bench.spec(MAIN, script))
                await ended(bench, runtime, MAIN)
                assert b"hello" in await log_of(runtime, MAIN, LogRange(follow=True))
                last = await log_of(runtime, MAIN, LogRange(tail_lines=1))
                assert last.count(b"\n") == 1
                assert b"hello" in last
                assert len(await log_of(runtime, MAIN, LogRange(bytes_max=5))) == 5
                timed = await log_of(runtime, MAIN, LogRange(has_times=True, tail_lines=1))
                time = Timestamp.parse(timed.decode().split(" ")[0])
                assert not time.truncated() < state.started_at.truncated()

        run(main)

    def test_log_is_followed_to_the_end_of_the_container(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, "echo hello; sleep 0.3; exit 1"))
                following = asyncio.create_task(log_of(runtime, MAIN, LogRange(follow=True)))
                await bench.pass_time()
                assert b"hello" in await following
                assert (await ended(bench, runtime, MAIN)).exit_code == 1

        run(main)

    def test_log_of_nobody_is_refused(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                with pytest.raises(RuntimeRefusedError, match=str(MAIN)):
                    await log_of(runtime, MAIN)

        run(main)

    def test_command_runs_beside_a_container_or_is_refused(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, FOREVER, env={"GREETING": "hello"}))
                command = ["sh", "-c", "read a; echo $GREETING $a; echo oops >&2; exit 5"]
                if not bench.runs_commands:
                    with pytest.raises(RuntimeRefusedError, match="simulated"):
                        await runtime.execute(MAIN, command, tty=False, stdin=True)
                    return
                session = await runtime.execute(MAIN, command, tty=False, stdin=True)
                await session.write(b"there\n")
                await session.close_input()
                said = {1: b"", 2: b""}
                async for number, part in session.output():
                    said[number] += part
                assert said == {1: b"hello there\n", 2: b"oops\n"}
                assert await session.wait() == 5

        run(main)

    def test_command_on_a_terminal(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                await runtime.start(bench.spec(MAIN, FOREVER))
                if not bench.runs_commands:
                    return
                command = ["sh", "-c", "test -t 1 && echo terminal; exit 6"]
                session = await runtime.execute(MAIN, command, tty=True, stdin=True)
                await session.resize(100, 40)
                said = b"".join([part async for _, part in session.output()])
                assert b"terminal" in said
                assert await session.wait() == 6

        run(main)

    def test_input_of_a_container_is_passed_on_or_refused(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                script = "read a; echo got $a; read b || echo over"
                await runtime.start(bench.spec(MAIN, script, stdin=True, stdin_once=True))
                if not bench.runs_commands:
                    with pytest.raises(RuntimeRefusedError) as error:
                        await runtime.attach(MAIN, stdin=True, tty=False)
                    assert error.value.reason == NOT_SUPPORTED
                    return
                session = await runtime.attach(MAIN, stdin=True, tty=False)
                await session.write(b"it\n")
                await session.close_input()
                said = b"".join([part async for _, part in session.output()])
                # Podman adds an empty line of its own.
                assert said.splitlines()[:2] == [b"got it", b"over"]
                await session.wait()

        run(main)

    def test_nobody_is_attached_to_nothing(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                with pytest.raises(RuntimeRefusedError):
                    await runtime.attach(MAIN, stdin=True, tty=False)

        run(main)

    def test_command_beside_nobody_is_refused(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                with pytest.raises(RuntimeRefusedError):
                    await runtime.execute(MAIN, ["true"], tty=False, stdin=False)

        run(main)

    def test_program_that_is_not_there_is_refused(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                spec = bench.spec(MAIN, "", command=("/no/such/program",))
                if not bench.runs_commands:
                    return
                with pytest.raises(RuntimeRefusedError) as error:
                    await runtime.start(spec)
                assert "/no/such/program" in str(error.value)
                assert await runtime.containers() == []

        run(main)

    def test_names_that_are_paths_or_options_are_refused(self, bench: Bench) -> None:
        async def main() -> None:
            async with opened(bench) as runtime:
                for each in HOSTILE:
                    for id_ in (ContainerId(each, "main", 0), ContainerId("uid", each, 0)):
                        with pytest.raises(RuntimeRefusedError) as error:
                            await runtime.start(bench.spec(id_, "true"))
                        assert error.value.reason == "CreateContainerError"
                        with pytest.raises(RuntimeRefusedError):
                            await log_of(runtime, id_)
                        with pytest.raises(RuntimeRefusedError):
                            await runtime.execute(id_, ["true"], tty=False, stdin=False)
                assert await runtime.containers() == []

        run(main)
