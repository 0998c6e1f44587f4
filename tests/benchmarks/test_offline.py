"""The dump of the offline benchmark, tiny: it is a sound cluster, and both forms are the same."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks._dump import DumpSize, cluster_objects, write_json, write_yaml
from benchmarks.offline import COMMANDS, JOB, UNFIT, Command
from moorage.api.documents import CORE, json_list, yaml_list
from moorage.api.documents.yaml_list import YamlListText
from moorage.cli.main import moor

SIZE = DumpSize(nodes=6, pods=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("dumps")
    with (found / "dump.json").open("w") as file:
        write_json(cluster_objects(SIZE), file)
    with (found / "dump.yaml").open("w") as file:
        write_yaml(cluster_objects(SIZE), file)
    (found / "job").write_text(JOB)
    (found / "unfit").write_text(UNFIT)
    return found


def test_both_forms_are_read_item_by_item_and_are_the_same(folder: Path) -> None:
    of_json = json_list((folder / "dump.json").read_bytes(), source="x")
    of_yaml = yaml_list((folder / "dump.yaml").read_bytes(), source="x", schema=CORE)

    assert of_json is not None
    assert of_yaml is not None
    trees = [document.tree for document in of_json.documents()]
    assert trees == list(cluster_objects(SIZE))
    assert trees == [document.tree for document in of_yaml.documents()]
    assert all(part.is_block for part in of_yaml.text._items)  # type: ignore[attr-defined]


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_commands_have_no_complaints(
    command: Command, form: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(moor, [*command.arguments, "--on", f"dump.{form}"])

    assert result.exit_code in (0, 1), result.output
    assert "error:" not in result.stderr, result.stderr
    assert "warning:" not in result.stderr, result.stderr


def test_yaml_that_was_read_is_not_parsed_again_to_be_linted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    monkeypatch.setattr(YamlListText, "tree", lambda _, index: parsed.append(index))
    result = CliRunner().invoke(moor, ["lint", "--on", str(folder / "dump.yaml")])

    assert result.exit_code == 0, result.output
    assert parsed == []


def test_the_devices_of_pods_are_taken(folder: Path) -> None:
    result = CliRunner().invoke(
        moor, ["devices", "--on", str(folder / "dump.json"), "-o", "json", "--state", "taken"]
    )

    taken = sum((1, 1, 1, 2, 4)[number % 5] for number in range(SIZE.pods))
    assert len(json.loads(result.stdout)["devices"]) == taken
