"""The documents are true: their commands run, their links lead somewhere, nothing is left out.

A page may hold these blocks of code:

    ```console      commands after `$ ` and what they print; run here, in order
    ```python       a program, with its assertions; run here
    ```pycon        a notebook: what is typed, and what is shown; run here, in order
    ```py           a program that needs packages which tests do not have
    ```yaml NAME    a file that the page tells the reader to save; written before what follows
    ```kubectl      commands that need a server; run by tests/apiserver/test_kubectl_page.py
    ```sh           commands that are too slow to run here, or need what tests do not have; those of
                    tutorials about servers are run with their `kubectl` blocks

A line that is only `…` stands for any lines of output. The commands of a page run in one shell,
which starts in an empty folder with links to `conformance`, `docs` and `examples`; a page that
copies the examples itself gets no link to them. Files are saved in the folder where the shell is.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import click
import pytest
from click.testing import CliRunner

import dev
from conformance.runner import read_cases
from moorage.api import errors as api_errors
from moorage.api.catalogue import KINDS, SERVED
from moorage.api.codec import decode_tree
from moorage.api.documents import read
from moorage.api.field_path import root
from moorage.api.gates import Gate
from moorage.api.resource.v1 import ResourceSlice
from moorage.cel.device import CelFeatures, DeviceCompiler, Scope
from moorage.cel.lang.equality import equal
from moorage.cel.lang.program import Evaluated
from moorage.cli import errors
from moorage.cli.main import moor
from moorage.cluster.programs import CONTROLLERS
from moorage.validation.errors import ErrorType, FieldError
from reference import pages
from reference.recording import COLUMNS
from release.vendored import NOTICES
from tests.corpus import corpus
from tests.shell_session import ShellSession

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STORIES = ROOT / "examples" / "stories" / "README.md"
PROGRAMS = ROOT / "examples" / "library" / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), STORIES, PROGRAMS])
LINKED_FOLDERS = ("conformance", "docs", "examples")
TIMEOUT_S = 60
SEARCH_PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# --- blocks of code ----------------------------------------------------------------------------


class Block(NamedTuple):
    """A fenced block: the words after the fence, and the lines."""

    info: tuple[str, ...]
    lines: tuple[str, ...]

    @property
    def language(self) -> str:
        return self.info[0] if self.info else ""

    @property
    def file(self) -> str | None:
        return self.info[1] if len(self.info) > 1 else None


class Command(NamedTuple):
    """One command of a console block and the lines it prints."""

    text: str
    expected: tuple[str, ...]


_FENCED = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path) -> Iterator[Block]:
    for found in _FENCED.finditer(page.read_text(encoding="utf-8")):
        yield Block(tuple(found["info"].split()), tuple(found["body"].splitlines()))


def commands_of(block: Block) -> Iterator[Command]:
    text = ""
    expected: list[str] = []
    for line in block.lines:
        if line.startswith("$ "):
            if text:
                yield Command(text, tuple(expected))
            text, expected = line.removeprefix("$ "), []
        else:
            assert text, f"output before the first command: {line!r}"
            expected.append(line)
    yield Command(text, tuple(expected))


class Shell:
    """Runs the commands of a page in one shell, with some of them in this process.

    A pipeline that begins with `moor` runs here, which is many times as fast, in the folder and
    with the variables of the shell.
    """

    def __init__(self, session: ShellSession) -> None:
        self._session = session
        self._output = b""

    def run(self, command: str) -> tuple[str, ...]:
        """Return the lines that a command prints."""
        if not command.startswith("moor ") or _FOR_A_SHELL.search(command):
            return tuple(self._session.run(command).splitlines())
        piped = b""
        self._output = b""
        with pytest.MonkeyPatch.context() as here:
            here.chdir(self._session.folder)
            for name, value in self._session.exported.items():
                here.setenv(name, value)
            for stage in command.split(" | "):
                run_stage = self._run_moor if stage.startswith("moor ") else self._run_filter
                piped = run_stage(stage, piped)
        output = (self._output + piped).decode()
        return tuple(output.splitlines())

    def _run_moor(self, stage: str, stdin: bytes) -> bytes:
        stage, _, target = stage.partition(" > ")
        arguments = shlex.split(stage)[1:]
        result = CliRunner().invoke(moor, arguments, input=stdin, prog_name="moor")
        assert isinstance(result.exception, SystemExit | None), result.exception
        self._session.status = result.exit_code
        self._output += result.stderr_bytes or b""
        if not target:
            return result.stdout_bytes
        Path(target).write_bytes(result.stdout_bytes)
        return b""

    def _run_filter(self, stage: str, stdin: bytes) -> bytes:
        done = subprocess.run(
            ["bash", "-c", stage],
            env=self._session.exported,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
        self._session.status = done.returncode
        return done.stdout


# What a line has for which a shell is needed: lists, jobs, substitutions, redirections but `>`.
_FOR_A_SHELL = re.compile(r"[;`]|\$[({\w]|(?: |^)(?:<|>>|2>|&&?|\|\|)")


def matches(expected: tuple[str, ...], actual: tuple[str, ...]) -> bool:
    """Whether output is what a page shows; `…` stands for any lines."""
    lines = ("(?:.*\n)*" if line == "…" else re.escape(line) + "\n" for line in expected)
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in actual)) is not None


TUTORIALS = DOCS / "tutorial"
CONSOLE_PAGES = [
    page for page in PAGES if any(block.language == "console" for block in blocks_of(page))
]


@pytest.mark.parametrize("page", CONSOLE_PAGES, ids=name_of)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    copies_examples = "$ moor examples " in page.read_text(encoding="utf-8")
    for name in LINKED_FOLDERS:
        if not (name == "examples" and copies_examples):
            (folder / name).symlink_to(ROOT / name)
    environment = {**os.environ, "PATH": SEARCH_PATH, "LC_ALL": "C.UTF-8"}
    with ShellSession(folder, environment, timeout_s=TIMEOUT_S) as session:
        # Readers of a tutorial type everything into one shell; so do we.
        run = session.run if page.parent == TUTORIALS else Shell(session).run
        for block in blocks_of(page):
            if block.language == "console":
                for command in commands_of(block):
                    output = run(command.text)
                    lines = tuple(output.splitlines()) if isinstance(output, str) else output
                    if not matches(command.expected, lines):
                        shown = "\n".join(command.expected)
                        assert "\n".join(lines) == shown, f"{name_of(page)}: $ {command.text}"
            elif block.file:
                session.write(block.file, block.lines)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=name_of)
def test_a_page_whose_commands_use_examples_says_how_to_get_them(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    copied = {
        name for line in re.findall(r"`moor examples ([\w -]+)`", text) for name in line.split()
    }
    for block in blocks_of(page):
        if block.language in ("console", "kubectl", "sh"):
            used = re.findall(r"(?<![\w/])examples/([a-z-]+)", "\n".join(block.lines))
            assert set(used) <= copied


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_programs_run(page: Path) -> None:
    for block in blocks_of(page):
        if block.language == "python":
            exec(compile("\n".join(block.lines), name_of(page), "exec"), {})


NOTEBOOKS = [page for page in PAGES if any(block.language == "pycon" for block in blocks_of(page))]


@pytest.mark.parametrize("page", NOTEBOOKS, ids=name_of)
def test_notebooks_show_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in LINKED_FOLDERS:
        Path(name).symlink_to(ROOT / name)
    cells = ("\n".join(each.lines) for each in blocks_of(page) if each.language == "pycon")
    notebook = doctest.DocTestParser().get_doctest("\n\n".join(cells), {}, name_of(page), None, 0)
    assert len(notebook.examples) > 1
    report: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(notebook, out=report.append)
    assert done.failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_moor_command_is_run(page: Path) -> None:
    for block in blocks_of(page):
        if block.language in ("sh", "bash", "shell"):
            assert not [line for line in block.lines if line.startswith("moor ")]


# --- examples of CEL ---------------------------------------------------------------------------

CEL_PAGE = DOCS / "reference" / "cel.md"
_EXAMPLE = re.compile(
    r"^\| `(?P<expression>.+)` \| (?P<error>error: )?`(?P<result>.+)` \| (?P<cost>\d+) \|$", re.M
)


class Example(NamedTuple):
    """A row of a table: an expression, the expression or error that it comes to, and its cost."""

    expression: str
    result: str
    is_error: bool
    cost: int


def examples_of_cel() -> list[Example]:
    text = CEL_PAGE.read_text(encoding="utf-8")
    return [
        Example(
            found["expression"].replace("\\|", "|"),
            found["result"].replace("\\|", "|"),
            bool(found["error"]),
            int(found["cost"]),
        )
        for found in _EXAMPLE.finditer(text)
    ]


class Bench:
    """Evaluates expressions on the device that the page describes."""

    def __init__(self) -> None:
        (block,) = (block for block in blocks_of(CEL_PAGE) if block.file == "slice.yaml")
        (document,) = read("\n".join(block.lines).encode(), source="slice.yaml")
        self._slice = decode_tree(document.tree, ResourceSlice).value
        self.compiler = DeviceCompiler(CelFeatures(list_attributes=True))

    def evaluate(self, expression: str) -> Evaluated:
        compiled = self.compiler.compile(expression, kind="raw")
        assert compiled.error is None, compiled.error
        (device,) = self._slice.spec.devices or ()
        return compiled.evaluate(
            driver=self._slice.spec.driver,
            attributes=device.attributes,
            capacity=device.capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
            name=device.name,
        )


def test_examples_of_cel_come_to_what_the_page_says() -> None:
    bench = Bench()
    examples = examples_of_cel()
    assert len(examples) >= 100
    for example in examples:
        found = bench.evaluate(example.expression)
        assert found.cost == example.cost, example
        if example.is_error:
            assert found.error == example.result, example
            continue
        assert found.error is None, example
        wanted = bench.evaluate(example.result)
        types = bench.compiler.type_name(found.value), bench.compiler.type_name(wanted.value)
        assert types[0] == types[1], example
        assert equal(found.value, wanted.value), example


def test_examples_of_cel_are_of_every_library() -> None:
    called = " ".join(example.expression for example in examples_of_cel())
    libraries = DeviceCompiler(CelFeatures())._environment(Scope.STORED).libraries
    for library in libraries:
        names = {function.name for function in library.functions} | {
            macro.name for macro in library.macros
        }
        # Nobody can call these: there is no authorizer.
        if not library.name.startswith("kubernetes.authz"):
            assert any(f"{name}(" in called for name in names), library.name


# --- links -------------------------------------------------------------------------------------

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


def links_of(page: Path) -> Iterator[tuple[Path, str]]:
    """Give the files and anchors that a page links to, within the repository."""
    prose = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for found in _LINK.finditer(prose):
        target, _, anchor = found["target"].partition("#")
        if not target.startswith(("http://", "https://")):
            yield (page.parent / target).resolve() if target else page, anchor


def anchors_of(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links_of(page):
        assert target.exists(), target
        assert target.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors_of(target), f"{target}#{anchor}"


_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def test_pictures_say_what_they_show() -> None:
    for page in PAGES:
        for found in _PICTURE.finditer(page.read_text(encoding="utf-8")):
            assert len(found["text"].split()) >= 4, f"{name_of(page)}: {found[0]}"


def test_pictures_need_nothing_else_and_are_readable_in_light_and_dark() -> None:
    # The tour of the page is recorded, and shows it as it is: its own tests say what is readable.
    pictures = sorted((DOCS / "pictures").glob("*.svg"))
    assert {picture.name for picture in pictures} == pages.PICTURES.keys()
    others = {each.name for each in (DOCS / "pictures").iterdir()} - pages.PICTURES.keys()
    assert others == {"page-tour.gif"}
    for picture in pictures:
        text = picture.read_text(encoding="utf-8")
        assert "<title" in text, picture
        assert "prefers-color-scheme:dark" in text, picture
        assert re.findall(r"(?:href|src)=|url\((?!#)|@import|<script", text) == [], picture


def test_the_recording_ends_and_needs_no_motion_and_no_eyes() -> None:
    text = text_of("docs/pictures/terminal.svg")
    assert "prefers-reduced-motion:reduce" in text
    assert "infinite" not in text
    picture = ElementTree.fromstring(text)
    svg = "{http://www.w3.org/2000/svg}"
    lines = ["".join(line.itertext()).rstrip() for line in picture.iter(f"{svg}text")]
    assert max(map(len, lines)) <= COLUMNS
    told = (picture.findtext(f"{svg}desc") or "").replace("\n\n$ moor", "\n$ moor").split("\n")
    assert lines == told


def test_every_reader_has_a_page_with_five_to_eight_steps() -> None:
    index = text_of("docs/index.md")
    readers = sorted((DOCS / "readers").iterdir())
    assert len(readers) == 5
    for reader in readers:
        steps = re.findall(r"^\d\. .*\]\(", reader.read_text(encoding="utf-8"), re.MULTILINE)
        assert 5 <= len(steps) <= 8, reader.name
        assert f"(readers/{reader.name})" in index


def test_every_page_is_linked_from_the_index() -> None:
    linked = {target for target, _ in links_of(DOCS / "index.md")}
    assert [name_of(page) for page in DOCS.rglob("*.md") if page not in linked] == ["docs/index.md"]


# --- the generated pages -----------------------------------------------------------------------


def test_generated_pages_are_current() -> None:
    # In a process of its own, as `dev.py docs` writes them: other tests change what is loaded here.
    command = [sys.executable, "-m", "reference", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run: python3 dev.py docs\n{done.stdout}"


def test_pictures_are_current() -> None:
    stale = pages.stale_pages(pages.PICTURE_FOLDER, pages.PICTURES)
    assert stale == [], "run: python3 dev.py docs"


def test_check_names_stale_pages_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    assert pages.main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines()[0] == "docs/reference/cel-functions.md: stale"
    assert list(tmp_path.iterdir()) == []


def test_pages_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "FOLDER", tmp_path)
    monkeypatch.setattr(pages, "PICTURE_FOLDER", tmp_path)
    monkeypatch.setattr(pages, "NOTICES_FOLDER", tmp_path)
    assert pages.main([]) == 0
    written = {*pages.PAGES, *pages.PICTURES, NOTICES}
    assert {page.name for page in tmp_path.iterdir()} == written
    assert pages.main(["--check"]) == 0


def test_without_a_checkout_there_are_no_pages_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "FOLDER", tmp_path / "missing")
    assert pages.main([]) == 3
    assert "no such folder" in capsys.readouterr().err


def all_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(moor, info_name="moor")
    waiting: list[tuple[str, click.Command]] = [("moor", moor)]
    while waiting:
        path, command = waiting.pop()
        yield path, command
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                waiting.append((f"{path} {name}", found))


def test_every_command_and_option_is_documented() -> None:
    page = text_of("docs/reference/cli.md")
    for path, command in all_commands():
        _, heading, rest = page.partition(f"## {path}\n")
        assert heading, path
        section = rest.partition("\n## ")[0]
        for parameter in command.params:
            if isinstance(parameter, click.Argument):
                assert section.count(parameter.make_metavar(click.Context(command))) > 1, path
                continue
            assert isinstance(parameter, click.Option)
            assert parameter.help, parameter.opts
            for name in (*parameter.opts, *parameter.secondary_opts):
                assert f"`{name}`" in section, f"{path} {name}"


def test_every_function_of_cel_is_documented() -> None:
    page = text_of("docs/reference/cel-functions.md")
    environment = DeviceCompiler(CelFeatures(list_attributes=True))._environment(Scope.STORED)
    named = {name for name in environment.functions if name[0] not in "_@!-"}
    overloads = [each for name in named for each in environment.functions[name].overloads]
    assert len(overloads) > 150
    assert [each.id for each in overloads if f"| `{each.id}` |" not in page] == []
    assert [macro.name for macro in environment.macros if f"{macro.name}(…" not in page] == []


def test_every_gate_is_documented() -> None:
    page = text_of("docs/reference/feature-gates.md")
    assert [gate for gate in Gate if f"| `{gate}` |" not in page] == []


def test_every_kind_is_documented() -> None:
    page = text_of("docs/reference/kinds.md")
    assert [kind for kind in KINDS if f"| `{kind.name}` |" not in page] == []


# --- hand-written pages that must be complete --------------------------------------------------


def test_every_controller_is_documented() -> None:
    pages = text_of("docs/explanation/controllers.md") + text_of("docs/explanation/workloads.md")
    assert [name for name in CONTROLLERS if f"`{name}`" not in pages] == []


def test_kinds_that_are_said_not_to_be_served_are_not() -> None:
    (told,) = re.findall(
        r"kinds that are not served: ([a-z, \n]+) and", text_of("docs/how-to/run-conformance.md")
    )
    served = {kind.plural for kind in SERVED}
    assert [name for name in told.replace("\n", " ").split(", ") if name.strip() in served] == []


@pytest.mark.parametrize("error_type", ErrorType)
def test_every_error_type_is_documented_with_its_words(error_type: ErrorType) -> None:
    words = FieldError(error_type, root("x")).body.partition(":")[0]
    assert f"| {words} | `{error_type}` |" in text_of("docs/reference/errors.md")


def test_every_exit_status_is_documented() -> None:
    page = text_of("docs/reference/errors.md")
    statuses = [value for value in vars(errors).values() if isinstance(value, int)]
    assert sorted(statuses) == [0, 1, 2, 3, 130]
    assert [status for status in statuses if f"\n| {status} | " not in page] == []


def test_every_exception_of_reading_is_documented() -> None:
    page = text_of("docs/reference/errors.md")
    names = [error.__name__ for error in api_errors.ApiError.__subclasses__()]
    in_module = [name for name in names if hasattr(api_errors, name)]
    assert [name for name in in_module if f"| `{name}` |" not in page] == []


TOOLS = ("dev", "uv", "site", "release")


def declared_dependencies() -> set[str]:
    project: dict[str, Any] = tomllib.loads(text_of("pyproject.toml"))
    inputs = (text_of(f"requirements/{name}.in").splitlines() for name in TOOLS)
    lines = [line for lines in inputs for line in lines if line and not line.startswith("#")]
    extras = [
        name
        for extra, names in project["project"]["optional-dependencies"].items()
        for name in names
        if extra != "all"  # which is the others
    ]
    users = project["project"]["dependencies"] + extras
    wanted = users + project["build-system"]["requires"] + lines
    return {re.split(r"[^\w-]", requirement)[0].lower() for requirement in wanted}


def test_every_dependency_has_its_reason_and_no_other_is_listed() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| .+ \| .+ \|$", text_of("docs/dependencies.md"), re.M)
    assert set(rows) == declared_dependencies()
    assert len(rows) == len(set(rows))


def test_decisions_are_numbered_without_gaps() -> None:
    names = sorted(page.name for page in (DOCS / "adr").iterdir())
    assert [int(name.partition("-")[0]) for name in names] == list(range(1, len(names) + 1))
    for name in names:
        page = text_of(f"docs/adr/{name}")
        assert page.startswith(f"# {int(name[:4])}. ")
        for part in ("**Status:**", "## Context", "## Decision", "## Consequences"):
            assert part in page, f"{name}: {part}"


def test_changelog_has_a_place_for_what_is_not_released() -> None:
    assert "\n## Unreleased\n" in text_of("CHANGELOG.md")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_dev_py_exist(page: Path) -> None:
    named = set(re.findall(r"python3 dev\.py ([a-z]+)", page.read_text(encoding="utf-8")))
    assert named - {*dev.COMMANDS, "help"} == set()


def test_contributing_says_of_every_command_what_dev_py_says() -> None:
    rows = re.findall(
        r"^\| `python3 dev\.py ([a-z]+)` \| (.*) \|$", text_of("CONTRIBUTING.md"), re.M
    )
    said = {
        name: (function.__doc__ or "").splitlines()[0] for name, function in dev.COMMANDS.items()
    }
    assert dict(rows) == said


def test_readme_begins_with_the_two_commands() -> None:
    first = next(blocks_of(ROOT / "README.md"))
    assert first.lines == ("python3 dev.py run", "python3 dev.py test")
    assert text_of("README.md").partition("python3 dev.py run")[0].count("\n") < 15


def test_readme_says_the_figures_that_were_measured() -> None:
    readme = " ".join(text_of("README.md").replace("[", "").split())
    (rows,) = re.findall(
        r"^\| `allocator` \| (.+?) \|", text_of("docs/how-to/run-conformance.md"), re.M
    )[-1:]
    assert f"{rows} recorded allocations" in readme
    recorded = json.loads(text_of("docs/data/offline.json"))
    (seconds,) = (row["values"][0] for row in recorded["rows"] if row["name"] == "explain, json")
    assert f"is explained in {seconds:.1f} seconds of CPU time" in readme
    assert "2,000 nodes with 16,000" in recorded["title"]


def test_the_page_about_conformance_counts_the_recorded_allocations() -> None:
    files = sorted(corpus("allocator").glob("*.jsonl"))
    cases = sum(1 for file in files for _ in read_cases(file))
    row = f"| `allocator` | {cases:,} of {cases:,} | |"
    assert row in text_of("docs/how-to/run-conformance.md")
