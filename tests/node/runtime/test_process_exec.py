"""Commands that run beside a container."""

from __future__ import annotations

import os

import pytest

from moorage.node.runtime.contract import ResourceLimits, RuntimeRefusedError
from moorage.node.runtime.process import ProcessRuntime
from tests.node.runtime.bench import (
    FOREVER,
    Bench,
    ended,
    executed,
    finished,
    id_of,
    said,
    shell,
    wait_for_exit,
)


def test_a_command_has_streams_and_an_exit_code(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        script = "cat; echo wrong >&2; exit 5"
        command = ["/bin/sh", "-c", script]
        assert await executed(runtime, id_of("a"), command, given=b"in\n") == (
            5,
            b"in\n",
            b"wrong\n",
        )
        assert await executed(runtime, id_of("a"), command) == (5, b"", b"wrong\n")
        assert await executed(runtime, id_of("a"), ["/bin/sh", "-c", "kill -9 $$"]) == (
            137,
            b"",
            b"",
        )

    bench.play(story)


def test_a_command_has_what_the_container_has(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        cpu = min(os.sched_getaffinity(0))
        folder = str(bench.root)
        limits = ResourceLimits(cpus=(cpu,))
        await runtime.start(shell("a", FOREVER, env={"A": "1"}, working_dir=folder, limits=limits))
        script = (
            "echo $A $(pwd); grep Cpus_allowed_list /proc/self/status; readlink /proc/self/ns/mnt"
        )
        _, said_, _ = await executed(runtime, id_of("a"), ["sh", "-c", script])
        first, second, namespace = said_.decode().splitlines()
        assert first == f"1 {folder}"
        assert second.split() == ["Cpus_allowed_list:", str(cpu)]
        assert namespace == os.readlink(f"/proc/{bench.record(id_of('a'))['pid']}/ns/mnt")

    bench.play(story)


def test_much_goes_both_ways(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        data = os.urandom(1024) * 5000
        code, said_, _ = await executed(runtime, id_of("a"), ["cat"], given=data)
        assert code == 0
        assert said_ == data

    bench.play(story)


def test_input_that_nobody_reads_stops_nobody(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        result = await executed(runtime, id_of("a"), ["true"], given=b"x" * 5_000_000)
        assert result == (0, b"", b"")

    bench.play(story)


def test_a_terminal_has_a_size_and_an_end_of_input(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        script = "trap 'stty size' WINCH; echo ready; cat; stty size; read x; exit 3"
        session = await runtime.execute(id_of("a"), ["sh", "-c", script], tty=True, stdin=True)
        heard = b""
        async for channel, data in session.output():
            assert channel == 1
            if b"ready" in data:
                await session.resize(132, 43)
                await session.close_input()
            heard += data
            if b"43 132" in data:
                await session.write(b"x\n")
                await session.close_input()
        assert b"43 132" in heard
        assert await session.wait() in (3, 137)

    bench.play(story)


def test_a_command_is_killed_when_it_should(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        session = await runtime.execute(id_of("a"), ["sleep", "1000000"], tty=False, stdin=False)
        await session.kill()
        assert await session.wait() == 137
        await session.write(b"too late")

    bench.play(story)


def test_a_command_ends_with_its_container(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        script = "setsid sleep 1000000 & echo $!; sleep 1000000"
        session = await runtime.execute(id_of("a"), ["sh", "-c", script], tty=False, stdin=False)
        async for _, data in session.output():
            orphan = int(data)
            break
        await runtime.stop(id_of("a"), 30)
        assert await session.wait() == 137
        wait_for_exit(orphan)
        await ended(runtime, id_of("a"))

    bench.play(story)


def test_a_command_that_nobody_listens_to_is_ended(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        other = bench.runtime()
        script = "echo $$; exec sleep 1000000"
        session = await other.execute(id_of("a"), ["sh", "-c", script], tty=False, stdin=False)
        async for _, data in session.output():
            pid = int(data)
            break
        await session.close()
        wait_for_exit(pid)

    bench.play(story)


@pytest.mark.parametrize(
    ("name", "command", "fact"),
    [
        ("a", ["no-such"], 'exec: "no-such": executable file not found in $PATH'),
        ("over", ["true"], "container pod-1/over/0 is not running"),
        ("unknown", ["true"], "container pod-1/unknown/0 is unknown"),
        ("a", [], "the command is empty"),
    ],
)
def test_what_cannot_run_is_refused(bench: Bench, name: str, command: list[str], fact: str) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", f"echo ready; {FOREVER}"))
        await said(runtime, id_of("a"), "ready")
        await finished(runtime, shell("over", "true"))
        with pytest.raises(RuntimeRefusedError) as caught:
            await runtime.execute(id_of(name), command, tty=False, stdin=False)
        assert fact in str(caught.value)

    bench.play(story)
