"""Input without any object: an error for commands about manifests, unless it is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor

ABOUT_MANIFESTS = ("validate", "lint", "plan", "explain", "fit", "whatif", "simulate")
MORE = {"whatif": ("--cordon", "n"), "simulate": ("--arrivals", "pod/p=1/h:1h")}
EMPTY = {
    "empty.yaml": "",
    "comments.yaml": "# nothing yet\n---\n---\n",
    "list.json": '{"apiVersion": "v1", "kind": "List", "items": []}',
    "kustomization.yaml": "resources: [a.yaml]\n",
}
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"


def run(name: str, *arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(moor, [name, *MORE.get(name, ()), *arguments], input=text)


@pytest.mark.parametrize("command", ABOUT_MANIFESTS)
@pytest.mark.parametrize("file", EMPTY)
def test_a_file_without_objects_is_an_error(command: str, file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(EMPTY[file])
    path = str(tmp_path / file)
    result = run(command, "-f", path)
    assert result.exit_code == 3, result.output
    error = f"error: no objects passed to {command}: there are none in {path}; --allow-empty accep"
    assert error in result.stderr
    assert "has no objects" not in result.stderr  # which the error says


@pytest.mark.parametrize("command", ABOUT_MANIFESTS)
def test_empty_standard_input_is_an_error(command: str) -> None:
    result = run(command, "-f", "-")
    assert result.exit_code == 3
    assert f"no objects passed to {command}: there are none in <stdin>" in result.stderr


@pytest.mark.parametrize("command", ABOUT_MANIFESTS)
def test_a_folder_without_manifests_is_an_error_unless_it_is_allowed(
    command: str, tmp_path: Path
) -> None:
    result = run(command, "-f", str(tmp_path))
    assert result.exit_code == 3
    assert f"error: {tmp_path}: no .json, .yaml, .yml files in it; -R looks" in result.stderr
    allowed = run(command, "-f", str(tmp_path), "--allow-empty", "--profile", "dgx-h100")
    assert "no .json" not in allowed.stderr


@pytest.mark.parametrize("command", ["validate", "lint", "plan", "explain"])
def test_allow_empty_accepts_input_without_objects(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "folder").mkdir()
    files = ("-f", str(tmp_path / "empty.yaml"), "-f", str(tmp_path / "folder"))
    result = run(command, *files, "--allow-empty")
    assert result.exit_code == 0, result.output
    assert "empty.yaml" in result.stderr
    assert "error" not in result.stderr


@pytest.mark.parametrize("command", ABOUT_MANIFESTS)
def test_one_object_among_empty_files_is_enough(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "node.yaml").write_text(NODE)
    result = run(command, "-f", str(tmp_path))
    assert "no objects passed" not in result.stderr
    assert f"{tmp_path / 'empty.yaml'} has no objects" in result.stderr


@pytest.mark.parametrize("command", ["lint", "plan", "explain", "fit"])
def test_a_dump_that_is_all_of_the_input_needs_objects(command: str) -> None:
    result = run(command, "--on", "-", text=EMPTY["list.json"])
    assert result.exit_code == 3
    assert f"no objects passed to {command}" in result.stderr


@pytest.mark.parametrize("command", ["devices", "claims"])
def test_a_list_of_nothing_is_an_answer(command: str) -> None:
    result = run(command, "--on", "-", text=EMPTY["list.json"])
    assert result.exit_code == 0
    assert "warning: <stdin> has no objects" in result.stderr


@pytest.mark.parametrize("command", ["validate", "lint", "plan"])
@pytest.mark.parametrize("form", ["github", "sarif", "junit"])
def test_reports_contain_the_error(command: str, form: str) -> None:
    result = run(command, "-f", "-", "-o", form)
    assert result.exit_code == 3
    assert f"no objects passed to {command}" in result.stdout


def test_the_hooks_of_pre_commit_accept_files_without_objects() -> None:
    hooks = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = [line for line in hooks.splitlines() if "entry:" in line]
    assert len(entries) == 2
    assert all("--allow-empty" in line for line in entries)
