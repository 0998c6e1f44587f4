"""Nothing from outside reaches the terminal but what can be seen, whatever command prints it."""

from __future__ import annotations

import ast
import json
import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import moorage.cli
from moorage.cli.main import moor
from moorage.cli.output import print_tree
from moorage.cli.terminal import (
    coloured,
    echo,
    echo_paragraph,
    printable,
    printable_lines,
    wrapped,
)
from moorage.kit.printable import LineFormatter

# C0 but the line break, DEL, C1, marks that turn text, line and paragraph separators, BOM.
UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
HOSTILE = "a\x1b[31m\x1b]0;owned\x07\x9b2J\x08\u202e\u2066\r\nFORGED line\x7f"


def check(result: Result) -> None:
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)
    for text in (result.stdout, result.stderr):
        assert not UNSEEN.search(text), repr(text)
        assert not [line for line in text.split("\n") if line.startswith("FORGED")], text


def hostile_objects(text: str) -> list[dict[str, Any]]:
    """Return objects with a text wherever text can be."""
    meta = {"name": text, "namespace": text, "labels": {text: text}, "annotations": {text: text}}
    good = {"name": "good", "namespace": "default", "annotations": {"note": text}}
    device = {
        "name": text,
        "attributes": {text: {"string": text}, "model": {"string": text}},
        "capacity": {text: {"value": text}},
    }
    claim = {"devices": {"requests": [{"name": text, "exactly": {"deviceClassName": text}}]}}
    container = {"name": text, "image": text, "resources": {"claims": [{"name": text}]}}
    status = {
        "phase": text,
        "reason": text,
        "message": text,
        "conditions": [{"type": "PodScheduled", "status": "False", "message": text}],
    }
    resource = "resource.k8s.io/v1"
    slice_spec = {
        "driver": "d.example",
        "nodeName": "node",
        "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"model": {"string": text}}}],
    }
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": good,
            "spec": {
                "containers": [{"name": "c", "image": "i"}],
                "nodeSelector": {"a": "b"},
                "schedulerName": text,
            },
            "status": status,
        },
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": text, "labels": {text: text}}},
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "node", "annotations": {"note": text}},
            "spec": {"taints": [{"key": "a", "value": text, "effect": "NoSchedule"}]},
            "status": {"allocatable": {"pods": "1", "cpu": "1"}, "capacity": {text: "1"}},
        },
        {"apiVersion": resource, "kind": "ResourceClaim", "metadata": meta, "spec": claim},
        {"apiVersion": resource, "kind": "ResourceClaim", "metadata": good, "spec": claim},
        {
            "apiVersion": resource,
            "kind": "DeviceClass",
            "metadata": {"name": "class"},
            "spec": {"selectors": [{"cel": {"expression": f"'{text}'"}}]},
        },
        {
            "apiVersion": resource,
            "kind": "ResourceSlice",
            "metadata": {"name": "slice"},
            "spec": slice_spec,
        },
        {
            "apiVersion": resource,
            "kind": "ResourceSlice",
            "metadata": meta,
            "spec": {"driver": text, "nodeName": text, "pool": {"name": text}, "devices": [device]},
        },
        {"apiVersion": text, "kind": text, "metadata": meta},
        {"apiVersion": "v1", "kind": text, "metadata": meta},
        {"apiVersion": resource, "kind": text, "metadata": {"name": "x"}},
        {"apiVersion": text, "kind": "Pod", text: text},
    ]


COMMANDS = [
    *(
        (command, *more, "-f")
        for command in ("validate", "lint")
        for more in ((), ("-o", "json"), ("--strict",) if command == "validate" else ("-q",))
    ),
    *(
        (command, *more, "-o", form, "--on")
        for command, more, forms in (
            ("plan", (), ("table", "wide", "json", "yaml", "name")),
            ("explain", (), ("text", "json")),
            ("devices", (), ("table", "wide", "json", "yaml", "name")),
            ("claims", ("-A",), ("table", "wide", "json", "yaml", "name")),
            ("fit", ("pod/good",), ("table", "json", "yaml")),
            ("whatif", ("--drain", "node"), ("table", "wide", "json", "yaml")),
        )
        for form in forms
    ),
    ("explain", "pod/nobody", "--on"),
    ("explain", "claim/nobody", "--on"),
    ("explain", f"pod/{HOSTILE}", "--on"),
    ("explain", f"{HOSTILE}/x", "--on"),
    ("fit", "pod/nobody", "--on"),
    ("whatif", "--drain", HOSTILE, "--on"),
    ("whatif", "--remove-device", HOSTILE, "--on"),
    ("devices", "--driver", HOSTILE, "--on"),
    ("cel", "device.driver == 'x'", "-f"),
    ("cel", f"device.{HOSTILE}", "-f"),
    ("cel", "-o", "json", f"'{HOSTILE}'", "-f"),
    ("snapshot", "--show"),
    ("snapshot", "-o", HOSTILE, "--on"),
    (HOSTILE,),
    (f"--{HOSTILE}",),
]


