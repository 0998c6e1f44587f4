"""Killed agents and shims: containers are recovered, and none runs twice."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    ContainerState,
    LogRange,
    Phase,
    RuntimeRefusedError,
)
from moorage.node.runtime.process import ProcessRuntime
from tests.node.runtime.bench import (
    FOREVER,
    Bench,
    ended,
    executed,
    finished,
    id_of,
    output,
    said,
    shell,
    wait_for_exit,
)

UNKNOWN = (Phase.EXITED, 137, "ContainerStatusUnknown")


def outcome(state: ContainerState) -> tuple[Phase, int, str]:
    return state.phase, state.exit_code, state.reason


async def kill_keeper(runtime: ProcessRuntime) -> None:
    shim = await runtime.shim_pid()
    os.kill(shim, signal.SIGKILL)
    wait_for_exit(shim)


def test_containers_outlive_the_agent(bench: Bench) -> None:
    async def story(second: ProcessRuntime) -> None:
        first = bench.runtime()
        running = shell("a", FOREVER)
        await first.start(running)
        pid = bench.record(running.id)["pid"]
        await first.close()
        (state,) = await second.containers()
        assert (state.id, state.phase) == (running.id, Phase.RUNNING)
        assert (await second.start(running)) == state
        assert bench.record(running.id)["pid"] == pid

    bench.play(story)


def test_what_ends_without_an_agent_is_found(bench: Bench) -> None:
    async def story(second: ProcessRuntime) -> None:
        first = bench.runtime()
        gate = bench.root / "gate"
        os.mkfifo(gate)
        spec = shell("a", f"echo before; cat {gate}; exit 9")
        await first.start(spec)
        pid = bench.record(spec.id)["pid"]
        await first.close()
        gate.write_text("go\n")
        wait_for_exit(pid)
        state = await ended(second, spec.id)
        assert outcome(state) == (Phase.EXITED, 9, "Error")
        assert await output(second, spec.id) == "before\ngo\n"

    bench.play(story)


def test_a_killed_keeper_takes_its_containers_along(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        done = shell("done", "exit 4")
        await finished(runtime, done)
        script = "sleep 1000 & setsid sleep 1000 & (setsid sleep 1000 &); echo ready; wait"
        running = shell("running", script)
        await runtime.start(running)
        await said(runtime, running.id, "ready")
        assert len(bench.members()) == 4
        changes = runtime.changes()
        await kill_keeper(runtime)
        state = await anext(changes)  # a new shim is there by then
        assert (state.id, *outcome(state)) == (running.id, *UNKNOWN)
        assert "shim of its processes was killed" in state.message
        assert bench.members() == []
        states = {each.id: outcome(each) for each in await runtime.containers()}
        assert states == {done.id: (Phase.EXITED, 4, "Error"), running.id: UNKNOWN}

    bench.play(story)


def test_questions_outlive_the_keeper(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", "trap '' TERM; echo ready; while :; do sleep 1000; done"))
        await said(runtime, id_of("a"), "ready")
        stopping = asyncio.create_task(runtime.stop(id_of("a"), 3600))
        following = asyncio.create_task(output(runtime, id_of("a"), LogRange(follow=True)))
        await kill_keeper(runtime)
        await stopping
        assert await following == "ready\n"
        assert outcome(await ended(runtime, id_of("a"))) == UNKNOWN
        again = await runtime.start(shell("a", FOREVER))
        assert outcome(again) == UNKNOWN

    bench.play(story)


def test_two_agents_get_the_same_keeper(bench: Bench) -> None:
    async def story(first: ProcessRuntime) -> None:
        others = [bench.runtime() for _ in range(4)]
        runtimes = [first, *others]
        pids = await asyncio.gather(*(each.shim_pid() for each in runtimes))
        assert len(set(pids)) == 1
        states = await asyncio.gather(*(each.start(shell("a", FOREVER)) for each in runtimes))
        assert len({str(each) for each in states}) == 1
        for each in others:
            await each.close()

    bench.play(story)


def test_a_keeper_without_work_ends_and_is_there_again(bench: Bench) -> None:
    bench.options["idle_s"] = 0.0

    async def story(runtime: ProcessRuntime) -> None:
        other = bench.runtime()
        await finished(other, shell("a", "exit 3"))
        shim = await other.shim_pid()
        await other.close()
        wait_for_exit(shim)
        (state,) = await runtime.containers()
        assert state.exit_code == 3
        assert await runtime.shim_pid() != shim

    bench.play(story)


def test_a_folder_with_a_long_path_has_a_keeper_too(bench: Bench) -> None:
    bench.root = bench.root / ("x" * 100) / ("y" * 100)

    async def story(runtime: ProcessRuntime) -> None:
        assert (await finished(runtime, shell("a", "exit 3"))).exit_code == 3

    bench.play(story)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"key": 1}', b"\xff" * 10])
def test_a_damaged_record_is_a_container_of_which_nothing_is_known(
    bench: Bench, content: bytes
) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        (state,) = await runtime.containers()
        assert (state.id, *outcome(state)) == (id_of("a"), *UNKNOWN)
        assert state.message == "its record was damaged"

    folder = bench.folder(id_of("a"))
    folder.mkdir(parents=True)
    (folder / "record").write_bytes(content)
    (bench.root / "containers" / "not a container").mkdir()
    bench.play(story)


def test_what_was_never_written_down_never_was(bench: Bench) -> None:
    folder = bench.folder(id_of("a"))
    folder.mkdir(parents=True)
    (folder / "log").touch()

    async def story(runtime: ProcessRuntime) -> None:
        assert await runtime.containers() == []
        assert not folder.exists()

    bench.play(story)


def test_after_a_restart_of_the_machine_nobody_is_killed_for_an_old_number(bench: Bench) -> None:
    bystander = os.getpid()
    record = {"key": ["pod-1", "a", 0], "boot": "another", "pid": bystander, "started": 1.0}
    folder = bench.folder(id_of("a"))
    folder.mkdir(parents=True)
    (folder / "record").write_text(json.dumps(record))

    async def story(runtime: ProcessRuntime) -> None:
        (state,) = await runtime.containers()
        assert outcome(state) == UNKNOWN
        assert state.message == "the machine was restarted while the container ran"

    bench.play(story)


def test_nothing_is_started_that_cannot_be_written_down(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.containers()
        (bench.root / "containers" / "pod-1").write_text("in the way")
        with pytest.raises(RuntimeRefusedError, match="Not a directory"):
            await runtime.start(shell("a", FOREVER))
        (bench.root / "containers" / "pod-1").unlink()
        blocked = bench.folder(id_of("a")) / "record.new"
        blocked.mkdir(parents=True)
        with pytest.raises(RuntimeRefusedError, match="Is a directory"):
            await runtime.start(shell("a", f"touch {bench.root}/ran; {FOREVER}"))
        assert bench.members() == []
        assert not (bench.root / "ran").exists()

    bench.play(story)


# --- strangers at the door ---------------------------------------------------------------------


@contextmanager
def door(bench: Bench) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(bench.root / "keeper.sock"))
        connection.settimeout(10)
        yield connection


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 100,
        b"\x00\x00\x00\x02\x00[]",
        b"\x00\x00\x00\x01\x00{",
    ],
)
def test_noise_is_not_answered(bench: Bench, noise: bytes) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.containers()
        with door(bench) as connection:
            connection.sendall(noise)
            assert connection.recv(100) == b""
        await runtime.containers()
        log = bench.root / "keeper.log"
        assert "connection closed" in log.read_text()
        log.write_text("")

    bench.play(story)


@pytest.mark.parametrize(
    "request_",
    [
        {"ask": "dance"},
        {"ask": "start"},
        {"ask": "start", "launch": {"key": ["a", "b", 0], "command": 7}},
        {"ask": "start", "launch": {"key": ["..", "b", 0], "command": ["x"]}},
        {"ask": "stop", "key": [1, 2, 3]},
        {"ask": "stop", "key": ["a", "b", 0], "grace_s": "long"},
        {"ask": "execute", "key": ["a", "b", 0], "command": ["x"]},
    ],
)
def test_bad_requests_are_refused(bench: Bench, request_: dict[str, object]) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.containers()
        with door(bench) as connection:
            payload = json.dumps({"n": 5, **request_}).encode()
            connection.sendall(len(payload).to_bytes(4, "big") + b"\0" + payload)
            answer = json.loads(connection.recv(65536)[5:])
        assert answer["n"] == 5
        assert len(answer["refused"]) == 2

    bench.play(story)


def test_only_its_own_user_may_come_in(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.containers()
        mode = (bench.root / "keeper.sock").stat().st_mode
        assert mode & 0o077 == 0

    bench.play(story)


# --- any order of things -----------------------------------------------------------------------

STEPS = 200
FOREVER_OUTCOMES = {
    (Phase.RUNNING, 0, ""),
    (Phase.EXITED, 143, "Error"),
    (Phase.EXITED, 137, "Error"),
    UNKNOWN,
}


class Model:
    """What must be true of containers, whatever is done in whatever order."""

    def __init__(self, bench: Bench, chance: random.Random) -> None:
        self.bench, self.chance = bench, chance
        self.runtime = bench.runtime()
        self.codes: dict[ContainerId, int | None] = {}  # None: runs until it is ended
        self.stopped: set[ContainerId] = set()
        self.numbers = count()
        self.starts = bench.root / "starts"
        self.starts.mkdir()

    async def step(self) -> None:
        actions = [self.start, self.start, self.start, self.again, self.stop, self.remove]
        rare = [self.lose_agent, self.kill_keeper, self.execute, self.kill_process]
        await self.chance.choice(actions * 2 + rare)()

    async def start(self) -> None:
        id_ = id_of(f"c{next(self.numbers)}", pod=f"pod-{self.chance.randrange(5)}")
        code = self.chance.choice([None, None, 0, 1, 77])
        self.codes[id_] = code
        await self.runtime.start(self.spec(id_))

    def spec(self, id_: ContainerId) -> ContainerSpec:
        code = self.codes[id_]
        last = FOREVER if code is None else f"exit {code}"
        orphan = "setsid sleep 1000000 & " if int(id_.name[1:]) % 3 == 0 else ""
        return shell("", f"{orphan}echo started >> {self.starts}/{id_.name}; {last}", id_=id_)

    def some(self) -> ContainerId | None:
        return self.chance.choice(list(self.codes)) if self.codes else None

    async def again(self) -> None:
        if id_ := self.some():
            await self.runtime.start(self.spec(id_))

    async def stop(self) -> None:
        if id_ := self.some():
            await self.runtime.stop(id_, self.chance.choice([0.0, 30.0]))
            self.stopped.add(id_)

    async def remove(self) -> None:
        if (id_ := self.some()) and self.chance.random() < 0.3:
            await self.runtime.remove(id_.pod_uid)
            self.codes = {
                key: code for key, code in self.codes.items() if key.pod_uid != id_.pod_uid
            }

    async def lose_agent(self) -> None:
        await self.runtime.close()
        self.runtime = self.bench.runtime()

    async def kill_keeper(self) -> None:
        await kill_keeper(self.runtime)

    async def kill_process(self) -> None:
        if (id_ := self.some()) and self.codes[id_] is None:
            record = self.bench.record(id_)
            if record["finished"] is None:
                with suppress(ProcessLookupError):  # it may have ended by itself
                    os.kill(record["pid"], signal.SIGKILL)

    async def execute(self) -> None:
        if id_ := self.some():
            with suppress(RuntimeRefusedError):  # it has ended
                code, said_, _ = await executed(self.runtime, id_, ["echo", "hello"])
                assert (code, said_) in ((0, b"hello\n"), (137, b""), (137, b"hello\n"))

    async def check(self) -> None:
        states = {each.id: each for each in await self.runtime.containers()}
        assert set(states) == set(self.codes)
        for id_, state in states.items():
            assert state.phase is Phase.EXITED or id_ not in self.stopped
            code = self.codes[id_]
            if code is None:
                assert outcome(state) in FOREVER_OUTCOMES
            elif state.phase is Phase.EXITED and outcome(state) not in (
                UNKNOWN,
                (Phase.EXITED, 143, "Error"),
                (Phase.EXITED, 137, "Error"),
            ):
                assert state.exit_code == code
            started = self.starts / id_.name
            assert not started.exists() or started.read_text().count("\n") <= 1


@pytest.mark.parametrize("seed", range(4))
def test_any_order_of_things_comes_to_one_process_and_one_end(bench: Bench, seed: int) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.close()
        model = Model(bench, random.Random(seed))
        for number in range(STEPS // 4):
            await model.step()
            if number % 10 == 0:
                await model.check()
        await model.check()
        for id_, code in model.codes.items():
            if code is not None:
                await ended(model.runtime, id_)
        await model.runtime.close()

    bench.play(story)


def test_the_keeper_is_small(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        for number in range(20):
            await runtime.start(shell(f"c{number}", FOREVER))
        status = Path(f"/proc/{await runtime.shim_pid()}/status").read_text()
        resident_kib = int(status.partition("VmRSS:")[2].split()[0])
        assert resident_kib < 20_000

    bench.play(story)


def test_the_keeper_leaks_no_descriptors(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        folder = f"/proc/{await runtime.shim_pid()}/fd"
        before = os.listdir(folder)
        for number in range(3):
            await runtime.start(shell(f"a{number}", FOREVER, stdin=True))
            await executed(runtime, id_of(f"a{number}"), ["cat"], given=b"x")
            with suppress(RuntimeRefusedError):
                await runtime.execute(id_of(f"a{number}"), ["no-such"], tty=True, stdin=True)
            await finished(runtime, shell(f"b{number}", "true", tty=True))
            with suppress(RuntimeRefusedError):
                await runtime.start(shell(f"c{number}", "true", working_dir="/no/such"))
        await runtime.remove("pod-1")
        # The connections of the last round may not be closed yet.
        assert len(os.listdir(folder)) < len(before) + 3

    bench.play(story)


def test_changes_end_when_we_are_closed(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        async def listen() -> list[ContainerState]:
            return [each async for each in runtime.changes()]

        await runtime.containers()
        listening = asyncio.create_task(listen())
        await runtime.start(shell("a", FOREVER))
        await runtime.close()
        assert len(await listening) <= 1

    bench.play(story)


AGENT = """
import asyncio, sys
from pathlib import Path
from tests.node.runtime.bench import Bench
from tests.node.runtime.test_process_survival import counted

async def main(bench):
    runtime = bench.runtime()
    for number in range(50):
        await runtime.start(counted(bench, number))
        print(number, flush=True)

asyncio.run(main(Bench(Path(sys.argv[1]))))
"""


def counted(bench: Bench, number: int) -> ContainerSpec:
    """Return a container that leaves a line each time that it runs."""
    return shell(f"c{number}", f"echo x >> {bench.root}/ran-{number}; echo ready; {FOREVER}")


@pytest.mark.parametrize("answers", [0, 1, 7, 20])
def test_an_agent_that_is_killed_at_work_is_followed_by_another(bench: Bench, answers: int) -> None:
    command = [sys.executable, "-c", AGENT, str(bench.root)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as agent:
        assert agent.stdout is not None
        for _ in range(answers):
            agent.stdout.readline()
        agent.kill()

    async def story(runtime: ProcessRuntime) -> None:
        found = {each.id for each in await runtime.containers() if each.phase is Phase.RUNNING}
        assert {id_of(f"c{number}") for number in range(answers)} <= found
        for number in range(answers + 10):
            await runtime.start(counted(bench, number))
            await said(runtime, id_of(f"c{number}"), "ready")
            assert (bench.root / f"ran-{number}").read_text() == "x\n"

    bench.play(story)
