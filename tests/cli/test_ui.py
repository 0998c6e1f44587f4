"""The sources of the page, and how the command refuses what it cannot show."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from moorage.api.core import Pod
from moorage.api.documents import CORE
from moorage.cli.cluster_options import Sources, read_sources
from moorage.cli.main import moor
from moorage.cli.ui import recording_feed, source_of, static_feed, title_of
from moorage.hardware.attributes import NumaNodeForm
from moorage.insight.history.recording import write_recording
from moorage.sources.cluster_sources import FileSource, Profiles
from moorage.web.causes import FREE_TO_GO
from tests.insight.history.changes import change
from tests.web.fleets import CONTEXT, SMALL, holding

BUSY = "examples/busy-node/cluster.yaml"
TRAINING = "examples/training/training.yaml"


def run(*words: str) -> Result:
    return CliRunner().invoke(moor, ["ui", *words])


def sources(
    cluster: tuple[str, ...] = (), manifests: tuple[str, ...] = (), at: str = ""
) -> Sources:
    return Sources(
        [FileSource(cluster, False, CORE, at)] if cluster else [],
        [FileSource(manifests, False, CORE)] if manifests else [],
        CONTEXT,
        "default",
    )


def test_without_a_cluster_it_says_where_one_comes_from(tmp_path: Path) -> None:
    result = run("--data-dir", str(tmp_path))
    assert result.exit_code == 3
    assert "no cluster runs" in result.stderr
    assert "moor up" in result.stderr


def test_a_cluster_that_is_gone_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {}}]\n"
    )
    result = run("--data-dir", str(tmp_path))
    assert result.exit_code == 3
    assert len(result.stderr.splitlines()) == 1


def test_the_browser_is_given_no_link_that_others_can_read(tmp_path: Path) -> None:
    given, browser = tmp_path / "given", tmp_path / "browser"
    os.mkfifo(given)
    browser.write_text(
        f'#!/bin/sh\n{{ echo "$1"; stat -c %a "${{1#file://}}"; cat "${{1#file://}}"; }} >{given}\n'
    )
    browser.chmod(0o755)
    command = [sys.executable, "-m", "moorage.cli", "ui", "--open", "--on", BUSY]
    environment = os.environ | {"BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url, mode, page = given.read_text().split("\n", 2)
        link = process.stdout.readline().strip()
        process.send_signal(signal.SIGINT)
        process.wait(60)
    assert "token=" in link
    assert "token" not in url
    assert mode == "600"
    assert f'content="0; url={link}"' in page
    assert sorted(each.name for each in tmp_path.iterdir()) == ["browser", "given"]


def test_nothing_is_shown_of_files_that_cannot_be_read() -> None:
    result = run("-f", "nowhere.yaml")
    assert result.exit_code == 3
    assert result.output == "error: nowhere.yaml: no such file or directory\n"


def test_pods_of_files_are_shown_as_the_plan_sees_them() -> None:
    given = sources((BUSY,), (TRAINING,))
    feed = static_feed(read_sources(given), title_of(given), source_of(given), is_plan=True)
    names = {name for kind, _, name in feed.objects if kind == "Pod"}
    assert "training-0" in names  # a pod that the deployment would create
    assert all(cause.text != FREE_TO_GO for cause in feed.causes.values())
    assert (feed.facts.source, feed.facts.title) == ("files", f"{BUSY}, {TRAINING}")


def test_pods_of_files_that_get_a_node_are_shown_on_it() -> None:
    machine = Profiles(("dgx-h100",), NumaNodeForm.SCALAR)
    given = sources(manifests=(TRAINING,))._replace(cluster=[machine])
    feed = static_feed(read_sources(given), title_of(given), source_of(given), is_plan=True)
    nodes = {
        name: pod.spec.node_name
        for (_, _, name), pod in feed.objects.items()
        if isinstance(pod, Pod)
    }
    placed = dict.fromkeys(("notebook-0", "notebook-1", "training-0"), "dgx-h100-0")
    assert nodes == {**placed, "training-1": ""}


def test_a_recording_is_shown_with_its_history(tmp_path: Path) -> None:
    path = tmp_path / "x.moorrec"
    path.write_bytes(
        write_recording([change(3, *SMALL), change(4, holding("busy", "gpu-1"))], gates="")
    )
    feed = recording_feed(sources((str(path),)))
    assert feed is not None
    assert (feed.facts.source, feed.revision) == ("recording", 4)
    assert feed.history is not None
    assert [each.revision for each in feed.history.moments] == [3, 4]
    assert recording_feed(sources((str(path),), at="3")) is None  # one moment has no history
    assert recording_feed(sources((BUSY,))) is None
