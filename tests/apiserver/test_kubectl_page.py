"""The kubectl page is correct: its commands, run against a server, print the shown output."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.apiserver.programs import find_kubectls
from tests.shell_session import ShellSession
from tests.test_docs import DOCS, SEARCH_PATH, blocks_of, commands_of, matches

PAGE = DOCS / "tutorial" / "kubectl.md"
MINOR_MIN = 34  # before, kubectl said some things in other words
TIMEOUT_S = 60

_VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"  # first, as a uid may begin like an age
    r"|\b\d+(?:ms|[smhd])\b"  # ages
    r"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    r"|(?<=Resource Version:    )\d+"
)


def find_new_kubectl() -> str:
    for program in reversed(find_kubectls().values()):
        done = subprocess.run(
            [program, "version", "--client", "-o", "json"], capture_output=True, check=False
        )
        version = json.loads(done.stdout or "{}").get("clientVersion", {})
        if int(re.sub(r"\D.*", "", version.get("minor", "0")) or 0) >= MINOR_MIN:
            return program
    pytest.skip(f"there is no kubectl of 1.{MINOR_MIN} or newer")


def plain(line: str) -> str:
    """Return a line without what differs from run to run."""
    return " ".join(_VARYING.sub("N", line).split())


def test_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """The blocks are typed into one shell, from the start of the server to its end."""
    folder = tmp_path / "here"
    folder.mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(find_new_kubectl())
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{SEARCH_PATH}",
    }
    with ShellSession(folder, environment, timeout_s=TIMEOUT_S) as session:
        for block in blocks_of(PAGE):
            if block.file:
                session.write(block.file, block.lines)
            if block.language == "sh":
                session.run("\n".join(block.lines))
                assert session.status == 0
            for command in commands_of(block) if block.language == "kubectl" else ():
                printed = session.run(command.text)
                shown = tuple(map(plain, command.expected))
                found = tuple(map(plain, printed.splitlines()))
                assert matches(shown, found), f"$ {command.text}\n{printed}"
        assert session.run("wait").strip() == ""  # the server has ended
