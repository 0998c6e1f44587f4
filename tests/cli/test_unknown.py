"""What could not be read of a cluster is unknown, and named: nothing is said as if it were not."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import moorage
from moorage.api.core import Node
from moorage.cli import main
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.errors import UnavailableError
from moorage.sources.live_source import ClusterReader
from tests.apiserver.test_kubectl_server import running
from tests.cli.unknown_world import MISSING, NODE, as_user, furnish

# What nobody may say of a kind that could not be read, by kind and command.
CLAIMS_OF_ABSENCE = {
    "nodes": ("0 nodes", "0 of 0 nodes", "no nodes", "has no node", "there is no node"),
    "resourceslices": (
        *("in no slice", "no slice has", "No devices", "0 devices", "missing-slices"),
        *("0 of 0 devices", "free devices: 0"),
    ),
    "deviceclasses": (
        "does not exist",
        "no class",
        "there is no DeviceClass",
        "install the driver",
    ),
    "resourceclaims": ("No claims", "No devices", "free devices: 2", "there is no Resource"),
    "resourceclaimtemplates": ("does not exist", "there is no ResourceClaimTemplate"),
    "pods": ("Nothing to", "there are no pods", "there is no Pod"),
}
# Exit statuses: 3 where what could not be read decides, else as for everybody.
DECIDING = dict.fromkeys(("nodes", "resourceslices", "deviceclasses", "resourceclaimtemplates"), 3)
STATUSES: dict[str, dict[str, int]] = {
    "devices": {},
    "devices --state free": {"resourceslices": 3, "resourceclaims": 3},
    "devices --class gpu.nvidia.com": {"deviceclasses": 3, "resourceslices": 3},
    "claims -A": {"resourceclaims": 3},
    "explain": {**DECIDING, "pods": 3},
    "explain pod/waiting": {**DECIDING, "pods": 3},
    "explain claim/gone": {"": 2, "resourceclaims": 3},
    "plan": {**DECIDING, "pods": 3},
    "fit template/one-gpu": DECIDING,
    f"whatif --drain {NODE}": {"": 1, "nodes": 3, "pods": 3},
    "whatif --delete-pod team-a/nobody": {"": 2, "pods": 3},
    "whatif --delete-pod team-a/waiting": {"pods": 3},
    "lint": {},
    "metrics --once": {},
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a server with a machine, and users who lack one right each."""
    with running(tmp_path_factory.mktemp("server")) as text:
        path = tmp_path_factory.mktemp("client") / "kubeconfig"
        path.write_text(text)
        asyncio.run(furnish(str(path)))
        yield str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.moor, arguments)


def _said(result: Result) -> str:
    """Return what a command says itself, without the warning about what may not be read."""
    lines = result.stderr.splitlines(keepends=True)
    own = (line for line in lines if not line.startswith("warning: not all of the cluster"))
    return result.stdout + "".join(own)


@pytest.mark.parametrize("resource", MISSING)
@pytest.mark.parametrize("command", STATUSES)
def test_nothing_unread_is_said_to_be_absent(
    kubeconfig: str, tmp_path: Path, command: str, resource: str
) -> None:
    user = as_user(kubeconfig, tmp_path, f"no-{resource}")
    result = run(*command.split(), "--kubeconfig", user, "-n", "team-a")
    statuses = STATUSES[command]
    assert result.exit_code == statuses.get(resource, statuses.get("", 0)), result.output
    said = _said(result)
    assert [text for text in CLAIMS_OF_ABSENCE.get(resource, ()) if text in said] == []
    if result.exit_code == 3:
        assert f"{resource} may not be read with these rights" in said
        if command not in ("plan",):  # which sends its readers to `moor explain`
            assert f"the right to list {resource}" in said


@pytest.mark.parametrize("command", STATUSES)
def test_who_may_read_everything_is_told_nothing_about_rights(
    kubeconfig: str, tmp_path: Path, command: str
) -> None:
    user = as_user(kubeconfig, tmp_path, "no-none")
    result = run(*command.split(), "--kubeconfig", user, "-n", "team-a")
    assert result.exit_code == STATUSES[command].get("", 0), result.output
    assert "may not" not in result.output
    assert "unknown" not in result.output.replace("<unknown>", "")


@pytest.mark.parametrize("command", STATUSES)
def test_whoever_may_read_one_namespace_hears_nothing_about_the_cluster(
    kubeconfig: str, tmp_path: Path, command: str
) -> None:
    user = as_user(kubeconfig, tmp_path, "guest")
    result = run(*command.split(), "--kubeconfig", user)
    said = _said(result)
    of_cluster = ("nodes", "resourceslices", "deviceclasses")
    stated = [text for each in of_cluster for text in CLAIMS_OF_ABSENCE[each] if text in said]
    assert stated == []


