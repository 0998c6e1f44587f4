from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.examples import EXAMPLES, source
from moorage.cli.main import moor


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def examples(*arguments: str) -> Result:
    return CliRunner().invoke(moor, ["examples", *arguments])


def test_the_list_has_every_example_and_what_it_shows() -> None:
    done = examples()
    assert done.exit_code == 0
    listed = dict(line.split(maxsplit=1) for line in done.output.splitlines()[1:])
    assert listed == EXAMPLES
    assert set(EXAMPLES) == {path.name for path in source().iterdir() if path.is_dir()}
    assert not Path("examples").exists()


def test_examples_are_copied_to_where_the_commands_of_the_documentation_find_them() -> None:
    done = examples("training", "gpu-node")
    assert done.exit_code == 0
    assert done.output == "examples/training: 1 file\nexamples/gpu-node: 2 files\n"
    for name in ("training", "gpu-node"):
        for path in Path("examples", name).iterdir():
            assert path.read_bytes() == (source() / name / path.name).read_bytes()
    plan = CliRunner().invoke(moor, ["validate", "-f", "examples/training"])
    assert plan.exit_code == 0


def test_folders_below_an_example_are_copied_to_another_directory_as_well() -> None:
    assert examples("stories", "--dir", "there").exit_code == 0
    copied = {path.relative_to("there/stories") for path in Path("there").rglob("*.*")}
    assert copied == {
        path.relative_to(source() / "stories") for path in source().rglob("stories/**/*.*")
    }


def test_a_second_copy_changes_nothing() -> None:
    assert examples("training").output == examples("training").output


def test_a_changed_file_is_kept_and_nothing_is_written() -> None:
    examples("gpu-node")
    changed, missing = (
        Path("examples/gpu-node/workload.yaml"),
        Path("examples/gpu-node/cluster.yaml"),
    )
    changed.write_text("mine")
    missing.unlink()
    done = examples("gpu-node")
    assert done.exit_code == 2
    assert "examples/gpu-node/workload.yaml is there with other content" in done.stderr
    assert changed.read_text() == "mine"
    assert not missing.exists()


@pytest.mark.parametrize("name", ["../training", "/etc", "nothing"])
def test_a_name_that_is_no_example_is_wrong_usage(name: str) -> None:
    done = examples(name)
    assert done.exit_code == 2
    assert "is not one of" in done.stderr
    assert list(Path().iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error_of_one_line() -> None:
    Path("examples").mkdir()
    Path("examples/training").write_text("a file")
    done = examples("training")
    assert done.exit_code == 3
    assert done.stderr.startswith("error: examples/training")
    assert len(done.stderr.splitlines()) == 1
