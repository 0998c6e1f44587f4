"""The installed package: the wheel alone in a fresh environment, the extras, and the sdist."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import dev
from moorage.cli.main import moor
from moorage.kit.extras import EXTRAS, remedy
from reference.man_pages import man_pages
from tests.apiserver.test_kubectl_server import running
from tests.test_docs import blocks_of, commands_of, matches

ROOT = Path(__file__).parents[1]
REQUIREMENTS = ROOT / "requirements"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = {
    "": PROJECT["dependencies"],
    **{name: PROJECT["optional-dependencies"][name] for name in EXTRAS},
}

# What a command that needs an extra is called with here, and the extra. {there} is a folder in
# which a server ran. Those that need an extra for some options only stand at the end.
NEEDS: list[tuple[str, str]] = [
    ("up", "server"),
    ("ui", "server"),
    ("control-plane", "server"),
    ("server", "server"),
    ("reset", "server"),
    ("run --claim cpu=1 -- true", "server"),
    ("node --kubeconfig {there}/kubeconfig", "drivers"),
    ("driver check -- true", "server"),
    ("driver run cpu --node-name a --kubeconfig {there}/kubeconfig", "drivers"),
    ("store check --etcd-servers http://127.0.0.1:1", "server"),
    ("kubeconfig --data-dir {there} --node a --folder a", "server"),
]
ALWAYS = {"up", "ui", "control-plane", "server", "reset", "run", "node", "driver check"}

# A program for the Python of the base installation: the help of every command.
HELP = """
import json, sys
from click.testing import CliRunner
from moorage.cli.main import moor
found = {}
for path in json.load(sys.stdin):
    done = CliRunner().invoke(moor, [*path.split(), "--help"])
    found[path] = [done.exit_code, done.output, repr(done.exception)]
json.dump(found, sys.stdout)
"""

# And for all modules: None where it can be imported, else the type and text of the error.
MODULES = """
import importlib, json, pkgutil, sys
import moorage
found = {}
for module in pkgutil.walk_packages(moorage.__path__, "moorage."):
    try:
        importlib.import_module(module.name)
    except Exception as error:
        found[module.name] = [type(error).__name__, str(error)]
    else:
        found[module.name] = None