def test_a_device_is_unknown_where_claims_may_not_be_read(kubeconfig: str, tmp_path: Path) -> None:
    user = as_user(kubeconfig, tmp_path, "no-resourceclaims")
    listed = json.loads(run("devices", "--kubeconfig", user, "-o", "json").stdout)
    assert {each["state"] for each in listed["devices"]} == {"unknown"}
    assert {each["open"] for each in listed["devices"]} == {None}
    assert listed["summary"] == {**dict.fromkeys(listed["summary"], 0), "total": 24, "unknown": 24}
    (unread,) = listed["unread"]
    assert (unread["resource"], unread["obstacle"]) == ("resourceclaims", "forbidden")
    summary = run("devices", "--kubeconfig", user, "--summary").stdout
    assert summary.endswith("24 devices, 0 free, 24 unknown\n")


def test_a_held_device_may_be_published_where_slices_may_not_be_read(
    kubeconfig: str, tmp_path: Path
) -> None:
    user = as_user(kubeconfig, tmp_path, "no-resourceslices")
    listed = json.loads(run("claims", "--kubeconfig", user, "-A", "-o", "json").stdout)
    assert [each["published"] for claim in listed["claims"] for each in claim["devices"]] == [
        None,
        None,
    ]
    table = run("claims", "--kubeconfig", user, "-A", "-o", "wide").stdout
    assert "whether gpu.nvidia.com/dgx-h100-0/gpu-0 is in a slice is not known" in table


def test_an_expression_is_not_said_to_match_nothing_where_slices_may_not_be_read(
    kubeconfig: str, tmp_path: Path
) -> None:
    question = ("cel", "device.driver == 'gpu.nvidia.com'", "--kubeconfig")
    found = run(*question, as_user(kubeconfig, tmp_path, "no-resourceslices"))
    assert found.exit_code == 3
    assert "resourceslices may not be read with these rights: which devices there are is not" in (
        found.stdout
    )
    assert "of 0 devices" not in found.stdout
    assert "the right to list resourceslices" in found.stdout
    assert run(*question, as_user(kubeconfig, tmp_path, "no-none")).exit_code == 0


def test_how_many_devices_are_free_is_unknown_where_slices_may_not_be_read(
    kubeconfig: str, tmp_path: Path
) -> None:
    user = as_user(kubeconfig, tmp_path, "no-resourceslices")
    command = ("whatif", "--delete-pod", "team-a/waiting", "--kubeconfig", user)
    assert "free devices: unknown" in run(*command).stdout
    summary = json.loads(run(*command, "-o", "json").stdout)["summary"]
    assert summary["freeBefore"] is summary["freeAfter"] is None
    with pytest.warns(moorage.MoorageWarning, match="not all of the cluster may be read"):
        found = moorage.load(kubeconfig=user).what_if(delete_pod="team-a/waiting")
    assert found.free_before is found.free_after is None
    assert "free devices: unknown" in str(found)


def test_pods_that_changes_affect_are_counted_among_those_that_could_be_read(
    kubeconfig: str, tmp_path: Path
) -> None:
    user = as_user(kubeconfig, tmp_path, "no-pods")
    found = run("whatif", "--drain", NODE, "--kubeconfig", user)
    assert "of the pods that could be read: 0 pods worse off" in found.stdout
    everything = run("whatif", "--drain", NODE, "--kubeconfig", kubeconfig)
    assert "that could be read" not in everything.stdout


def test_what_can_be_counted_at_most_says_so(kubeconfig: str, tmp_path: Path) -> None:
    user = as_user(kubeconfig, tmp_path, "no-resourceclaims")
    fits = run("fit", "template/one-gpu", "--kubeconfig", user)
    assert "resourceclaims may not be read with these rights: " in fits.stdout
    assert "what others of them take counts as free, so fewer may fit" in fits.stdout


def test_metrics_leave_out_what_is_unknown(kubeconfig: str, tmp_path: Path) -> None:
    user = as_user(kubeconfig, tmp_path, "no-resourceclaims")
    text = run("metrics", "--once", "--kubeconfig", user).stdout
    assert 'moorage_unread_resources{resource="resourceclaims"} 1' in text
    assert "moorage_claims{" not in text
    assert "moorage_shape_free_devices{" not in text
    assert 'state="unknown"} 8' in text


def test_lint_names_the_rules_that_it_cannot_apply(kubeconfig: str, tmp_path: Path) -> None:
    user = as_user(kubeconfig, tmp_path, "no-deviceclasses")
    text = run("lint", "--kubeconfig", user, "-q", "-o", "json").stdout
    tree = json.loads(text)
    assert "unknown-class" in tree["summary"]["rulesNotApplied"]
    assert [each["resource"] for each in tree["unread"]] == ["deviceclasses"]
    shown = run("lint", "--kubeconfig", user).stdout
    assert "deviceclasses may not be read with these rights: " in shown


