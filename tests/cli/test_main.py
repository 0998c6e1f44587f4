from __future__ import annotations

import subprocess
import sys

from click.testing import CliRunner

from mooring import __version__
from mooring.cli.main import COMMANDS, moor


def test_help_lists_every_command_without_loading_one() -> None:
    script = (
        "import sys; from mooring.cli.main import moor; "
        "moor(['--help'], standalone_mode=False); "
        "heavy = ('msgspec', 'yaml', 'rich', 'mooring.api'); "
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert output.endswith("[]\n")
    assert all(name in output for name in COMMANDS)


def test_every_command_has_help_that_begins_like_its_line_in_the_list() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(moor, [name, "--help"])
        assert result.exit_code == 0
        assert "Exit status" in result.output


def test_version() -> None:
    assert CliRunner().invoke(moor, ["--version"]).output == f"moor {__version__}\n"


def test_an_unknown_command_is_wrong_usage() -> None:
    result = CliRunner().invoke(moor, ["valdate"])
    assert result.exit_code == 2
    assert "No such command 'valdate'" in result.stderr
