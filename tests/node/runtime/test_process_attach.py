"""Being attached to a container: its output as it comes, and its input."""

from __future__ import annotations

import asyncio
import os

import pytest

from moorage.node.runtime.contract import RuntimeRefusedError
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.process.shim_client import ProcessSession
from tests.node.runtime.bench import FOREVER, Bench, ended, id_of, output, said, shell

LISTENING = "echo ready; while read x; do echo got $x; echo at $x >&2; done; echo over"


async def heard(session: ProcessSession, word: bytes) -> bytes:
    """Return what is said, up to a word."""
    found = b""
    async for _, data in session.output():
        found += data
        if word in found:
            break
    return found


def test_input_is_passed_on_and_output_comes_in_its_streams(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", LISTENING, stdin=True, stdin_once=True)
        await runtime.start(spec)
        await said(runtime, spec.id, "ready")
        session = await runtime.attach(spec.id, stdin=True, tty=False)
        await session.write(b"one\ntwo\n")
        await session.close_input()
        streams = {1: b"", 2: b""}
        async for channel, data in session.output():
            streams[channel] += data
        # What was said before is in the log; kubectl reads it there.
        assert streams == {1: b"got one\ngot two\nover\n", 2: b"at one\nat two\n"}
        assert await session.wait() == 0
        assert (await ended(runtime, spec.id)).exit_code == 0
        assert "got two\n" in await output(runtime, spec.id)  # the log has it, too

    bench.play(story)


def test_input_that_is_once_ends_when_its_only_user_goes(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", LISTENING, stdin=True, stdin_once=True)
        await runtime.start(spec)
        session = await runtime.attach(spec.id, stdin=True, tty=False)
        await session.write(b"one\n")
        await heard(session, b"got one")
        await session.kill()
        await session.close()
        assert (await ended(runtime, spec.id)).exit_code == 0
        assert "over" in await output(runtime, spec.id)

    bench.play(story)


def test_other_input_stays_open_and_several_hear_the_same(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", LISTENING, stdin=True)
        await runtime.start(spec)
        await said(runtime, spec.id, "ready")
        first = await runtime.attach(spec.id, stdin=True, tty=False)
        other = await runtime.attach(spec.id, stdin=False, tty=False)
        await first.write(b"one\n")
        for each in (first, other):
            assert b"ready" not in await heard(each, b"got one")  # only what comes from now on
        await first.close_input()
        await first.kill()
        await first.close()
        second = await runtime.attach(spec.id, stdin=True, tty=False)
        await second.write(b"two\n")
        assert b"got two" in await heard(second, b"got two")
        await runtime.stop(spec.id, 0)
        assert await second.wait() == await other.wait() == 0

    bench.play(story)


def test_a_prompt_without_a_line_is_heard_on_a_terminal(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        script = "read x; printf 'name? '; read x; stty size; echo hello $x"
        spec = shell("a", script, tty=True, stdin=True, stdin_once=True)
        await runtime.start(spec)
        session = await runtime.attach(spec.id, stdin=True, tty=True)
        await session.write(b"begin\n")
        assert b"name? " in await heard(session, b"name? ")
        await session.resize(91, 17)
        await session.write(b"ann\n")
        rest = await heard(session, b"hello ann")
        assert b"17 91" in rest
        assert await session.wait() == 0

    bench.play(story)


def test_much_input_waits_for_its_reader(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "cat | wc -c", stdin=True, stdin_once=True)
        await runtime.start(spec)
        session = await runtime.attach(spec.id, stdin=True, tty=False)
        giving = asyncio.create_task(session.write(b"x" * 3_000_000))
        reading = asyncio.create_task(heard(session, b"3000000"))
        await giving
        await session.close_input()
        assert (await reading).strip() == b"3000000"

    bench.play(story)


def test_a_container_does_not_wait_for_who_hears_nothing(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "read x; head -c 30000000 /dev/zero; exit 4", stdin=True)
        await runtime.start(spec)
        session = await runtime.attach(spec.id, stdin=True, tty=False)  # whose output nobody takes
        await session.write(b"go\n")
        assert (await ended(runtime, spec.id)).exit_code == 4
        await session.close()

    bench.play(story)


def test_who_does_not_run_or_takes_no_input(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        with pytest.raises(RuntimeRefusedError, match="is unknown"):
            await runtime.attach(id_of("nobody"), stdin=True, tty=False)
        await runtime.start(shell("done", "true"))
        await ended(runtime, id_of("done"))
        with pytest.raises(RuntimeRefusedError, match="not running"):
            await runtime.attach(id_of("done"), stdin=True, tty=False)
        await runtime.start(shell("deaf", f"cat; echo ready; {FOREVER}"))
        session = await runtime.attach(id_of("deaf"), stdin=True, tty=False)
        await session.write(b"nobody hears this\n")
        await said(runtime, id_of("deaf"), "ready")
        await session.close()

    before = len(os.listdir("/proc/self/fd"))
    bench.play(story)
    assert len(os.listdir("/proc/self/fd")) == before
