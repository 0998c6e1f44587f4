"""Where commands get their cluster from."""

from __future__ import annotations

import gc
import gzip
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from benchmarks._dump import DumpSize, cluster_objects, write_json
from moorage.cli.cluster_options import ClusterInput, cluster_options
from moorage.cli.main import moor
from tests.cli.test_validate import packed

EXAMPLES = Path(__file__).parents[2] / "examples" / "gpu-node"

NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {capacity: {cpu: 8}}\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: main, image: web}]}
"""


@click.command()
@cluster_options
def counting(given: ClusterInput) -> None:
    """Count."""
    counts = (given.cluster, given.manifests, given.everything)
    texts = (f"{len(each.nodes)} nodes {len(each.pods)} pods" for each in counts)
    click.echo("; ".join(texts))
    raise SystemExit(given.exit_status(0))


def count(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(counting, arguments, input=text)


def test_cluster_and_manifests_are_kept_apart_and_put_together(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE)
    result = count("--on", str(tmp_path), "-f", "-", text=POD)
    assert result.output == "1 nodes 0 pods; 0 nodes 1 pods; 1 nodes 1 pods\n"
    assert result.exit_code == 0


def test_a_whole_cluster_may_be_in_the_manifests() -> None:
    result = count("-f", str(EXAMPLES))
    assert result.stdout == "0 nodes 0 pods; 1 nodes 2 pods; 1 nodes 2 pods\n"


def test_profiles_add_machines() -> None:
    result = count("--profile", "dgx-h100x3", "--profile", "r7725")
    assert result.stdout.startswith("4 nodes 0 pods")


@pytest.mark.parametrize("text", ["dgx-h100x3", "dgx-h100=3"])
def test_machines_are_counted_in_two_ways(text: str) -> None:
    assert count("--profile", text).stdout.startswith("3 nodes 0 pods")


def test_a_profile_given_twice_adds_its_machines_twice() -> None:
    result = count("--profile", "dgx-h100=2", "--profile", "dgx-h100")
    assert result.stdout.startswith("3 nodes 0 pods")
    assert not result.stderr


# Every command that takes profiles, with arguments that lead as far as to them.
TAKING_PROFILES = [
    ("plan", "--profile"),
    ("explain", "--profile"),
    ("fit", "--profile"),
    ("devices", "--profile"),
    ("lint", "--profile"),
    ("cel", "true", "--profile"),
    ("claims", "--profile"),
    ("snapshot", "-o", "out.tar.gz", "--profile"),
    ("whatif", "--profile", "tpu", "--add-profile"),
    ("profiles",),
    ("up", "--data-dir", "nowhere", "--profile"),
    ("controllers", "--nodes-kubeconfig", "nowhere", "--profile"),
]


@pytest.mark.parametrize("arguments", TAKING_PROFILES, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dgx-h10=4", "there is no profile 'dgx-h10'; did you mean dgx-h100?"),
        ("dgx-h100=0", "dgx-h100=0: the count must be a number from 1 to 10,000"),
        ("dgx-h100x10001", "dgx-h100x10001: the count must be a number from 1 to 10,000"),
    ],
)
def test_every_command_reads_profiles_the_same_way(
    arguments: tuple[str, ...],
    text: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(moor, [*arguments, text])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_gzipped_files_are_read_by_name_and_in_directories(tmp_path: Path) -> None:
    (tmp_path / "node.yaml.gz").write_bytes(gzip.compress(NODE.encode()))
    assert count("--on", str(tmp_path / "node.yaml.gz")).stdout.startswith("1 nodes")
    assert count("--on", str(tmp_path)).stdout.startswith("1 nodes")


def test_a_broken_gzip_file_is_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "node.yaml.gz"
    path.write_bytes(gzip.compress(NODE.encode())[:-12])
    result = count("--on", str(path))
    assert result.exit_code == 3
    assert f"error: {path}: not a whole gzip file" in result.stderr


def test_a_gzip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bytes(385 * 2**20), 1))
    result = count("--on", str(path))
    assert result.exit_code == 3
    assert "larger than 384 MiB" in result.stderr


def test_a_missing_file_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE)
    missing = str(tmp_path / "missing.yaml")
    result = count("--on", missing, "--on", str(tmp_path))
    assert result.exit_code == 3
    assert result.stdout.startswith("1 nodes")
    assert result.stderr == f"error: {missing}: no such file or directory\n"


def test_refused_objects_are_status_1_and_told_with_their_place() -> None:
    result = count("-f", "-", text=POD.replace("web}", "Web}", 1))
    assert result.exit_code == 1
    assert result.stderr.startswith("error: <stdin>:3:")


def test_warnings_go_to_standard_error() -> None:
    result = count("-f", "-", text=NODE.replace("status: {capacity: {cpu: 8}}\n", ""))
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: 1 node (n) without capacity")


def test_names_cannot_command_the_terminal() -> None:
    text = NODE.replace("{name: n}", '{name: "\\e[2Jn", uid: u}').replace("capacity", "x")
    result = count("-f", "-", text=text)
    assert "1 node (\\x1b[2Jn) without capacity" in result.stderr


def test_of_very_many_errors_the_first_are_printed() -> None:
    bad = POD.replace("web}", "Web}", 1)
    result = count("-f", "-", text="---\n".join([bad] * 150))
    assert len(result.stderr.splitlines()) == 101
    assert result.stderr.endswith("… and 50 errors more\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to look at: give -f, --on, --live or --profile"),
        (("-f", "-", "--on", "-"), "standard input can be read once only"),
        (("--profile", "dgx-h10"), "there is no profile 'dgx-h10'; did you mean dgx-h100"),
        (("-f", "-", "--now", "today"), "--now: "),
    ],
)
def test_wrong_command_lines(arguments: tuple[str, ...], message: str) -> None:
    result = count(*arguments, text="")
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize("program", ["moor", "kubectl moor"])
def test_kubectl_moor_asks_the_cluster_of_kubectl_unless_told_otherwise(
    program: str, tmp_path: Path
) -> None:
    nowhere = {"KUBECONFIG": str(tmp_path / "missing")}
    result = CliRunner(env=nowhere).invoke(moor, ["explain", "pod/x"], prog_name=program)
    asked = f"error: cluster: no kubeconfig: there is no {tmp_path / 'missing'}"
    assert (asked in result.stderr) == (program == "kubectl moor")
    assert ("nothing to look at" in result.stderr) == (program == "moor")
    profile = ["devices", "--profile", "dgx-h100", "-o", "name"]
    result = CliRunner(env=nowhere).invoke(moor, profile, prog_name=program)
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 24)


def test_a_file_without_objects_is_told() -> None:
    result = count("--on", "-", text="apiVersion: v1\nkind: List\nitems: []\n")
    assert "warning: <stdin> has no objects: nothing of it is in the answer" in result.stderr


# --- archives and files of tools ----------------------------------------------------------


@pytest.mark.parametrize("form", ["tar", "tgz", "zip"])
def test_a_packed_dump_is_a_cluster(tmp_path: Path, form: str) -> None:
    path = tmp_path / "dump"
    path.write_bytes(packed(form, {"nodes/n.yaml": NODE, "pods/p.yaml.txt": POD, "empty.yaml": ""}))
    result = count("--on", str(path), "-f", "-", text=POD)
    assert result.stdout == "1 nodes 0 pods; 0 nodes 1 pods; 1 nodes 1 pods\n"
    assert f"warning: {path}!empty.yaml has no objects: " in result.stderr
    assert result.exit_code == 0


def test_files_of_tools_are_skipped_with_a_warning_each(tmp_path: Path) -> None:
    (tmp_path / "node.yaml").write_text(NODE)
    (tmp_path / "kustomization.yaml").write_text("resources: [node.yaml]\n")
    (tmp_path / "values.yaml").write_text("a: 1\n")
    result = count("--on", str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout.startswith("1 nodes")
    kustomization, values = result.stderr.splitlines()
    assert kustomization.startswith("warning: 1 Kustomization skipped (")
    assert values.startswith("warning: 1 Helm chart file skipped (")


def test_names_in_archives_cannot_command_the_terminal() -> None:
    data = packed("zip", {"\x1b[2J.yaml": NODE.replace("status: {capacity: {cpu: 8}}\n", "a: [")})
    result = CliRunner().invoke(counting, ["-f", "-"], input=data)
    assert result.exit_code == 3
    assert "\x1b" not in result.stderr


def test_what_is_read_is_never_looked_at_by_the_garbage_collector(tmp_path: Path) -> None:
    with (tmp_path / "dump.json").open("w") as file:
        write_json(cluster_objects(DumpSize(nodes=200, pods=200)), file)
    collections: list[int] = []
    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(20_000, 20, 100)
    gc.callbacks.append(lambda phase, info: collections.append(info["generation"]))
    try:
        result = count("--on", str(tmp_path))
    finally:
        gc.callbacks.pop()
        gc.set_threshold(*before)
    assert result.stdout.startswith("200 nodes 200 pods")
    assert collections == []
