"""`moor snapshot` writes archives that all commands read."""

from __future__ import annotations

import os
from pathlib import Path

from click.testing import CliRunner, Result

from moorage.cli.snapshot import command
from tests.cli.test_cluster_options import count, counting

EXAMPLES = Path(__file__).parents[2] / "examples" / "gpu-node"


def snapshot(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=text)


def test_files_become_an_archive_that_on_reads(tmp_path: Path) -> None:
    target = tmp_path / "cluster.tar.gz"
    result = snapshot("-f", str(EXAMPLES), "-o", str(target))
    assert result.exit_code == 0
    assert result.output == (
        "KIND                   OBJECTS\n"
        "ResourceClaim          1\n"
        "DeviceClass            2\n"
        "Node                   1\n"
        "Pod                    2\n"
        "ResourceSlice          2\n"
        "ResourceClaimTemplate  1\n"
        f"{target}: format version 1, 9 objects, redacted\n"
    )
    assert count("--on", str(target)).output.startswith("1 nodes 2 pods; 0 nodes")
    assert count("-f", str(target)).output.startswith("0 nodes 0 pods; 1 nodes 2 pods")
    assert snapshot("--show", str(target)).output == result.output


def test_an_archive_of_an_archive_is_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"
    snapshot("-f", str(EXAMPLES), "-o", str(first))
    snapshot("--on", str(first), "-o", str(second))
    assert first.read_bytes() == second.read_bytes()


def test_no_part_is_left_behind(tmp_path: Path) -> None:
    snapshot("-f", str(EXAMPLES), "-o", str(tmp_path / "a.tgz"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.tgz"]


def test_an_archive_is_for_its_owner_and_is_written_through_no_link(tmp_path: Path) -> None:
    target, other = tmp_path / "a.tgz", tmp_path / "other"
    other.write_text("kept")
    for link in (target, tmp_path / f".a.tgz.{os.getpid()}.part"):
        link.symlink_to(other)
    assert snapshot("-f", str(EXAMPLES), "-o", str(target)).exit_code == 0
    assert other.read_text() == "kept"
    assert target.lstat().st_mode & 0o777 == 0o600
    assert target.is_file()
    assert not target.is_symlink()


def test_anonymised_archives_say_so(tmp_path: Path) -> None:
    target = str(tmp_path / "a.tar.gz")
    result = snapshot("-f", str(EXAMPLES), "-o", target, "--anonymise")
    assert result.output.endswith("9 objects, redacted, anonymised\n")
    kept = snapshot("-f", str(EXAMPLES), "-o", target, "--no-redact")
    assert kept.output.endswith("9 objects, not redacted\n")
    both = snapshot("-f", str(EXAMPLES), "-o", target, "--anonymise", "--no-redact")
    assert both.exit_code == 2


def test_other_gates_are_told(tmp_path: Path) -> None:
    target = str(tmp_path / "a.tar.gz")
    snapshot("-f", str(EXAMPLES), "-o", target)
    result = count("--on", target, "--gates-preset", "kubernetes-1.37")
    assert f"warning: {target} was made with other feature gates" in result.stderr


def test_what_is_no_archive_is_unreadable(tmp_path: Path) -> None:
    bad = tmp_path / "bad.tar.gz"
    bad.write_bytes(b"nothing")
    shown, counted = snapshot("--show", str(bad)), count("--on", str(bad))
    assert (shown.exit_code, counted.exit_code) == (3, 3)
    assert f"error: {bad}: not a whole gzip file" in shown.stderr
    assert f"error: {bad}:1:1: not a Kubernetes object" in counted.stderr
    missing = snapshot("--show", str(tmp_path / "missing.tar.gz"))
    assert missing.exit_code == 3
    assert "No such file" in missing.stderr


def test_a_target_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    target = tmp_path / "missing" / "a.tar.gz"
    result = snapshot("-f", str(EXAMPLES), "-o", str(target))
    assert result.exit_code == 3
    assert f"error: {target}: " in result.stderr


def test_refused_objects_are_left_out_and_told(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: Web}\nspec: {containers: []}\n"
    target = str(tmp_path / "a.tar.gz")
    result = snapshot("-f", "-", "-f", str(EXAMPLES), "-o", target, text=text)
    assert result.exit_code == 1
    assert "9 objects" in result.stdout


def test_an_archive_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    target = tmp_path / "cluster.tar.gz"
    target.write_bytes(b"precious")
    missing = snapshot("-f", str(tmp_path / "nothing.yaml"), "-o", str(target))
    assert missing.exit_code == 3
    assert "not written: there are no objects" in missing.stderr
    assert snapshot("-f", "-", "-o", str(target), text="").exit_code == 1
    assert target.read_bytes() == b"precious"


def test_a_snapshot_that_is_damaged_is_refused_whole(tmp_path: Path) -> None:
    target = tmp_path / "cluster.tar.gz"
    snapshot("-f", str(EXAMPLES), "-o", str(target))
    target.write_bytes(target.read_bytes()[:-20])
    result = count("--on", str(target))
    assert (result.exit_code, result.stdout[:7]) == (3, "0 nodes")
    assert f"error: {target}: " in result.stderr


def test_a_snapshot_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    target, renamed = tmp_path / "cluster.tar.gz", tmp_path / "cluster.bin"
    snapshot("-f", str(EXAMPLES), "-o", str(target))
    target.rename(renamed)
    assert count("--on", str(renamed)).output.startswith("1 nodes 2 pods")
    piped = CliRunner().invoke(counting, ["--on", "-"], input=renamed.read_bytes())
    assert piped.output.startswith("1 nodes 2 pods")


def test_archives_have_names_that_commands_know_them_by(tmp_path: Path) -> None:
    result = snapshot("-f", str(EXAMPLES), "-o", str(tmp_path / "cluster.yaml"))
    assert result.exit_code == 2
    assert "does not end in .tar.gz or .tgz" in result.stderr
    assert not list(tmp_path.iterdir())
