"""Completion of command lines: the answers, and the scripts in real shells."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dev
from moorage.cli.main import moor
from moorage.cli.shell import completer, live_names, sources
from moorage.cli.shell.completer import complete, complete_line, main
from moorage.cli.shell.names import FoundObject, names_in, names_in_files
from reference.command_tree import options_of, walk
from tests.apiserver.programs import find_kubectls
from tests.apiserver.test_kubectl_server import running

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BIN = Path(sys.executable).parent
BREAKS = " \t\n\"'@><=;|&(:"
TIMEOUT_S = 60


def texts(*words: str) -> list[str]:
    return [each.text for each in complete(words).candidates]


# --- commands and options ----------------------------------------------------------------------


def test_commands_are_completed_with_their_help() -> None:
    answer = complete(["pl"])
    assert list(answer.lines()) == ["plan\tPlan which node and which devices pods would get", ":4"]
    assert texts("driver", "c") == ["check", "classes"]
    assert texts("no-such-command", "") == []


def test_every_command_and_option_is_known() -> None:
    for context in walk(moor, "moor"):
        path = context.command_path.split()[1:]
        if isinstance(context.command, click.Group):
            assert texts(*path, "") == sorted(context.command.list_commands(context))
        names = {
            name
            for option in options_of(context)
            if not option.hidden
            for name in (*option.opts, *option.secondary_opts)
            if name.startswith("--")
        }
        assert set(texts(*path, "--")) == names


def test_an_option_is_offered_once_unless_it_may_be_repeated() -> None:
    assert "--filename" in texts("plan", "-f", "a.yaml", "--")
    assert "--output" not in texts("plan", "-o", "json", "--")
    assert "--output" not in texts("plan", "--output=json", "--")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("plan", "-o", "s"), ["sarif"]),
        (("plan", "--output", "s"), ["sarif"]),
        (("plan", "--output=s"), ["--output=sarif"]),
        (("plan", "-Ro", "s"), ["sarif"]),
        (("plan", "-f", "-o", "s"), []),  # -o is the file
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("completion", "bash", ""), []),
        (("driver", "run", "cpu", "n"), ["net", "nvidia", "nvme"]),
        (("controllers", "--leader-elect", ""), ["true", "false"]),
        (("lint", "--disable", "never-t"), ["never-true"]),
        (("schema", "resourceclaimt"), ["resourceclaimtemplate"]),
        (("plan", "--profile", "dgx"), ["dgx-h100", "dgx-h100-mig"]),
        (("profiles", "gb"), ["gb200-nvl72"]),
    ],
)
def test_values_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert texts(*words) == expected


def test_gates_are_completed_one_after_the_other() -> None:
    answer = complete(["plan", "--feature-gates", "DRAAdmin"])
    assert list(answer.lines()) == ["DRAAdminAccess=", ":6"]
    assert texts("plan", "--feature-gates", "DRAAdminAccess=t") == ["DRAAdminAccess=true"]
    more = texts("plan", "--feature-gates", "DRAAdminAccess=true,DRA")
    assert "DRAAdminAccess=true,DRADeviceTaints=" in more
    assert not any(each.count("DRAAdminAccess") > 1 for each in more)


@pytest.mark.parametrize(
    ("words", "directive"),
    [
        (("plan", "-f", ""), completer.FILES),
        (("profiles", "--write", ""), completer.FOLDERS),
        (("store", "backup", ""), completer.FILES),
        (("run", "--", "ba"), completer.FILES),
        (("cel", "--", "-"), completer.NO_FILES),
        (("node", "--node-name", ""), completer.NO_FILES),
    ],
)
def test_files_are_left_to_the_shell(words: tuple[str, ...], directive: int) -> None:
    assert complete(words) == ((), directive)


def test_options_that_name_objects_have_a_source() -> None:
    """What is not completed is listed here, so that nobody forgets a new option."""
    free = {
        (option.opts[-1], option.metavar)
        for context in walk(moor, "moor")
        for option in options_of(context)
        if "NAME" in (option.metavar or "")
        and not isinstance(option.type, click.Choice)
        and not sources.option_source(option.opts[-1], option.metavar or "", option.type.name)
    }
    assert free == {
        ("--api-audiences", "NAME,…"),
        ("--arrivals", "KIND/NAME=N/h[:DURATION]"),
        ("--claim", "NAME=AMOUNT,…"),
        ("--controllers", "NAME,…"),
        ("--driver", "NAME"),
        ("--drivers", "NAME,…|auto|none"),
        ("--leader-elect-resource-name", "NAME"),
        ("--leader-elect-resource-namespace", "NAME"),
        ("--node-labels", "NAME=VALUE,…"),
        ("--node-name", "NAME"),
        ("--pool", "NAME"),
        ("--selector", "NAME=CEL"),
        ("--system-reserved", "NAME=AMOUNT,…"),
        ("--taint-node", "NAME=KEY[=VALUE]:EFFECT"),
        ("--tls-san", "NAME,…"),
    }


# --- names of objects --------------------------------------------------------------------------

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata: {name: flow, namespace: team}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    name: a-label
  name: "web"   # a comment
spec:
  template:
    metadata:
      name: not-an-object
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: node-1
- apiVersion: v1
  kind: Pod
  metadata:
    name: listed
    namespace: default
    ownerReferences:
    - apiVersion: apps/v1
      kind: ReplicaSet
      name: web-1
"""