@pytest.fixture(params=["json", "yaml", "archive"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A file of hostile objects, whose own name is hostile."""
    name = HOSTILE.replace("\x00", "")
    lines = "\n---\n".join(json.dumps(each) for each in hostile_objects(HOSTILE))
    if request.param == "archive":
        import io
        import tarfile

        path = tmp_path / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for kind in (tarfile.REGTYPE, tarfile.SYMTYPE):
                member = tarfile.TarInfo(f"{name}{len(kind)}.yaml")
                member.type, member.linkname = kind, name
                member.size = len(lines) if kind == tarfile.REGTYPE else 0
                archive.addfile(member, io.BytesIO(lines.encode()))
        return str(path)
    content = lines if request.param == "yaml" else json.dumps(hostile_objects(HOSTILE)[0])
    path = tmp_path / f"{name}.{request.param}"
    path.write_text(content)
    return str(path)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda each: printable(" ".join(each))[:48])
def test_no_command_prints_what_cannot_be_seen(command: tuple[str, ...], source: str) -> None:
    check(CliRunner().invoke(moor, [*command, source]))


def test_lists_of_what_there_is_are_safe(tmp_path: Path) -> None:
    path = tmp_path / "pods.yaml"
    pods = [each for each in hostile_objects(HOSTILE) if each["kind"] == "Pod"]
    path.write_text("\n---\n".join(map(json.dumps, pods)))
    result = CliRunner().invoke(moor, ["explain", "pod/zzz", "--on", str(path)])
    assert "there is no Pod default/zzz" in result.stderr
    check(result)


def test_the_summary_of_validate_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": HOSTILE}))
    result = CliRunner().invoke(moor, ["validate", "--strict-kinds", "-f", str(path)])
    assert "\\x1b[31m" in result.stdout
    check(result)


TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


@given(TEXT)
def test_whatever_is_printed_can_be_seen(text: str) -> None:
    assert printable(text).isprintable()
    assert not UNSEEN.search(printable_lines(text))
    assert printable_lines(text).count("\n") == text.count("\n")


@given(st.recursive(TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)))
def test_trees_are_printed_without_loss(tree: Any) -> None:
    import click
    import yaml

    @click.command()
    @click.argument("form")
    def show(form: str) -> None:
        print_tree(tree, form)

    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        shown = CliRunner().invoke(show, [form])
        assert shown.exception is None
        assert not UNSEEN.search(shown.stdout)
        assert read(shown.stdout) == tree


def test_colours_are_ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    import click

    @click.command()
    def show() -> None:
        echo(f"{coloured('error', 'red')}: {HOSTILE} \x1b[31m {coloured(HOSTILE, 'red')}")

    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = CliRunner().invoke(show, color=True).stdout
    assert shown.count("\x1b") == 6  # colour, bold and the end, twice
    assert shown.startswith("\x1b[31m\x1b[1merror\x1b[0m: a\\x1b[31m")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in CliRunner().invoke(show, color=True).stdout


def test_commands_print_in_one_place_only() -> None:
    """`moorage.cli.terminal` is the only module that prints."""
    found = []
    for path in Path(moorage.cli.__path__[0]).glob("*.py"):
        if path.name == "terminal.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "click.echo", "click.secho", "click.style"):
                    found.append(f"{path.name}:{node.lineno}: {called}")
                if called.endswith(("stdout.write", "stderr.write")):
                    found.append(f"{path.name}:{node.lineno}: {called}")
    assert found == []


# --- logs -----------------------------------------------------------------------------------------


def logged(message: str, *values: object, error: BaseException | None = None) -> str:
    stream = StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    logger = logging.Logger("tests")
    logger.addHandler(handler)
    logger.warning(message, *values, exc_info=error)
    return stream.getvalue()


@given(TEXT)
def test_a_record_is_one_line(text: str) -> None:
    line = logged("pod %s", text)
    assert line.startswith("WARNING pod ")
    assert line.endswith("\n")
    assert line[:-1].isprintable()


@given(TEXT)
def test_no_line_of_a_traceback_looks_like_a_record(text: str) -> None:
    try:
        raise ValueError(f"{text}\nWARNING forged")
    except ValueError as error:
        first, *others = logged("failed", error=error).split("\n")
    assert first == "WARNING failed"
    assert all(line.startswith("    | ") for line in others[:-1])
    assert not UNSEEN.search("\n".join(others))


def test_programs_that_configure_nothing_log_in_lines() -> None:
    program = (
        "import logging, sys; from moorage.cli.main import main; sys.argv = ['moor', '--version']\n"
        "try: main()\n"
        "except SystemExit: logging.getLogger('x').warning('pod %s', 'a\\nFORGED \\x1b[31m')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "pod a\\x0aFORGED \\x1b[31m\n"


# --- paragraphs -------------------------------------------------------------------------------


def on_terminal(print_it: Callable[[], None]) -> str:
    """Return what a call prints to a terminal."""
    reader, writer = pty.openpty()
    with os.fdopen(reader, "rb", buffering=0) as read:
        with os.fdopen(writer, "w") as terminal, redirect_stdout(terminal):
            print_it()
        return b"".join(_parts(read.fileno())).decode().replace("\r\n", "\n")


def _parts(terminal: int) -> Iterator[bytes]:
    """Yield what was written, which comes in parts; an error ends it when the writer is closed."""
    with suppress(OSError):
        while part := os.read(terminal, 65536):
            yield part


CAUSE = "request gpu asks for 9 devices of class gpu.nvidia.com, node dgx-h100-0 has 8"


def cause() -> None:
    echo_paragraph("pod team/train: ", CAUSE, colour="red")
    echo_paragraph("  fix 1: ", "ask for 8 instead of 9 in request gpu", lead_colour="green")


def test_paragraphs_wrap_to_the_terminal_with_a_hanging_indent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    assert on_terminal(cause) == (
        "pod team/train: request gpu asks for 9\n"
        "  devices of class gpu.nvidia.com, node\n"
        "  dgx-h100-0 has 8\n"
        "  fix 1: ask for 8 instead of 9 in\n"
        "         request gpu\n"
    )


def test_paragraphs_have_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)
    first, second, *_, fix, last = on_terminal(cause).splitlines()
    red, green, end = "\x1b[31m\x1b[1m", "\x1b[32m\x1b[1m", "\x1b[0m"
    assert first == f"pod team/train: {red}request gpu asks for 9{end}"
    assert second == f"  {red}devices of class gpu.nvidia.com, node{end}"
    assert fix == f"{green}  fix 1: {end}ask for 8 instead of 9 in"
    assert last == "         request gpu"


def test_paragraphs_in_a_pipe_are_single_lines_without_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    cause()
    assert capsys.readouterr().out.splitlines()[0] == f"pod team/train: {CAUSE}"


def test_a_terminal_gets_nothing_hostile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal(lambda: echo_paragraph(f"pod {HOSTILE}: ", HOSTILE * 3, colour="red"))
    assert not UNSEEN.search(shown), repr(shown)
    assert not [line for line in shown.split("\n") if line.startswith("FORGED")], shown


WORDS = st.lists(st.text("abc-/", min_size=1, max_size=12), max_size=20).map(" ".join)


@given(lead=st.sampled_from(["", "  ", "    ", "  fix 1: ", "pod a/b: "]), text=WORDS)
def test_wrapping_keeps_every_word_and_the_width(lead: str, text: str) -> None:
    lines = wrapped(lead, text, 40)
    assert " ".join(lines).split() == f"{lead}{text}".split()
    assert all(len(line) <= 40 for line in lines)
    assert wrapped(lead, text, 0) == [f"{lead}{text}".rstrip()]
