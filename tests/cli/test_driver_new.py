from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from moorage.cli.main import moor


def test_a_new_driver_is_four_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(moor, ["driver", "new", "blinker.example.com"])
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        f"blinker/{name}" for name in ("driver.py", "test_driver.py", "example.yaml", "README.md")
    ]
    checked = CliRunner().invoke(moor, ["validate", "-f", "blinker/example.yaml"])
    assert checked.exit_code == 0


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    result = CliRunner().invoke(moor, ["driver", "new", "a.example.com", "--dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "README.md is there already" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["README.md"]


def test_a_name_that_no_driver_can_have_is_wrong_usage() -> None:
    result = CliRunner().invoke(moor, ["driver", "new", "Not A Name"])
    assert result.exit_code == 2
    assert "'Not A Name' cannot be the name of a driver" in result.stderr


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "x")
    result = CliRunner().invoke(moor, ["driver", "new", "a.example.com", "--dir", folder])
    assert result.exit_code == 3
    assert "Not a directory" in result.stderr