def test_names_are_found_in_yaml_and_json() -> None:
    expected = [
        FoundObject("Pod", "team", "flow"),
        FoundObject("Deployment", "", "web"),
        FoundObject("Node", "", "node-1"),
        FoundObject("Pod", "default", "listed"),
    ]
    assert list(names_in(MANIFEST)) == expected
    items = [
        {"kind": kind, "metadata": {"name": name, "namespace": space}}
        for kind, space, name in expected
    ]
    text = json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4)
    assert list(names_in(text)) == expected


def test_objects_of_files_are_completed(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(MANIFEST)
    given = ("-f", str(tmp_path))
    assert texts("explain", *given, "") == ["pod/team/flow", "deployment/web", "pod/listed"]
    assert texts("explain", *given, "-n", "team", "pod/") == ["pod/flow", "pod/default/listed"]
    assert texts("explain", *given, "-A", "po/") == ["po/flow", "po/listed"]
    assert texts("explain", *given, "deployment", "") == ["web"]
    assert texts("explain", *given, "pod", "x", "") == []
    assert texts("whatif", "--on", str(tmp_path), "--drain", "") == ["node-1"]
    assert texts("whatif", "--on", str(tmp_path), "--delete-pod", "") == ["team/flow", "listed"]
    assert texts("claims", "--on", str(tmp_path), "-n", "") == ["default", "team"]


def test_without_objects_kinds_are_completed() -> None:
    answer = complete(["explain", "res"])
    assert answer.candidates == ()
    answer = complete(["explain", "dep"])
    assert list(answer.lines()) == ["deployment/", ":6"]


def test_classes_come_from_files_and_profiles() -> None:
    on = ("--on", str(EXAMPLES / "gpu-node"))
    assert texts("devices", *on, "--class", "") == ["gpu.example.com", "nic.example.com"]
    assert "gpu.nvidia.com" in texts("devices", "--profile", "dgx-h100=2", "--class", "")


def test_folders_are_searched_below_with_recursive_only(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "all.yaml").write_text(MANIFEST)
    assert names_in_files([str(tmp_path)], recursive=False) == []
    assert len(names_in_files([str(tmp_path)], recursive=True)) == 4


def test_what_cannot_be_read_does_no_harm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # would wait for a writer
    (tmp_path / "binary.yaml").write_bytes(b"\xff\x00kind: Pod\n")
    names = [str(tmp_path / name) for name in ("pipe", "missing", "binary.yaml")]
    assert names_in_files([*names, "-"], recursive=True) == []


def test_reading_is_bounded(tmp_path: Path) -> None:
    pod = "kind: Pod\nmetadata:\n  name: pod-{}\n---\n"
    (tmp_path / "a.yaml").write_text("".join(pod.format(i) for i in range(10_000)))
    (tmp_path / "b.yaml").write_text(pod.format("last"))
    found = names_in_files([str(tmp_path)], recursive=False)
    assert len(found) <= 5000
    assert "pod-last" not in {each.name for each in found}


def test_names_cannot_be_more_than_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = 'kind: Pod\nmetadata: {name: "a\\nb"}\n---\nkind: Pod\nmetadata:\n  name: x\x1b[31m\n'
    (tmp_path / "all.yaml").write_text(text)
    main(["--", "explain", "-f", str(tmp_path), "pod/"])
    assert "\x1b" not in capsys.readouterr().out


def test_objects_of_a_cluster_are_completed(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    with running(tmp_path / "data") as text:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(text)
        (name,) = live_names.contexts(str(kubeconfig))
        assert texts("devices", "--kubeconfig", str(kubeconfig), "--context", "") == [name]
        found = live_names.live_names(["Namespace"], str(kubeconfig), "")
        assert FoundObject("Namespace", "", "default") in found
        live = ("--live", "--kubeconfig", str(kubeconfig))
        assert "kube-system" in texts("claims", *live, "-n", "kube")


@pytest.mark.parametrize("text", ["", "clusters: 1\n", "current-context: x\n", "\x00"])
def test_a_cluster_that_cannot_be_reached_has_no_names(tmp_path: Path, text: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(text)
    assert texts("claims", "--live", "--kubeconfig", str(kubeconfig), "-n", "") == []
    assert texts("claims", "--kubeconfig", str(kubeconfig), "--context", "") == []
    assert texts("claims", "--kubeconfig", str(tmp_path / "missing"), "--context", "") == []


# --- shells ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("moor pl", ["plan"]),
        ("moor plan --output=s", ["sarif"]),
        (
            "moor plan --feature-gates DRAAdminAccess=true,DRADeviceTaintR",
            ["true,DRADeviceTaintRules="],
        ),
        ("moor plan --gates-preset ", ["moorage", "kubernetes-1.37"]),
        ("moor plan --profile 'dgx-h100-", ["dgx-h100-mig"]),
        ('moor plan --profile "dgx-h100-', ["dgx-h100-mig"]),
    ],
)
def test_bash_gets_what_follows_its_last_break(line: str, expected: list[str]) -> None:
    assert [each.text for each in complete_line(line, BREAKS).candidates] == expected


def test_a_line_that_is_odd_has_no_answer_and_no_error() -> None:
    for line in ("", "moor", "moor '\"", "moor \\", "\0", "moor " + "x" * 200_000):
        complete_line(line, BREAKS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_as_it_is(shell: str) -> None:
    done = CliRunner().invoke(moor, ["completion", shell])
    assert done.exit_code == 0
    source = ROOT / "src" / "moorage" / "cli" / "shell" / f"moor.{shell}"
    assert done.stdout == source.read_text(encoding="utf-8")


def test_completion_imports_neither_click_nor_commands() -> None:
    script = (
        "import sys; from moorage.cli.__main__ import main; "
        f"sys.argv = ['moor', '__complete', '--', 'explain', '-f', {str(EXAMPLES)!r}, 'pod/']; "
        "main(); print(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    modules = done.stdout.splitlines()[-1].split()
    ours = {name for name in modules if name.partition(".")[0] == "moorage"}
    assert ours <= {
        "moorage",
        "moorage.cli",
        "moorage.cli.__main__",
        "moorage.cli.shell",
        *(f"moorage.cli.shell.{each}" for each in ("completer", "names", "sources", "values")),
        "moorage.cli.shell.words",
    }
    assert not {"click", "msgspec", "yaml", "asyncio", "ssl"} & {*modules}
    assert len(modules) < 140


def environment(**more: str) -> dict[str, str]:
    return {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **more}


def bash(line: str, folder: Path = ROOT) -> list[str]:
    """Return what our function gives to bash for a line, whose words bash breaks as here."""
    words = list(_broken(line))
    program = f"""
        source <(moor completion bash)
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
        COMP_WORDS=({" ".join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}
        _moor 2>/dev/null
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", program],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    return done.stdout.split()


def _broken(line: str) -> Iterator[str]:
    for word in line.split(" "):
        name, equals, rest = word.partition("=")
        yield from (name, "=", rest) if equals else (word,)


def test_bash_completes() -> None:
    assert bash("moor pl") == ["plan"]
    assert bash("moor plan --output=s") == ["sarif"]
    assert bash("moor explain -f examples/training deploy") == ["deployment/training"]
    assert bash("moor no-such-command ") == []


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, command: list[str], variables: dict[str, str]) -> None:
        self._end, other = pty.openpty()
        self._shell = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=variables,
            start_new_session=True,
        )
        os.close(other)

    def types(self, text: str, wanted: str) -> None:
        """Type a text and read what is shown until it has another; the shell may end instead."""
        os.write(self._end, text.encode())
        seen = b""
        while wanted.encode() not in seen:
            try:
                part = os.read(self._end, 4096)
            except OSError:  # how Linux says that the other side is closed
                part = b""
            assert part, seen
            seen += part

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._end)


@pytest.fixture
def terminal_variables(tmp_path: Path) -> dict[str, str]:
    return environment(TERM="dumb", PS1="> ", HOME=str(tmp_path), HISTFILE="")


def test_bash_completes_when_tab_is_pressed(terminal_variables: dict[str, str]) -> None:
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], terminal_variables)
    try:
        terminal.types("source <(moor completion bash); echo re''ady\n", "ready\r\n")
        terminal.types("moor plan --profile dgx-h100-\t", "dgx-h100-mig ")
        terminal.types(f"\x15moor explain -f {EXAMPLES}/training depl\t", "deployment/training ")
    finally:
        terminal.close()


def shell_program(name: str) -> str:
    """Return a shell, the machine's own or that of Debian in .tools; skip a test without one."""
    for path in (shutil.which(name), dev.SHELLS / "bin" / name, dev.SHELLS / "usr/bin" / name):
        if path and Path(path).exists():
            return str(path)
    pytest.skip(f"no {name}: `python3 dev.py test` fetches it where it can be had")


def shell_environment() -> dict[str, str]:
    libraries = dev.SHELLS / "usr" / "lib"
    folders = ":".join(map(str, libraries.glob("*-linux-gnu"))) if libraries.is_dir() else ""
    return environment(LD_LIBRARY_PATH=folders, HOME=str(dev.SHELLS))


def test_fish_completes() -> None:
    program = "moor completion fish | source; complete -C 'moor pl'; "
    program += "complete -C 'moor plan --profile dgx-h100-'; complete -C 'moor plan -f exam'"
    done = subprocess.run(
        [shell_program("fish"), "--no-config", "-c", program],
        cwd=ROOT,
        env=shell_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == [
        "plan",
        "dgx-h100-mig",
        "examples/",
    ]


ZSH = """
# What zsh's own functions would show.
compdef() { :; }
_describe() { print -rl -- "${(@P)4}"; shift 4; print -r -- "options: $*" }
_files() { print -r -- "files: $*" }
source <(moor completion zsh)
for line in 'pl' 'plan -f ' 'profiles --write ' 'explain dep' "plan --profile 'dgx-h100-'"; do
    words=(moor "${(@s: :)line}"); CURRENT=${#words}
    _moor
done
"""


def test_zsh_completes() -> None:
    done = subprocess.run(
        [shell_program("zsh"), "-f", "-c", ZSH],
        cwd=ROOT,
        env=shell_environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    assert done.stdout.splitlines() == [
        "plan:Plan which node and which devices pods would get",
        "options: ",
        "files: ",
        "files: -/",
        "deployment/",
        "options: -S ",
        "dgx-h100-mig:NVIDIA DGX H100 with MIG",
        "options: ",
    ]


def test_zsh_completes_when_tab_is_pressed(terminal_variables: dict[str, str]) -> None:
    program = shell_program("zsh")
    start = "autoload -Uz compinit; compinit -u -D; source <(moor completion zsh); echo re''ady\n"
    if Path(program).is_relative_to(dev.SHELLS):  # which does not know where its files are
        (modules,) = (dev.SHELLS / "usr" / "lib").glob("*/zsh/*")
        functions = dev.SHELLS / "usr" / "share" / "zsh" / "functions"
        start = f"module_path=({modules}); fpath=({functions}/**/*(/)); zmodload zsh/zle; {start}"
    variables = {**shell_environment(), **terminal_variables}
    terminal = Terminal([program, "-f", "-i"], variables)
    try:
        terminal.types(start, "ready\r\n")
        terminal.types("moor plan --profile dgx-h100-\t", "dgx-h100-mig")
        terminal.types(f"\x15moor explain -f {EXAMPLES}/training depl\t", "deployment/training")
    finally:
        terminal.close()


@pytest.mark.parametrize(("words", "expected"), [(["pl"], "plan"), (["plan", "-o", "sa"], "sarif")])
def test_kubectl_completes_its_plugin(words: list[str], expected: str) -> None:
    known = [path for release, path in find_kubectls().items() if release != "own"]
    if not known:
        pytest.skip("no kubectl 1.26 or newer: `python3 dev.py test` fetches one")
    done = subprocess.run(
        [known[0], "__complete", "moor", *words],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    )
    first, directive = done.stdout.splitlines()[:2]
    assert first.partition("\t")[0] == expected
    assert directive == ":4"
