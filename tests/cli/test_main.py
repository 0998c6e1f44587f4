from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from moorage import __version__
from moorage.cli.command_classes import LazyGroup
from moorage.cli.main import COMMANDS, GROUPS, moor
from moorage.kit.extras import remedy
from reference.command_tree import walk


def test_help_lists_every_command_without_loading_one() -> None:
    script = (
        "import sys; from moorage.cli.main import moor; "
        "moor(['--help'], standalone_mode=False); "
        "heavy = ('msgspec', 'yaml', 'rich', 'moorage.api'); "
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert output.endswith("[]\n")
    assert all(name in output for name in COMMANDS)


def test_help_lists_commands_by_need_with_an_example() -> None:
    output = CliRunner().invoke(moor, ["--help"]).output
    for title, lines in GROUPS.items():
        section = output.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  ([a-z-]+)", section, re.MULTILINE) == list(lines), title
    assert "moor plan -f training.yaml --profile dgx-h100 " in output


def test_help_of_every_command_has_an_example() -> None:
    for context in walk(moor, "moor"):
        parts = (context.command.help or "").split("\n\n")
        blocks = [part for part in parts if part.lstrip().startswith("\b")]
        assert any(context.command_path in block for block in blocks), context.command_path


def test_the_package_runs_as_the_program() -> None:
    line = [sys.executable, "-m", "moorage", "plan", "--profile", "no-such-machine"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Usage: moor plan " in done.stderr
    assert "no-such-machine" in done.stderr


def test_every_command_has_help_that_begins_like_its_line_in_the_list() -> None:
    for name in COMMANDS:
        result = CliRunner().invoke(moor, [name, "--help"])
        assert result.exit_code == 0
        assert "Exit status" in result.output


def test_every_command_has_the_same_options_for_help_also_on_its_own() -> None:
    # click keeps the option of the first call, so a difference would depend on the order of calls
    for context in walk(moor, "moor"):
        alone = click.Context(context.command, **context.command.context_settings)
        assert alone.help_option_names == ["-h", "--help"], context.command_path


def test_version() -> None:
    assert CliRunner().invoke(moor, ["--version"]).output == f"moor {__version__}\n"


def test_an_unknown_command_is_wrong_usage() -> None:
    result = CliRunner().invoke(moor, ["valdate"])
    assert result.exit_code == 2
    assert "No such command 'valdate'" in result.stderr
    assert "Did you mean validate?" in result.stderr


def test_what_is_stopped_from_the_keyboard_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def command() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    result = CliRunner().invoke(moor, ["plan"])
    assert result.exit_code == 130
    assert "stopped" in result.stderr


def test_output_that_cannot_be_written_is_told() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no device that is always full")
    script = "from moorage.cli.main import main; main()"
    with full.open("w") as target:
        result = subprocess.run(
            [sys.executable, "-c", script, "profiles"],
            stdout=target,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 3
    assert result.stderr == "error: cannot write the answer: No space left on device\n"


PROGRAM = """\
import atexit
from moorage.cli.main import main

class Kept:
    def __del__(self):
        print("freed")

def command():
    kept = Kept()
    atexit.register(print, "at exit")
    main()

command()
"""


@pytest.mark.parametrize(
    ("arguments", "freed"), [(["plan", "--profile", "dgx-h100"], 0), (["profiles"], 1)]
)
def test_a_command_that_read_a_cluster_leaves_its_memory_to_the_system(
    arguments: list[str], freed: int
) -> None:
    line = [sys.executable, "-c", PROGRAM, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.stdout.count("at exit\n") == 1
    assert done.stdout.count("freed\n") == freed


HOSTILE = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: "slice\\e[31m\\a"}
spec:
  driver: gpu.example.com
  nodeName: "node\\e[31m"
  pool: {name: "pool\\e[31m", generation: 1, resourceSliceCount: 1}
  devices: [{name: "gpu\\e[31m"}]
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("lint",),
        ("validate",),
        ("cel", "true"),
        ("cel", "true", "-o", "name"),
        ("cel", "false"),
        ("devices",),
        ("devices", "-o", "name"),
    ],
)
def test_no_name_commands_the_terminal(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(moor, [*arguments, "-f", "-"], input=HOSTILE, color=True)
    assert "[31m" in result.output
    assert not re.search("(slice|node|pool|gpu)\x1b", result.output)


def test_a_module_that_nothing_brings_is_a_bug_that_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command()
    def command() -> None:
        raise ModuleNotFoundError("No module named 'moorage.gone'", name="moorage.gone")

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    result = CliRunner().invoke(moor, ["plan"])
    assert isinstance(result.exception, ModuleNotFoundError)


@pytest.mark.parametrize("words", [["plan"], ["driver", "run"]])
def test_a_package_that_an_extra_brings_is_asked_for_in_one_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def command() -> None:
        raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")

    real = LazyGroup.get_command

    def get_command(self: LazyGroup, ctx: click.Context, name: str) -> click.Command | None:
        return real(self, ctx, name) if name == "driver" else command

    monkeypatch.setattr(LazyGroup, "get_command", get_command)
    result = CliRunner().invoke(moor, words, prog_name="moor")
    line = f"error: moor {' '.join(words)} needs the server extra: {remedy('server')}\n"
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", line)


@pytest.mark.parametrize("words", [[], ["driver"], ["store"]])
def test_without_a_command_its_help_is_printed_as_it_is(words: list[str]) -> None:
    asked = CliRunner().invoke(moor, [*words, "--help"], prog_name="moor")
    given = CliRunner().invoke(moor, words, prog_name="moor")
    assert given.exit_code == 2
    assert given.stderr == asked.stdout


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_characters_that_the_output_lacks_are_escaped(encoding: str) -> None:
    line = ["explain", "pod/training-1", "-f", "training", "--profile", "dgx-h100"]
    done = subprocess.run(
        [sys.executable, "-m", "moorage.cli", *line],
        cwd=Path(__file__).parents[2] / "examples",
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b" \\u2192 " in done.stdout
