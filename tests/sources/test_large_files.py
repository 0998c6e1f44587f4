"""A large file is read in parts, with the answers and errors of one that is read whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks._dump import DumpSize, cluster_objects, write_json
from moorage.cli.command_classes import LazyGroup
from moorage.cli.main import moor
from moorage.sources import large_files
from moorage.sources.errors import UnreadableError
from moorage.sources.large_files import FileText, large_json

PODS = DumpSize(nodes=2, pods=3)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("dump") / "dump.json"
    with path.open("w") as file:
        write_json(cluster_objects(PODS), file)
    return path.read_bytes()


DAMAGES = {
    "whole": (b"", b""),
    "wrong type": (b'"nodeName": "gpu-node-00001"', b'"nodeName": 7'),
    "unknown field": (b'"phase": "Running"', b'"phase": "Running", "odd": 1'),
    "key twice": (b'"phase": "Running"', b'"phase": "Running", "phase": "Failed"'),
    "no kind": (b'"kind": "Pod",', b""),
    "unknown kind": (b'"kind": "ResourceSlice"', b'"kind": "ResourceSlices"'),
    "no comma": (b'"kind": "Pod",', b'"kind": "Pod"'),
    "not UTF-8": (b"train-000-worker-1", b"train-\xff"),
    "bad quantity": (b'"memory": "64Gi"', b'"memory": "64 Gi"'),
    "never stored": (b'"uid"', b'"uuid"'),
    "item twice": (b"        },\n        {", b"        },,\n        {"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_get_the_same_errors(
    name: str, dump: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(dump.replace(*DAMAGES[name]))

    def answer() -> tuple[int, str]:
        result = CliRunner().invoke(moor, ["devices", "--on", str(path), "-o", "wide"])
        return result.exit_code, result.output

    whole = answer()
    monkeypatch.setattr(large_files, "LARGE_BYTES", 1)

    assert answer() == whole


def test_cut_off_files_get_the_same_errors(
    dump: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(dump[: len(dump) // 2])
    line = ["devices", "--on", str(path)]
    whole = CliRunner().invoke(moor, line).output
    monkeypatch.setattr(large_files, "LARGE_BYTES", 1)

    assert CliRunner().invoke(moor, line).output == whole
    assert f"{path}:" in whole


def test_a_file_that_changes_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", 1)
    path = tmp_path / "dump.json"
    path.write_bytes(b'{"a": 1}')
    text = large_json("dump.json", path, 100)
    assert isinstance(text, FileText)
    path.write_bytes(b'{"a": 10}')

    with pytest.raises(UnreadableError, match=r"dump\.json: changed while it was being read"):
        text.part(0, 5)


def test_a_file_that_changes_after_it_was_read_gets_an_error_of_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def quote(*_: object) -> None:
        raise UnreadableError("dump.json: changed while it was being read")

    monkeypatch.setattr(LazyGroup, "invoke", quote)
    result = CliRunner().invoke(moor, ["devices"])

    assert (result.exit_code, result.stderr) == (
        3,
        "error: dump.json: changed while it was being read\n",
    )


def test_only_regular_files_of_json_are_read_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_files, "LARGE_BYTES", 5)
    for name, content in {
        "a.yaml": b"kind: List",
        "b.json": b"{}",
        "c.json": b'{"a": [1, 2]}',
    }.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "d.json")  # Opening it would wait.

    for name in ("a.yaml", "b.json", "c.json", "d.json", "e.json"):
        assert large_json(name, tmp_path / name, 10) is None
