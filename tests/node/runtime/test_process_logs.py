"""Container logs: how they are stored, and which part is read."""

from __future__ import annotations

import asyncio
import json
import os
import re
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.timestamp import Timestamp
from moorage.kit.clock import REAL
from moorage.node.runtime.contract import LogRange, RuntimeRefusedError
from moorage.node.runtime.process import ProcessRuntime
from moorage.node.runtime.process.container_logs import read_logs
from moorage.node.runtime.shim.container_io import LINE_BYTES_MAX, Lines, LogFile
from tests.node.runtime.bench import Bench, finished, id_of, output, said, shell, told_by

ENTRY = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z "
    rb"(?P<stream>stdout|stderr) (?P<tag>[FP]) (?P<text>.*)\n"
)


def read(folder: Path, log_range: LogRange | None = None) -> bytes:
    async def run() -> bytes:
        parts = [part async for part in read_logs(folder, log_range or LogRange(), REAL)]
        return b"".join(parts)

    return asyncio.run(run())


def write(folder: Path, text: bytes, *, bytes_max: int = 10**7, files_max: int = 5) -> None:
    """Write a log, a line at a time."""
    log, lines = LogFile(str(folder), bytes_max=bytes_max, files_max=files_max), Lines()
    for line in text.splitlines(keepends=True):
        log.write(b"stdout", lines.feed(line))
    log.write(b"stdout", lines.end())
    log.close()


def test_the_file_has_the_form_of_the_cri(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "echo one; echo two >&2; printf three")
        await finished(runtime, spec)
        content = (bench.folder(spec.id) / "log").read_bytes()
        entries = [(m["stream"], m["tag"], m["text"]) for m in ENTRY.finditer(content)]
        assert sorted(entries) == [
            (b"stderr", b"F", b"two"),
            (b"stdout", b"F", b"one"),
            (b"stdout", b"P", b"three"),
        ]

    bench.play(story)


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 4))
def test_lines_lose_nothing(chunks: list[bytes], scale: int) -> None:
    lines, kept = Lines(), b""
    for chunk in chunks:
        for tag, text in lines.feed(chunk * (scale * 1000)):
            assert len(text) <= LINE_BYTES_MAX
            assert b"\n" not in text
            kept += text + (b"\n" if tag == b"F" else b"")
    kept += b"".join(text for _, text in lines.end())
    assert kept == b"".join(chunk * (scale * 1000) for chunk in chunks)


