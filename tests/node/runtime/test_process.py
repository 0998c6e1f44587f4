"""Containers as processes: start, environment and end."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from moorage.node.runtime.contract import (
    ContainerId,
    ContainerSpec,
    Phase,
    Runtime,
    RuntimeRefusedError,
)
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.shim import linux
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
    told_by,
    wait_for_exit,
)


def test_it_is_a_runtime(bench: Bench) -> None:
    runtime: Runtime = bench.runtime()
    assert runtime.name == "process://1"


@pytest.mark.parametrize(
    ("script", "code", "number", "reason"),
    [
        ("exit 0", 0, 0, "Completed"),
        ("exit 42", 42, 0, "Error"),
        ("kill -KILL $$", 137, 9, "Error"),
        ("kill -SEGV $$", 139, 11, "Error"),
    ],
)
def test_how_it_ended_is_told(
    bench: Bench, script: str, code: int, number: int, reason: str
) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        state = await finished(runtime, shell("a", script))
        assert (state.exit_code, state.signal, state.reason) == (code, number, reason)
        assert state.finished_at is not None
        assert state.started_at.instant <= state.finished_at.instant
        assert state.handle == "process://pod-1/a/0"

    bench.play(story)


def test_without_a_command_nothing_can_run(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = ContainerSpec(id_of("a"), "default", "web", image="nginx", args=("-g",))
        with pytest.raises(RuntimeRefusedError) as caught:
            await runtime.start(spec)
        assert caught.value.reason == "CreateContainerError"
        assert str(caught.value) == (
            "container a: the process runtime has no images, and so no entry point: "
            "set `command`, or use --runtime podman"
        )
        assert await runtime.containers() == []

    bench.play(story)


@pytest.mark.parametrize(
    ("program", "fact"),
    [
        ("no-such-program", 'exec: "no-such-program": executable file not found in $PATH'),
        ("/no/such", 'exec: "/no/such": no such file or directory'),
        ("/etc/passwd", 'exec: "/etc/passwd": permission denied'),
        ("/etc", 'exec: "/etc": is a directory'),
    ],
)
def test_a_program_that_cannot_run_is_a_container_that_ended(
    bench: Bench, program: str, fact: str
) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        state = await runtime.start(ContainerSpec(id_of("a"), "default", "web", command=(program,)))
        assert state.phase is Phase.EXITED
        assert (state.exit_code, state.reason) == (128, "StartError")
        assert state.message == f"failed to start container: {fact}"

    bench.play(story)


def test_what_is_refused_can_be_tried_again(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        folder = bench.root / "work"
        spec = shell("a", "pwd", working_dir=str(folder))
        with pytest.raises(RuntimeRefusedError, match=r"^working directory .*: No such file"):
            await runtime.start(spec)
        assert await runtime.containers() == []
        folder.mkdir()
        assert await told_by(runtime, spec) == f"{folder}\n"

    bench.play(story)


def test_the_program_is_looked_up_in_the_path_of_the_container(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        program = bench.root / "greet"
        program.write_text("#!/bin/sh\necho hello $1\n")
        program.chmod(0o755)
        env = {"PATH": f"/nowhere:{bench.root}:/bin"}
        spec = ContainerSpec(id_of("a"), "default", "web", command=("greet", "you"), env=env)
        assert await told_by(runtime, spec) == "hello you\n"

    bench.play(story)


def test_the_environment_is_small(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_AGENT", "1")
    monkeypatch.setenv("HOME", "/home/of-agent")

    async def story(runtime: ProcessRuntime) -> None:
        spec = ContainerSpec(
            id_of("a"), "default", "web", command=("env",), env={"A": "1 2", "HOSTNAME": "mine"}
        )
        lines = (await told_by(runtime, spec)).splitlines()
        variables = dict(line.partition("=")[::2] for line in lines)
        assert variables.pop("MOORAGE_CONTAINER").startswith("pod-1/a/0@")
        assert variables.pop("PATH").endswith("/bin")
        assert variables == {"HOME": "/home/of-agent", "A": "1 2", "HOSTNAME": "mine"}

    bench.play(story)


def test_a_container_is_started_once_however_often_it_is_asked_for(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        starts = bench.root / "starts"
        spec = shell("a", f"echo x >> {starts}; exit 3")
        states = await asyncio.gather(*(runtime.start(spec) for _ in range(5)))
        assert {each.id for each in states} == {spec.id}
        await ended(runtime, spec.id)
        again = await runtime.start(spec)
        assert (again.phase, again.exit_code) == (Phase.EXITED, 3)
        assert starts.read_text() == "x\n"

    bench.play(story)


def test_each_attempt_is_a_container(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        for attempt in range(3):
            spec = shell("a", f"echo {attempt}", id_=id_of("a", attempt=attempt))
            assert await told_by(runtime, spec) == f"{attempt}\n"
        await runtime.forget(id_of("a", attempt=1))
        assert sorted(each.id.attempt for each in await runtime.containers()) == [0, 2]
        assert not bench.folder(id_of("a", attempt=1)).exists()

    bench.play(story)


def test_stop_asks_first(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 1000 & wait; done"
        spec = shell("a", script)
        await runtime.start(spec)
        await said(runtime, spec.id, "ready")
        await runtime.stop(spec.id, 30)
        state = await ended(runtime, spec.id)
        assert state.exit_code == 7
        assert await output(runtime, spec.id) == "ready\nbye\n"
        await runtime.stop(spec.id, 30)  # which has nothing to do

    bench.play(story)


def test_stop_kills_what_does_not_listen(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "trap '' TERM; echo ready; while :; do sleep 1000; done")
        await runtime.start(spec)
        await said(runtime, spec.id, "ready")
        await runtime.stop(spec.id, 0.05)
        state = await ended(runtime, spec.id)
        assert (state.exit_code, state.signal) == (137, 9)

    bench.play(story)


def test_a_shorter_grace_counts(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "trap '' TERM; echo ready; while :; do sleep 1000; done")
        await runtime.start(spec)
        await said(runtime, spec.id, "ready")
        patient = asyncio.create_task(runtime.stop(spec.id, 3600))
        await runtime.stop(spec.id, 0)
        await patient

    bench.play(story)


def test_stop_of_an_unknown_container_has_nothing_to_do(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.stop(id_of("unknown"), 10)
        await runtime.remove("unknown")
        await runtime.forget(id_of("unknown"))

    bench.play(story)


def alive(pids: list[int]) -> list[int]:
    """Return processes and their descendants, but for those that wait to be reaped, or are."""
    found = [linux.process(pid) for pid in linux.tree(pids)]
    return [each.pid for each in found if each is not None and not each.is_zombie]


@pytest.mark.parametrize(
    "background",
    [
        "sleep 1000 &",
        "setsid sleep 1000 &",
        "setsid sh -c 'setsid sleep 1000 & sleep 1000' &",
        "env -i setsid sleep 1000 &",
        "(trap '' TERM HUP; sleep 1000) &",
    ],
)
def test_all_descendants_end_with_the_first_process(bench: Bench, background: str) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        if os.geteuid() != 0 and "env -i" in background:
            pytest.skip("only root has a mount namespace for each container")
        shim = await runtime.shim_pid()
        spec = shell("a", f"{background} echo ready; exit 5")
        state = await finished(runtime, spec)
        assert state.exit_code == 5
        assert alive([shim]) == [shim]

    bench.play(story)


def test_descendants_of_one_container_are_not_those_of_another(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        shim = await runtime.shim_pid()
        daemon = shell("a", "(setsid sleep 1000 &); echo ready; " + FOREVER)
        await runtime.start(daemon)
        await said(runtime, daemon.id, "ready")
        await finished(runtime, shell("b", "setsid sleep 1000 & exit 0"))
        assert len(alive([shim])) == 3
        await runtime.stop(daemon.id, 0)
        assert alive([shim]) == [shim]

    bench.play(story)


def test_remove_kills_and_forgets(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        for name in ("a", "b"):
            await runtime.start(shell(name, FOREVER))
        other = shell("a", FOREVER, id_=id_of("a", pod="pod-2"))
        await runtime.start(other)
        await runtime.remove("pod-1")
        assert [each.id for each in await runtime.containers()] == [other.id]
        assert not (bench.root / "containers" / "pod-1").exists()

    bench.play(story)


def test_a_running_container_is_not_forgotten(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        with pytest.raises(RuntimeRefusedError, match="pod-1/a/0 is still running"):
            await runtime.forget(id_of("a"))

    bench.play(story)


def test_input_is_closed_unless_it_is_asked_for(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        assert await told_by(runtime, shell("a", "cat; echo over")) == "over\n"
        opened = shell("b", "echo ready; read x; echo over", stdin=True)
        await runtime.start(opened)
        assert await said(runtime, opened.id, "ready") == "ready\n"
        (state,) = [each for each in await runtime.containers() if each.id == opened.id]
        assert state.phase is Phase.RUNNING

    bench.play(story)


def test_a_terminal_is_one(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "test -t 0 && test -t 2 && echo yes > /dev/tty", tty=True)
        assert await told_by(runtime, spec) == "yes\r\n"

    bench.play(story)


def test_a_process_has_a_session_and_defaults_of_its_own(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        script = "grep -E 'SigIgn|SigBlk' /proc/self/status; ulimit -n; umask; ls -l /proc/self/fd"
        said_ = await told_by(runtime, shell("a", script))
        lines = said_.splitlines()
        assert [line.split()[1] for line in lines[:2]] == ["0" * 16] * 2
        assert lines[3] == "0022"
        descriptors = [line.split()[8] for line in lines[5:]]
        assert descriptors == ["0", "1", "2", "3"]  # the last is that of `ls` itself
        assert said_.count("pipe:") == 2

    bench.play(story)


@pytest.fixture
def odd_signals() -> Iterator[None]:
    """Signals as a shell in the background, nohup, or anybody else may leave them."""
    ignored = (signal.SIGQUIT, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGRTMIN)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    blocked = {signal.SIGUSR2, signal.SIGTERM, signal.SIGCHLD, signal.SIGRTMAX}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("odd_signals")
def test_no_signal_is_ignored_or_blocked_whoever_started_us(bench: Bench) -> None:
    look = ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]
    nothing = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"

    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", f"{' '.join(look[:2])} '{look[2]}' {look[3]}; {FOREVER}")
        await runtime.start(spec)
        assert await said(runtime, spec.id, "SigIgn") == nothing
        # Probes and hooks are run like this, too.
        assert await executed(runtime, spec.id, look) == (0, nothing.encode(), b"")
        await runtime.stop(spec.id, 60)
        assert (await ended(runtime, spec.id)).signal == signal.SIGTERM

    bench.play(story)


@pytest.mark.parametrize("bad", ["", "..", "a/b", "x" * 300])
def test_ids_that_are_no_names_of_folders_are_refused(bench: Bench, bad: str) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        for id_ in (ContainerId(bad, "a", 0), ContainerId("pod", bad, 0)):
            with pytest.raises(RuntimeRefusedError, match="cannot be a part of the name"):
                await runtime.start(shell("a", "true", id_=id_))

    bench.play(story)


def test_words_that_no_process_can_have_are_refused(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        for spec in (shell("a", "\0"), shell("a", "true", env={"A=B": ""})):
            with pytest.raises(RuntimeRefusedError):
                await runtime.start(spec)

    bench.play(story)


def test_sigterm_to_the_keeper_ends_containers_and_it(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.start(shell("a", FOREVER))
        shim = await runtime.shim_pid()
        os.kill(shim, signal.SIGTERM)
        state = await ended(runtime, id_of("a"))
        assert (state.exit_code, state.reason) == (143, "Error")
        await asyncio.to_thread(wait_for_exit, shim)  # there may be another by now

    bench.play(story)
