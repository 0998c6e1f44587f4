"""What others install: the GitHub Action, the hooks of pre-commit, the plugin of krew."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from moorage.cli.main import moor
from release.krew import archive_name, krew_archive, krew_manifest, semantic_version

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec: {devices: {requests: [{name: gpu, exactly: {%s}}]}}
"""
GOOD, BAD = CLAIM % ("good", "deviceClassName: x"), CLAIM % ("bad", "count: 2")


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def program(path: Path, text: str) -> Path:
    """Write a script for sh."""
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return path


# --- the GitHub Action -------------------------------------------------------------------------

# Stands in for Python: records what it is told, and makes an environment that has our moor.
FAKE_PYTHON = f"""
echo "$@" >>"$LOG"
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    ln -s {shlex.quote(str(BIN / "moor"))} "$3/bin/moor"
fi
"""


class Job:
    """A job of GitHub Actions with our action as a step, in a checkout with two manifests."""

    def __init__(self, folder: Path) -> None:
        self.action = loaded("action.yml")
        self.workspace = folder / "check out"
        (self.workspace / "manifests" / "below").mkdir(parents=True)
        (self.workspace / "manifests" / "good.yaml").write_text(GOOD)
        (self.workspace / "manifests" / "below" / "bad.yaml").write_text(BAD)
        self.log, self.output = folder / "log", folder / "output"
        self._environment = {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "LOG": str(self.log),
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(folder / "temp"),
        }
        (folder / "temp").mkdir()
        self._python = program(folder / "python", FAKE_PYTHON)

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the steps as GitHub does, until one fails."""
        given = {name: each["default"] for name, each in self.action["inputs"].items()} | inputs
        values = {f"inputs.{name}": value for name, value in given.items()}
        values["steps.python.outputs.python-path"] = str(self._python)
        for step in self.action["runs"]["steps"]:
            if "run" not in step:
                continue
            assert step["shell"] == "bash"
            variables = {
                name: re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)
                for name, text in step.get("env", {}).items()
            }
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.workspace,
                env={**self._environment, **variables},
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            if done.returncode:
                break
        return done

    @staticmethod
    def shown(done: subprocess.CompletedProcess[str]) -> list[str]:
        """Return the lines of the log, and check that no text in them can be a command.

        The runner takes `::NAME …::` at the beginning of a line, and `##[NAME]` anywhere in one,
        for a command, unless a line `::stop-commands::TOKEN` came before.
        """
        assert not done.stderr
        lines = done.stdout.splitlines()
        (begin,) = (n for n, line in enumerate(lines) if line.startswith("::stop-commands::"))
        token = lines[begin].removeprefix("::stop-commands::")
        assert re.fullmatch("[0-9a-f]{32}", token)
        assert lines[-1] == f"::{token}::"
        assert all(re.match("::(error|warning|notice) [^:]+::", line) for line in lines[:begin])
        return [*lines[:begin], *lines[begin + 1 : -1]]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_the_action_annotates_manifests(job: Job) -> None:
    done = job.run()
    assert done.returncode == 1, done.stderr
    first, summary = job.shown(done)
    assert first.startswith("::error file=manifests/below/bad.yaml,line=4,")
    assert summary == "2 objects in 2 files: 1 accepted, 1 refused, 0 warnings"
    assert job.output.read_text() == "status=1\n"


def test_the_action_installs_its_own_ref_with_pinned_dependencies(job: Job) -> None:
    job.run(files="manifests/good.yaml")
    quiet = "-m pip install --quiet --disable-pip-version-check"
    made, dependencies, package = job.log.read_text().splitlines()
    assert made.startswith("-m venv ")
    assert dependencies == f"{quiet} --require-hashes -r {ROOT}/requirements/run.txt"
    assert package == f"{quiet} --no-deps {ROOT}"


def test_the_action_writes_a_report_to_a_file(job: Job) -> None:
    done = job.run(format="sarif", output="moor.sarif", files="manifests\n\n", args="--strict\n")
    assert (done.returncode, job.shown(done)) == (1, [])
    assert '"ruleId": "FieldValueRequired"' in (job.workspace / "moor.sarif").read_text()


def test_the_action_plans(job: Job) -> None:
    arguments = "--profile\nexample-gpu\n"
    done = job.run(command="plan", files="manifests/good.yaml", args=arguments)
    assert done.returncode == 1
    assert "::error file=manifests/good.yaml,line=1,col=1,title=NoNode::claim/good" in done.stdout


def test_the_action_succeeds_where_all_is_well(job: Job) -> None:
    done = job.run(files="manifests/good.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert job.output.read_text() == "status=0\n"


@pytest.mark.parametrize(
    "inputs",
    [
        {"command": "up"},
        {"command": "$(touch injected)"},
        {"files": "$(touch injected); touch injected"},
        {"args": "`touch injected`"},
        {"format": "json; touch injected"},
    ],
    ids=str,
)
def test_inputs_of_the_action_are_values_not_code(job: Job, inputs: dict[str, str]) -> None:
    assert job.run(**inputs).returncode in (2, 3)
    assert not (job.workspace / "injected").exists()
    assert not any("${{" in step.get("run", "") for step in job.action["runs"]["steps"])


@pytest.mark.parametrize("command", ["validate", "lint", "plan"])
@pytest.mark.parametrize("output", ["github", "json", "sarif"])
def test_no_name_in_a_manifest_is_a_command_of_the_job(job: Job, command: str, output: str) -> None:
    stop = "##[stop-commands]now"
    named = GOOD.replace("good", f'"x {stop}"') + f"---\nkind: 'Foo {stop}'\n"
    (job.workspace / f"{stop}.yaml").write_text(named)
    profile = "--profile\nexample-gpu" if command == "plan" else ""
    files = f"{stop}.yaml\n{stop}-gone.yaml"
    done = job.run(command=command, files=files, format=output, args=profile)
    assert any(stop in line for line in job.shown(done))


def test_the_action_is_declared_as_github_wants_it(job: Job) -> None:
    action = job.action
    assert action.keys() == {
        *("name", "description", "author", "branding", "inputs", "outputs", "runs")
    }
    assert action["runs"]["using"] == "composite"
    assert all(type(each["default"]) is str for each in action["inputs"].values())
    assert all(each["description"] for each in action["inputs"].values())
    used = [step["uses"] for step in action["runs"]["steps"] if "uses" in step]
    assert all(re.fullmatch(r"actions/setup-python@v\d+", each) for each in used)
    choices = option_choices("validate", "output")
    assert action["inputs"]["format"]["default"] in choices


def option_choices(command: str, name: str) -> list[str]:
    found = moor.get_command(click.Context(moor), command)
    assert found is not None
    (option,) = (each for each in found.params if each.name == name)
    assert isinstance(option.type, click.Choice)
    return list(option.type.choices)


# --- pre-commit --------------------------------------------------------------------------------

# What pre-commit takes of a hook, and what it needs.
HOOK_KEYS = {"id", "name", "description", "entry", "language", "types_or", "require_serial"}


@pytest.mark.parametrize("hook", loaded(".pre-commit-hooks.yaml"), ids=lambda hook: hook["id"])
def test_a_hook_of_pre_commit_checks_the_files_it_is_given(
    hook: dict[str, Any], tmp_path: Path
) -> None:
    assert hook.keys() == HOOK_KEYS
    assert hook["language"] == "python"
    assert hook["types_or"] == ["yaml", "json"]
    assert hook["id"] == hook["name"].replace(" ", "-")
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(BAD if "validate" in hook["id"] else "a: [")
    for names, status in ((["good.yaml"], 0), (["good.yaml", "bad.yaml"], None)):
        done = subprocess.run(
            [*shlex.split(hook["entry"]), *names],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if status is None:
            assert done.returncode != 0
            assert "bad.yaml" in done.stdout + done.stderr
        else:
            assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def test_hooks_are_installed_with_the_package() -> None:
    scripts = dev_project()["project"]["scripts"]
    for hook in loaded(".pre-commit-hooks.yaml"):
        assert shlex.split(hook["entry"])[0] in scripts


def dev_project() -> Any:
    import tomllib

    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# --- krew --------------------------------------------------------------------------------------

REPOSITORY = "https://example.com/moorage"
VERSION = "0.1.0.dev0"
WHEEL = f"moorage-{VERSION}-py3-none-any.whl"


def krew() -> bytes:
    return krew_archive(ROOT, (WHEEL, b"a wheel"), version=VERSION, epoch_s=1)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / archive_name(VERSION)
    path.write_bytes(krew())
    return path


def test_the_archive_of_krew_has_what_its_launcher_needs(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        modes = {each.name: each.mode for each in packed}
    assert modes == {
        "LICENSE": 0o644,
        "kubectl-moor": 0o755,
        WHEEL: 0o644,
        "requirements.txt": 0o644,
    }


def test_the_same_files_give_the_same_archive() -> None:
    assert krew() == krew()


def test_the_manifest_of_krew_describes_its_archive(archive: Path) -> None:
    content = archive.read_bytes()
    text = krew_manifest(ROOT, content, version=VERSION, repository=REPOSITORY)
    manifest = yaml.safe_load(text)
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (manifest["kind"], manifest["metadata"]) == ("Plugin", {"name": "moor"})
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[a-z]+\.\d+)?", spec["version"])
    assert spec["homepage"] == REPOSITORY
    assert 0 < len(spec["shortDescription"]) <= 50
    assert not spec["shortDescription"].endswith(".")
    assert "Python 3.11" in spec["caveats"]
    (platform,) = spec["platforms"]
    assert platform["uri"] == f"{REPOSITORY}/releases/download/v{VERSION}/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    with tarfile.open(archive) as packed:
        assert platform["bin"] in packed.getnames()
    assert platform["files"] == [{"from": "*", "to": "."}]
    wanted = {"os": ["linux", "darwin"], "arch": ["amd64", "arm64"]}
    expressions = platform["selector"]["matchExpressions"]
    assert {each["key"]: each["values"] for each in expressions} == wanted
    assert all(each["operator"] == "In" for each in expressions)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.2.3", "v1.2.3"), ("0.1.0.dev0", "v0.1.0-dev.0"), ("1.0.0rc2", "v1.0.0-rc.2")],
)
def test_versions_are_written_as_krew_wants_them(version: str, expected: str) -> None:
    assert semantic_version(version) == expected


class Plugin:
    """The plugin, as krew puts it: files in a store, and a link on the path."""

    def __init__(self, archive: Path, folder: Path) -> None:
        store, self.bin, self.home = folder / "the store", folder / "bin", folder / "home"
        self.bin.mkdir()
        with tarfile.open(archive) as packed:
            packed.extractall(store, filter="data")
        (self.bin / "kubectl-moor").symlink_to(os.path.relpath(store / "kubectl-moor", self.bin))
        self.log = folder / "log"
        self.tools = folder / "tools"
        self.tools.mkdir()
        for name in ("sh", "dirname", "readlink", "mkdir", "rm", "touch", "cp", "ln", "cat"):
            (self.tools / name).symlink_to(str(shutil.which(name)))

    def has_python(self, text: str) -> None:
        program(self.tools / "python3", text)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.bin / "kubectl-moor"), *arguments],
            env={
                "PATH": str(self.tools),
                "HOME": str(self.home),
                "LOG": str(self.log),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def plugin(archive: Path, tmp_path: Path) -> Plugin:
    return Plugin(archive, tmp_path)


KREW_PYTHON = """
if [ "$1" = -c ]; then exit 0; fi
echo "$@" >>"$LOG"
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin"
    cp "$0" "$3/bin/python"
    printf '#!/bin/sh\\necho "moor got: $*"\\n' >"$3/bin/kubectl-moor"
    /bin/chmod +x "$3/bin/kubectl-moor"