def test_a_long_line_is_cut_and_comes_back_whole(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end")
        assert await told_by(runtime, spec) == "x" * 1_000_000 + "\nend\n"
        content = (bench.folder(spec.id) / "log").read_bytes()
        assert max(map(len, content.splitlines())) < LINE_BYTES_MAX + 50
        timed = await output(runtime, spec.id, LogRange(has_times=True, tail_lines=2))
        assert re.fullmatch(r"\S+Z x{1000000}\n\S+Z end\n", timed)

    bench.play(story)


def test_much_output_is_kept_in_files_of_bounded_length(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "yes 0123456789012345678901234567890123456789 | head -c 60000000")
        await finished(runtime, spec)
        sizes = {path.name: path.stat().st_size for path in bench.folder(spec.id).glob("log*")}
        assert sorted(sizes) == ["log", "log.1", "log.2", "log.3", "log.4"]
        assert max(sizes.values()) < 10 * 1024 * 1024 + 512 * 1024

    bench.play(story)


def numbered(first: int, last: int) -> bytes:
    return b"".join(b"line %d\n" % number for number in range(first, last + 1))


@pytest.mark.parametrize("bytes_max", [1000, 10**7])
@pytest.mark.parametrize("tail", [0, 1, 2, 7, 50, 99, 100, 1000])
def test_the_tail_is_the_last_lines_in_however_many_files(
    tmp_path: Path, bytes_max: int, tail: int
) -> None:
    write(tmp_path, numbered(1, 100), bytes_max=bytes_max)
    assert len(list(tmp_path.iterdir())) == (5 if bytes_max == 1000 else 1)
    assert read(tmp_path, LogRange(tail_lines=tail)) == numbered(max(1, 101 - tail), 100)
    assert read(tmp_path) == numbered(1, 100)


def test_the_tail_counts_a_line_that_is_not_over(tmp_path: Path) -> None:
    write(tmp_path, b"one\ntwo\nthree")
    assert read(tmp_path, LogRange(tail_lines=2)) == b"two\nthree"


@pytest.mark.parametrize("count", [1, 4095, 4096, 20000])
def test_the_tail_is_found_in_long_files(tmp_path: Path, count: int) -> None:
    write(tmp_path, numbered(1, 20000))
    assert read(tmp_path, LogRange(tail_lines=count)) == numbered(20001 - count, 20000)


@pytest.mark.parametrize("bytes_max", [0, 1, 10, 10_000])
def test_no_more_bytes_are_shown_than_wanted(tmp_path: Path, bytes_max: int) -> None:
    write(tmp_path, numbered(1, 100))
    assert read(tmp_path, LogRange(bytes_max=bytes_max)) == numbered(1, 100)[:bytes_max]


def test_only_what_was_said_since_is_shown(tmp_path: Path) -> None:
    entries = (
        f"2026-11-15T12:00:{second:02}.000000000Z stdout F {second}\n" for second in range(60)
    )
    (tmp_path / "log").write_text("".join(entries))
    since = Timestamp.parse("2026-11-15T12:00:57Z")
    assert read(tmp_path, LogRange(since=since)) == b"57\n58\n59\n"
    assert read(tmp_path, LogRange(since=Timestamp(since.instant + timedelta(hours=1)))) == b""
    assert read(tmp_path, LogRange(since=since, tail_lines=2)) == b"58\n59\n"


def test_following_goes_on_to_the_end_of_the_container(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        gate = bench.root / "gate"
        os.mkfifo(gate)
        spec = shell("a", f"echo one; cat {gate}; printf end")
        await runtime.start(spec)
        await said(runtime, spec.id, "one")
        following = asyncio.create_task(output(runtime, spec.id, LogRange(follow=True)))
        await asyncio.to_thread(gate.write_text, "two\n")
        assert await following == "one\ntwo\nend"

    bench.play(story)


def test_following_sees_every_file(tmp_path: Path) -> None:
    async def run() -> bytes:
        log, lines = LogFile(str(tmp_path), bytes_max=200, files_max=5), Lines()
        heard = b""
        record = tmp_path / "record"
        record.write_text(json.dumps({"finished": None}))
        number = 0
        async for part in read_logs(tmp_path, LogRange(follow=True), REAL):
            heard += part
            number += 1
            if number == 50:
                log.close()
                record.write_text(json.dumps({"finished": 1.0}))
            elif number < 50:
                log.write(b"stdout", lines.feed(b"line %d\n" % number))
        return heard

    first = LogFile(str(tmp_path))
    first.write(b"stdout", Lines().feed(b"line 0\n"))
    first.close()
    assert asyncio.run(run()) == numbered(0, 49)


def test_following_ends_with_a_container_that_is_removed(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        spec = shell("a", "echo one; exec sleep 1000000")
        await runtime.start(spec)
        await said(runtime, spec.id, "one")
        log = runtime.logs(spec.id, LogRange(follow=True))
        assert await anext(log) == b"one\n"  # from here on it is followed, not looked for
        more = asyncio.create_task(anext(log, b""))
        await asyncio.sleep(0)
        await runtime.remove(spec.id.pod_uid)
        assert await more == b""

    bench.play(story)


def test_there_is_no_log_of_an_unknown_container(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        with pytest.raises(RuntimeRefusedError, match="there is no log of this container"):
            await output(runtime, id_of("unknown"))

    bench.play(story)


def test_a_log_that_was_swapped_for_a_link_is_not_read(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("2026-11-15T12:00:00.000000000Z stdout F of the machine\n")

    async def story(runtime: ProcessRuntime) -> None:
        await finished(runtime, shell("a", "echo one"))
        log = bench.folder(id_of("a")) / "log"
        assert await output(runtime, id_of("a")) == "one\n"
        log.unlink()
        log.symlink_to(tmp_path / "secret")
        assert await output(runtime, id_of("a")) == ""
        log.unlink()
        os.mkfifo(log)  # which would have us wait for ever
        assert await output(runtime, id_of("a")) == ""

    bench.play(story)


def test_a_full_disk_costs_lines_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/full")
    log, lines = LogFile(str(tmp_path), bytes_max=0), Lines()
    (tmp_path / "log").unlink()
    log._bytes_max = 10**6  # the first line finds the disk full, the second a new file
    log.write(b"stdout", lines.feed(b"one\ntwo\n"))
    log.write(b"stdout", lines.feed(b"three\n"))
    log._bytes_max = 0
    log.write(b"stdout", lines.feed(b"four\n"))
    log.close()
    assert read(tmp_path) == b"3 lines were lost: No space left on device\nfour\n"


def test_a_container_goes_on_when_the_disk_is_full(bench: Bench) -> None:
    async def story(runtime: ProcessRuntime) -> None:
        await runtime.containers()
        folder = bench.folder(id_of("a"))
        folder.mkdir(parents=True)
        (folder / "log").symlink_to("/dev/full")
        state = await finished(runtime, shell("a", "yes | head -c 1000000; exit 3"))
        assert state.exit_code == 3

    bench.play(story)
