"""What readers are told to type to install Moorage works: today, without an index that has it.

The lines of docs/how-to/install.md are run, in the order of the page. All other texts use one of
them or link there; the programs have the one hint of `moorage.kit.extras`, which is run, too.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from itertools import chain, permutations
from pathlib import Path

import pytest

from dev import WHEELS, with_pip
from moorage import __version__
from moorage.kit.extras import EXTRAS, remedy
from tests.test_docs import blocks_of
from tests.test_product_name import ROOT, files

HOME = ROOT / "docs" / "how-to" / "install.md"
HINTS = {remedy(*chosen) for n in (1, 2) for chosen in permutations(EXTRAS, n)}
INSTALL_S_MAX = 300

# Programs that install; what they run is tried by the tests beside them.
INSTALLERS = {
    "action.yml": "tests/test_integrations.py",
    "deploy/krew/kubectl-moor": "tests/test_integrations.py",
    "deploy/image/Containerfile": "tests/deploy",
    "dev.py": "tests/test_dev.py",
    "release/metadata_hook.py": "tests/release/test_release.py",
    "src/moorage/kit/extras.py": "tests/test_install_lines.py",
}
# History, lock files, and tests, which have lines of all kinds.
OTHERS = {"CHANGELOG.md", "requirements", "tests"}
PACKED = {"docs", "examples", "release", "requirements", "src"}  # what a wheel is built from
# It needs a compiler and minutes: tests/release/test_compiled.py builds what it installs.
COMPILED = "MOORAGE_COMPILE=1 "

_COMMAND = re.compile(
    rf"(?:{COMPILED})?\b(?:pip3?|pipx|uvx?(?: tool| pip)?)\s+(?:install|wheel)\s+[^`#\n]+"
)


def commands_of(text: str) -> Iterator[str]:
    """Yield the commands of a text that install something, or build what is installed."""
    for found in _COMMAND.findall(text):
        yield " ".join(found.split())


def home_blocks() -> list[list[str]]:
    """Return the blocks of commands that install; the first begins with an environment."""
    blocks = [block.lines for block in blocks_of(HOME) if block.language == "sh"]
    commands = ([line.partition("#")[0].strip() for line in lines] for lines in blocks)
    return [lines for lines in commands if any("pip " in line for line in lines)]


class Machine:
    """A shell on a machine with Python, pip, the dependencies and a copy of the checkout.

    Its index has everything but Moorage.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._environment = {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(WHEELS),
        }
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(with_pip())

    def run(self, *lines: str, status: int = 0) -> str:
        """Run lines as one script and return what it prints."""
        done = subprocess.run(
            ["bash", "-ec", "\n".join(lines)],
            cwd=self.folder / "checkout",
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=INSTALL_S_MAX,
            check=False,
        )
        assert done.returncode == status, done.stdout
        return done.stdout


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if not (WHEELS / ".stamp").exists():
        pytest.skip("no wheels in .tools: `python3 dev.py test` downloads them")
    for name in files():
        if name.partition("/")[0] in PACKED or "/" not in name:
            (tmp_path / "checkout" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / "checkout" / name)
    return Machine(tmp_path)


def test_every_text_has_commands_of_the_page_about_installing_or_the_hint() -> None:
    known = {*chain(*home_blocks()), *HINTS}
    unknown = {}
    for name in files():
        if name not in INSTALLERS and name.partition("/")[0] not in OTHERS:
            text = (ROOT / name).read_bytes().decode(errors="replace")
            if strange := [each for each in commands_of(text) if each not in known]:
                unknown[name] = strange
    assert unknown == {}


def test_files_that_install_are_tried_elsewhere() -> None:
    assert {*INSTALLERS} <= {*files()}
    assert [tests for tests in INSTALLERS.values() if not (ROOT / tests).exists()] == []


@pytest.mark.sweep
def test_each_block_of_the_page_about_installing_works(machine: Machine) -> None:
    (environment, *base), *others = home_blocks()
    tried = [block for block in (base, *others) if not block[0].startswith(COMPILED)]
    assert [len(block) for block in tried] == [2, 2, 2]
    for block in tried:
        machine.run("rm -rf moorage-env")
        printed = machine.run(environment, *block, "pip check", "moor --version").splitlines()
        assert printed[-2:] == ["No broken requirements found.", f"moor {__version__}"]


def test_the_hint_of_a_command_works_though_no_index_has_moorage(machine: Machine) -> None:
    environment, base, _ = home_blocks()[0]
    printed = machine.run(environment, base, "moor reset", status=3).splitlines()[-1]
    hint = printed.partition(" needs the server extra: ")[2]
    assert hint in HINTS
    again = machine.run(
        ". moorage-env/bin/activate", hint, "moor reset --help", "moor reset || true"
    )
    assert "extra:" not in again
    assert f"Requirement already satisfied: moorage[server]=={__version__}" in again