fi
"""


def test_the_plugin_installs_itself_once_and_passes_arguments_on(plugin: Plugin) -> None:
    plugin.has_python(KREW_PYTHON)
    first = plugin.run("plan", "-f", "a b.yaml")
    assert (first.returncode, first.stdout) == (0, "moor got: plan -f a b.yaml\n")
    assert "first use of 0.1.0.dev0" in first.stderr
    lines = plugin.log.read_text().splitlines()
    home = plugin.home / ".local/share/moorage/0.1.0.dev0"
    assert lines[0] == f"-m venv {home}"
    assert lines[1].endswith("the store/requirements.txt")
    assert "--require-hashes" in lines[1]
    assert lines[2].endswith(f"the store/{WHEEL}")
    second = plugin.run("--version")
    assert (second.stdout, second.stderr) == ("moor got: --version\n", "")
    assert plugin.log.read_text().splitlines() == lines
    assert not stat.S_IMODE(home.stat().st_mode) & 0o002


def test_the_plugin_without_a_python_says_what_it_needs(plugin: Plugin) -> None:
    plugin.has_python("exit 1\n")
    done = plugin.run()
    assert done.returncode == 3
    assert done.stderr == ("kubectl moor: needs Python 3.11 or newer with venv, on the PATH\n")


def test_an_installation_that_failed_is_tried_again(plugin: Plugin) -> None:
    plugin.has_python(KREW_PYTHON.replace("-m venv", "-m no-venv") + 'exit "$(cat "$LOG.fails")"\n')
    Path(f"{plugin.log}.fails").write_text("1")
    done = plugin.run()
    assert done.returncode == 3
    assert "no environment can be made at" in done.stderr
    plugin.has_python(KREW_PYTHON)
    assert plugin.run("x").stdout == "moor got: x\n"


def test_two_do_not_install_at_once(plugin: Plugin) -> None:
    plugin.has_python(KREW_PYTHON)
    lock = plugin.home / ".local/share/moorage/0.1.0.dev0.lock"
    lock.mkdir(parents=True)
    done = plugin.run()
    assert done.returncode == 3
    assert f"if that is not so, remove {lock}" in done.stderr
