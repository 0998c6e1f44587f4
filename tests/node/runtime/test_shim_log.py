"""The shim outlives a disk that takes no line of its log, and its containers with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moorage.node.runtime.shim import shim

FAILING = """
import os
from moorage.node.runtime.shim.linux import READ, EventLoop
loop, calls = EventLoop(), []
ours, theirs = os.pipe()
os.write(theirs, b"!")
def fail():
    calls.append("failed")
    if len(calls) == 3:
        loop.stop()
    raise ZeroDivisionError
loop.watch(ours, READ, fail)
loop.run()
print(len(calls), flush=True)
os._exit(0)
"""


def test_an_error_that_cannot_be_logged_ends_nothing() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        command = [sys.executable, "-c", FAILING]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"3\n")


def test_a_shim_whose_number_cannot_be_written_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / shim.PID).symlink_to("/dev/full")
    shim._write_pid()
    assert capsys.readouterr().err == f"{shim.PID}: No space left on device\n"