json.dump(found, sys.stdout)
"""


class Base:
    """An environment with the wheel and its base dependencies, nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = dev.python_of(folder / "venv")

    def script(
        self, name: str, *arguments: str, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run an installed script, in the folder of the environment or in another."""
        return self._run(str(self.python.with_name(name)), *arguments, folder=folder)

    def program(self, text: str, *, given: str = "", folder: Path | None = None) -> str:
        """Run a program of Python and return what it prints."""
        done = self._run(str(self.python), "-c", text, given=given, folder=folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def pytest(self, *arguments: str, path: Path) -> str:
        """Run pytest of another folder of packages and return what it prints."""
        options = ("-q", "-p", "no:cacheprovider")
        return self._run(str(self.python), "-m", "pytest", *options, *arguments, path=path).stdout

    def _run(
        self,
        *command: str,
        given: str = "",
        path: Path | None = None,
        folder: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}
        if path is not None:
            environment["PYTHONPATH"] = str(path)
        return subprocess.run(
            command,
            cwd=folder or self.folder,
            env=environment,
            input=given,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
            check=False,
        )


def built(target: str, folder: Path) -> Path:
    """Return the wheel or sdist, built into a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


def install(*arguments: Path | str) -> None:
    """Have uv do something: that of dev.py, whichever Python made it."""
    uv = dev.TOOLS / "bin" / "uv"
    command = [uv if uv.exists() else dev.ensure_uv(), *arguments]
    environment = {**os.environ, "UV_NO_CONFIG": "1"}
    subprocess.run(list(map(str, command)), env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """Install the wheel into a fresh environment, with what its base brings."""
    made = Base(tmp_path_factory.mktemp("base"))
    wheel = built("wheel", tmp_path_factory.mktemp("wheel"))
    install("venv", "--quiet", "--python", sys.executable, made.folder / "venv")
    into = ("pip", "install", "--quiet", "--python", made.python)
    install(*into, "--require-hashes", "-r", REQUIREMENTS / "run.txt")
    install(*into, "--no-deps", wheel)
    return made


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run a server with TLS and certificates; its kubeconfig is in the folder."""
    folder = tmp_path_factory.mktemp("there")
    with running(folder / "data") as text:
        (folder / "kubeconfig").write_text(text)
        yield folder


# --- the base installation ---------------------------------------------------------------------


def test_base_dependencies_are_all_that_the_wheel_asks_for(base: Base) -> None:
    text = "import importlib.metadata as m; print(*{each.name for each in m.distributions()})"
    brought = {canonicalize_name(name) for name in base.program(text).split()}
    assert {"moorage", *names(DECLARED[""])} <= brought
    assert brought.isdisjoint(name for extra in EXTRAS for name in names(DECLARED[extra]))


def names(requirements: Iterable[str]) -> set[str]:
    """Return the names of distributions that are required."""
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def test_every_command_answers_help(base: Base) -> None:
    paths = list(commands(moor))
    assert {"", "up", "driver check", "store backup"} <= {*paths}
    found = json.loads(base.program(HELP, given=json.dumps(paths)))
    assert [path for path in paths if found[path][0] != 0 or "Usage:" not in found[path][1]] == []
    say_so = {path for path in paths if re.search(r"Needs\s+the\s+\w+\s+extra\.", found[path][1])}
    assert say_so == ALWAYS


def commands(command: click.Command, path: str = "") -> Iterator[str]:
    """Yield a command and its subcommands, as words after `moor`."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, f"{path} {name}".strip())


@pytest.mark.parametrize(
    ("script", "arguments"),
    [("moor", "--help"), ("kubectl-moor", "up --help"), ("moor", "driver check --help")],
)
def test_scripts_answer_help(base: Base, script: str, arguments: str) -> None:
    done = base.script(script, *arguments.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")


def test_manual_pages_and_completion_are_installed(base: Base) -> None:
    pages = base.folder / "venv" / "share" / "man" / "man1"
    assert {path.name for path in pages.iterdir()} == man_pages().keys()
    done = base.script("moor", "__complete", "--", "plan", "--profile", "dgx-h100-")
    assert done.stdout == "dgx-h100-mig\tNVIDIA DGX H100 with MIG\n:4\n"
    assert base.script("kubectl_complete-moor", "completion", "b").stdout == "bash\n:4\n"
    assert base.script("moor", "completion", "bash").stdout.endswith("complete -F _moor moor\n")
    assert base.script("moor", "schema", "resourceclaim").returncode == 0


@pytest.mark.parametrize(("arguments", "extra"), NEEDS)
def test_a_command_that_needs_an_extra_says_so_in_one_line(
    arguments: str, extra: str, base: Base, there: Path
) -> None:
    done = base.script("moor", *arguments.format(there=there).split())
    name = name_of(arguments)
    wanted = f"error: moor {name} needs the {extra} extra: {remedy(extra)}\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", wanted)
    assert not (base.folder / "moorage-data").exists()


def name_of(arguments: str) -> str:
    """Return the words of the command in a line of arguments, as a refusal names it."""
    return " ".join(arguments.split()[: 2 if arguments.startswith("driver") else 1])


def test_commands_that_always_need_an_extra_are_tried() -> None:
    assert {name for name in ALWAYS if not any(each.startswith(name) for each, _ in NEEDS)} == set()


def test_the_page_about_installing_names_them_with_their_extras() -> None:
    page = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
    for arguments, extra in NEEDS:
        (row,) = re.findall(rf"^\| `{extra}` \|.*$", page, flags=re.MULTILINE)
        words = "moor kubeconfig --node" if "kubeconfig --data-dir" in arguments else ""
        words = words or ("--etcd-servers" if "--etcd-servers" in arguments else "")
        assert f"`{words or f'moor {name_of(arguments)}'}`" in row, arguments


def test_a_cluster_is_looked_at_without_extras(base: Base, there: Path) -> None:
    """TLS with the client's certificate included."""
    assert "client-certificate-data" in (there / "kubeconfig").read_text()
    done = base.script("moor", "devices", "--live", "--kubeconfig", str(there / "kubeconfig"))
    assert (done.returncode, done.stderr) == (0, "No devices found.\n")


def test_commands_of_the_readme_work_after_pip_install_in_another_folder(
    base: Base, tmp_path: Path
) -> None:
    """Each command prints what the README of the package says, as an index shows it."""
    said = "import importlib.metadata as m; print(m.metadata('moorage').get_payload())"
    readme = tmp_path / "README.md"
    readme.write_text(base.program(said), encoding="utf-8")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    ran = []
    for block in blocks_of(readme):
        if block.file:
            (folder / block.file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        if block.language == "python":
            base.program("\n".join(block.lines), folder=folder)
        if block.language != "console":
            continue
        for command in commands_of(block):
            script, *arguments = shlex.split(command.text)
            done = base.script(script, *arguments, folder=folder)
            output = tuple((done.stderr + done.stdout).splitlines())
            assert matches(command.expected, output), (command.text, output)
            ran.append(arguments[0])
    assert {"examples", "plan", "explain", "fit", "validate", "cel"} <= {*ran}


# --- as a library ------------------------------------------------------------------------------


def test_every_module_can_be_imported_or_names_its_extra(base: Base) -> None:
    found = json.loads(base.program(MODULES))
    assert found.pop("moorage.testing.plugin")[1] == "No module named 'pytest'"
    failed = {name: error for name, error in found.items() if error is not None}
    remedies = re.compile(
        f"is not installed: ({'|'.join(re.escape(remedy(extra)) for extra in EXTRAS)})"
    )
    unclear = [
        name
        for name, (kind, text) in failed.items()
        if kind != "MissingExtraError" or not remedies.search(text)
    ]
    assert unclear == []
    assert "moorage[drivers]" in failed["moorage.driver.serving"][1]
    assert "moorage[server]" in failed["moorage.testing.cluster"][1]
    assert "moorage[server]" in failed["moorage.testing.kubelet"][1]
    assert failed.keys().isdisjoint(
        ("moorage.driver", "moorage.driver.metadata", "moorage.testing", "moorage.client.informers")
    )


def test_a_driver_that_is_run_names_its_extra_in_one_line(base: Base) -> None:
    assert base.script("moor", "driver", "new", "gpu.example.com").returncode == 0
    done = base.script("python", "gpu/driver.py", "--node-name", "a")
    wanted = f"error: a driver needs the drivers extra: {remedy('drivers')}\n"
    assert (done.returncode, done.stderr) == (1, wanted)


def test_the_pytest_plugin_disturbs_nobody_and_names_its_extra(base: Base, tmp_path: Path) -> None:
    target = ("pip", "install", "--quiet", "--python", base.python, "--target", tmp_path / "tools")
    install(*target, "--constraint", REQUIREMENTS / "dev.txt", "pytest")
    plain, driver = tmp_path / "test_plain.py", tmp_path / "test_driver.py"
    plain.write_text("def test_plain():\n    pass\n")
    driver.write_text("def test_driver(dra_cluster, fake_kubelet):\n    pass\n")
    assert "1 passed" in base.pytest(str(plain), path=tmp_path / "tools")
    said = base.pytest(str(driver), path=tmp_path / "tools")
    assert f"dra_cluster needs the server extra: {remedy('server')}" in said
    assert "Traceback" not in said
    assert "import" not in said


# --- what is declared --------------------------------------------------------------------------


def test_extras_bring_what_the_code_says_they_bring() -> None:
    known = packages_distributions()
    for extra, packages in EXTRAS.items():
        brought = {
            canonicalize_name("protobuf" if name == "google.protobuf" else known[name][0])
            for name in packages
        }
        assert names(DECLARED[extra]) - {"nvidia-ml-py"} == brought


def test_all_is_every_extra() -> None:
    (everything,) = map(Requirement, PROJECT["optional-dependencies"]["all"])
    assert everything.name == PROJECT["name"]
    assert everything.extras == PROJECT["optional-dependencies"].keys() - {"all"}


def test_declared_minimums_are_the_pins_that_are_tried() -> None:
    pins = dict(
        re.findall(
            r"^([\w.-]+)==(\S+)",
            (REQUIREMENTS / "minimum.txt").read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
    )
    for each in {text for texts in DECLARED.values() for text in texts}:
        requirement = Requirement(each)
        (bound,) = requirement.specifier
        assert bound.operator == ">=", each
        assert Version(bound.version) == Version(pins[canonicalize_name(requirement.name)]), each


# --- the sdist ---------------------------------------------------------------------------------


def test_the_sdist_has_all_that_tests_and_their_commands_need(tmp_path: Path) -> None:
    with tarfile.open(built("sdist", tmp_path)) as archive:
        packed = {name.partition("/")[2] for name in archive.getnames()}
    assert [path for path in files(ROOT) if path not in packed] == []
    assert {"dev.py", "conformance/__main__.py", "soak/__main__.py", ".ci/run"} <= packed


def files(root: Path) -> Iterator[str]:
    """Yield the paths of all files that belong to the repository."""
    ignored = [line.strip("/") for line in (root / ".gitignore").read_text().splitlines()]
    for folder, below, found in os.walk(root):
        below[:] = [name for name in below if name != ".git" and not _is_any(name, ignored)]
        for name in found:
            if name != ".git" and not _is_any(name, ignored):
                yield (Path(folder) / name).relative_to(root).as_posix()


def _is_any(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