# --- snapshots and the library ------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), ("--anonymise",)])
def test_a_snapshot_remembers_what_its_writer_could_not_read(
    kubeconfig: str, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    user, archive = as_user(kubeconfig, tmp_path, "guest"), str(tmp_path / "cluster.tar.gz")
    assert run("snapshot", "--kubeconfig", user, "-o", archive, *flags).exit_code == 0
    planned = run("plan", "--on", archive)
    assert planned.exit_code == 3
    assert "<unknown>" in planned.stdout
    assert "nodes, resourceslices, deviceclasses may not be read" in planned.stdout
    found = json.loads(run("claims", "--on", archive, "-A", "-o", "json").stdout)
    read = {each["resource"]: each["readNamespaces"] for each in found["unread"]}
    assert read["nodes"] == []
    assert read["resourceclaims"] == (["space-1"] if flags else ["team-a"])


def test_the_library_knows_what_is_unknown(kubeconfig: str, tmp_path: Path) -> None:
    user = as_user(kubeconfig, tmp_path, "guest")
    with pytest.warns(moorage.MoorageWarning, match="not all of the cluster may be read"):
        world = moorage.load(kubeconfig=user)
    assert world.unread["nodes"] == ()
    assert world.unread["pods"] == ("team-a",)
    (pod,) = world.plan().pending
    assert pod.is_unknown
    assert "nodes, resourceslices, deviceclasses may not be read" in pod.reason
    with pytest.raises(moorage.MoorageError, match=r"how many replicas .* is not known"):
        world.fit("template/team-a/one-gpu")
    with pytest.raises(moorage.MoorageError, match="nodes may not be read"):
        world.what_if(drain=NODE)


# --- a connection that is lost ------------------------------------------------------------------


@pytest.fixture
def dead(kubeconfig: str, tmp_path: Path) -> str:
    """Return a kubeconfig of a server that does not answer any more."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = Path(kubeconfig).read_text(encoding="utf-8")
    old = text.split("127.0.0.1:")[1].split()[0].strip('"')
    path = tmp_path / "dead"
    path.write_text(text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{port}"), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "command",
    [
        *STATUSES,
        "explain -f examples/training",
        "plan -f examples/training",
        "fit -f examples/training/00-pod.yaml",
        "lint -f examples/training",
    ],
)
def test_nothing_is_said_about_a_cluster_that_does_not_answer(dead: str, command: str) -> None:
    if command.startswith("fit -f"):
        command = f"fit deployment/x -f {_deployment(Path(dead).parent)}"
    result = run(*command.split(), "--kubeconfig", dead)
    assert result.exit_code == 3, result.output
    assert result.stderr.startswith("error: cluster: ")
    stated = [text for texts in CLAIMS_OF_ABSENCE.values() for text in texts]
    assert [text for text in stated if text in _said(result)] == []


def test_no_expression_is_answered_by_a_cluster_that_does_not_answer(dead: str) -> None:
    result = run("cel", "device.driver == 'x'", "--kubeconfig", dead)
    assert result.exit_code == 3
    assert "of 0 devices" not in result.output


def _deployment(folder: Path) -> Path:
    path = folder / "deployment.yaml"
    template = {
        "metadata": {"labels": {"a": "x"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example.com/app:1"}]},
    }
    tree = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {"selector": {"matchLabels": {"a": "x"}}, "template": template},
    }
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


class Breaking:
    """A client whose connection is lost after some requests."""

    def __init__(self, client: Any, lists: int) -> None:
        self._client, self.left = client, lists

    async def list(self, struct: type[Any], *arguments: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise UnavailableError("the connection is lost")
        return await self._client.list(struct, *arguments, **options)

    async def get(self, *_: Any) -> Any:
        raise UnavailableError("the connection is lost")


def test_what_came_before_the_connection_was_lost_is_kept(kubeconfig: str) -> None:
    async def read() -> Any:
        async with http_client(load_rest_config(kubeconfig)) as client:
            reader = ClusterReader(Breaking(client, 1), ("default",))  # type: ignore[arg-type]
            return await reader.found()

    found = asyncio.run(read())
    assert {type(each) for each in found.values} == {Node}
    assert found.failures == ("the connection is lost",)
    assert "Node" not in {each.kind for each in found.unread}
    assert {each.obstacle.value for each in found.unread} == {"failed"}


# --- dumps that leave out a kind ----------------------------------------------------------------


def test_a_dump_of_pods_does_not_say_that_the_cluster_has_no_nodes(tmp_path: Path) -> None:
    def pod_of(name: str, node: str) -> dict[str, Any]:
        containers = [{"name": "main", "image": "registry.example.com/app:1"}]
        spec = {"containers": containers, **({"nodeName": node} if node else {})}
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    path = tmp_path / "pods.json"
    items = [pod_of("busy", "node-1"), pod_of("waiting", "")]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    explained = run("explain", "pod/waiting", "--on", str(path))
    assert explained.exit_code == 3
    assert "nodes are not in the dump of the cluster, so which node would take" in explained.stdout
    assert "add them: kubectl get nodes -A -o yaml" in explained.stdout
    assert "no node" not in _said(run("plan", "--on", str(path)))
    given = run("plan", "--on", str(path), "--profile", "dgx-h100")
    assert given.exit_code == 0, given.output
