"""dev.py and related files: commands, Makefile, CI script, lock files."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def lock_name(path: Path) -> str:
    return path.name


# --- commands ----------------------------------------------------------------------------------


def test_help_lists_every_command_with_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert dev.main(["help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for name, command in dev.COMMANDS.items():
        assert command.__doc__, name
        assert any(
            line.split(maxsplit=1) == [name, command.__doc__.splitlines()[0]] for line in lines
        )


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["help"]], ids=str)
def test_help_is_what_a_beginner_gets(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev.main(arguments) == 0
    assert capsys.readouterr().out.startswith("usage: python3 dev.py COMMAND")


def test_unknown_command_is_a_usage_error_that_lists_the_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dev.main(["tset"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("dev.py: no command 'tset'")
    assert "  test " in error


def test_commands_of_the_habits_exist() -> None:
    wanted = {"setup", "run", "test", "check", "fmt", "bench", "soak", "docs", "conformance"}
    assert wanted <= dev.COMMANDS.keys()


def test_dev_needs_nothing_but_the_standard_library() -> None:
    tree = ast.parse((ROOT / "dev.py").read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else _names(node))
    }
    assert imported <= sys.stdlib_module_names


def _names(node: ast.Import) -> list[str]:
    return [alias.name for alias in node.names]


def test_it_is_said_when_etcd_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "TOOLS", tmp_path)
    monkeypatch.setattr(dev, "ETCD", tmp_path / "etcd" / "usr" / "bin" / "etcd")
    monkeypatch.setenv("PATH", str(tmp_path))
    dev.ensure_etcd()
    assert "tests of the store on etcd will be skipped" in capsys.readouterr().out


def test_etcd_is_unpacked_from_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With an apt-get and a dpkg-deb that do as the real ones, without a network."""
    etcd = tmp_path / "tools" / "etcd" / "usr" / "bin" / "etcd"
    monkeypatch.setattr(dev, "TOOLS", tmp_path / "tools")
    monkeypatch.setattr(dev, "ETCD", etcd)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "etcd" else name)
    for name, script in (
        ("apt-get", "touch etcd-server_1_all.deb"),
        ("dpkg-deb", "mkdir -p usr/bin && cp $2 usr/bin/etcd"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    dev.ensure_etcd()
    assert etcd.exists()
    assert [path.name for path in (tmp_path / "tools" / "etcd").iterdir()] == ["usr"]


def test_it_is_said_when_podman_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "PODMAN", tmp_path / "podman")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    dev.ensure_podman()
    assert "tests of containers by podman will be skipped" in capsys.readouterr().out


def test_it_is_said_when_chromium_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "CHROMIUM", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    dev.ensure_chromium()
    assert "tests of the page in a browser will be skipped" in capsys.readouterr().out


def test_it_is_said_when_kubectl_cannot_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dev, "TOOLS", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    dev.ensure_kubectl()
    assert capsys.readouterr().out.splitlines() == [
        f"no kubectl of Debian {release}: there is no apt-get; tests with it will be skipped"
        for release in ("trixie", "sid")
    ]


@pytest.mark.parametrize(("own", "releases"), [(None, ("trixie", "sid")), ("kubectl", ("sid",))])
def test_kubectl_is_unpacked_from_newer_releases(
    own: str | None, releases: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With an apt-get and a dpkg-deb that do as the real ones, without a network."""
    monkeypatch.setattr(dev, "TOOLS", tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(shutil, "which", lambda name: own if name == "kubectl" else name)
    known = (
        "indextargets) echo mirror:/security Debian Debian-Security; echo mirror:/ Debian Debian"
    )
    for name, script in (
        ("apt-get", f"case $1 in {known};; download) touch kubectl_1_all.deb;; esac"),
        ("dpkg-deb", "mkdir -p usr/bin && cp $2 usr/bin/kubectl"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    dev.ensure_kubectl()
    folders = sorted((tmp_path / "tools").iterdir())
    assert {folder.name for folder in folders} == {f"kubectl-{release}" for release in releases}
    for release in releases:
        assert dev.kubectl_of(release).exists()
        folder = tmp_path / "tools" / f"kubectl-{release}"
        assert (folder / "sources.list").read_text() == f"deb mirror:/ {release} main\n"
        assert sorted(path.name for path in folder.iterdir()) == ["sources.list", "usr"]


def test_sources_and_tests_that_are_named_exist() -> None:
    named = [*dev.SOURCES, *dev.MINIMUM_TESTS]
    assert [name for name in named if not (ROOT / name).exists()] == []


# --- what forwards to it -----------------------------------------------------------------------


def test_makefile_forwards_every_command_and_does_nothing_else() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^COMMANDS := (.*)$", makefile, re.MULTILINE)
    assert listed.split() == list(dev.COMMANDS)
    recipes = [line for line in makefile.splitlines() if line.startswith("\t")]
    assert recipes == ["\t@python3 dev.py help", "\t@python3 dev.py $@ $(ARGS)"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("command", dev.COMMANDS)
def test_make_calls_dev_py(command: str) -> None:
    # The tests themselves may have been started by make, which tells its children so.
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    done = subprocess.run(
        ["make", "--dry-run", command, "ARGS=-x y"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.strip() == f"python3 dev.py {command} -x y"


def test_ci_runs_the_readme_test_command_and_then_the_others() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    commands = [line for line in lines if line.startswith("python3 ")]
    arguments = ("test", "test --sweeps", "test --without-corpus", "minimum", "check")
    assert commands == [f"python3 dev.py {each}" for each in arguments]
    assert commands[0] in (ROOT / "README.md").read_text(encoding="utf-8")


# --- what tests need ---------------------------------------------------------------------------


def test_programs_that_tests_start_find_bytecode_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in dev._environment()


def test_all_tests_run_on_all_cores_and_named_ones_in_one_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[list[Path | str]] = []

    def note(command: list[Path | str]) -> int:
        commands.append(command)
        return 0

    monkeypatch.setattr(dev, "_status", note)
    needs = ("environment", "etcd", "kubectl", "podman", "tools")
    for name in (f"ensure_{need}" for need in needs):
        monkeypatch.setattr(dev, name, lambda: None)
    for arguments in ([], ["-x", "tests/kit"], ["--sweeps"]):
        assert dev.main(["test", *arguments]) == 0
    assert [command[3:] for command in commands] == [
        [*dev.ON_ALL_CORES, "-m", "not sweep"],
        ["-x", "tests/kit"],
        [*dev.ON_ALL_CORES, "-m", "sweep"],
    ]
    assert "left out: sweeps" in capsys.readouterr().out


# --- lock files --------------------------------------------------------------------------------


def pinned(lock: Path) -> dict[str, str]:
    """Return the packages of a lock file, each with the text that pins it."""
    text = lock.read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w])", text, flags=re.MULTILINE)[1:]
    return {entry.partition("==")[0].lower(): entry for entry in entries}


@pytest.mark.parametrize("lock", LOCKS, ids=lock_name)
def test_every_package_is_pinned_by_version_and_hash(lock: Path) -> None:
    assert pinned(lock)
    for name, entry in pinned(lock).items():
        assert re.match(rf"{re.escape(name)}==\S+", entry, re.IGNORECASE), name
        assert "--hash=sha256:" in entry, name


@pytest.mark.parametrize("lock", LOCKS, ids=lock_name)
def test_lock_files_name_no_host(lock: Path) -> None:
    assert "://" not in lock.read_text(encoding="utf-8")


def test_lock_of_the_tools_holds_all_that_users_install() -> None:
    users, developers = pinned(ROOT / "requirements/run.txt"), pinned(ROOT / "requirements/dev.txt")
    assert users.keys() <= developers.keys()


def test_uv_has_one_version() -> None:
    versions = {
        re.findall(r"^uv==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)[0]
        for lock in LOCKS
        if "uv" in pinned(lock)
    }
    assert len(versions) == 1
