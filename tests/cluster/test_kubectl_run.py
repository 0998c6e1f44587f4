"""`kubectl run -i` and `kubectl attach -i`, with a real kubectl, and processes as containers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.programs import NO_KUBECTL, find_kubectls
from tests.apiserver.test_kubectl_server import Kubectl

KUBECTLS = find_kubectls()
TIMEOUT_S = 150

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)


def moor(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "moorage.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("cluster")
    place = ("--data-dir", str(folder))
    started = moor("up", *place, "--port", "0", "--drivers", "none", "--detach")
    assert started.returncode == 0, started.stderr
    try:
        yield folder
    finally:
        moor("down", *place)
        moor("reset", *place, "--yes")


@pytest.fixture(scope="module")
def kubectl(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    folder = tmp_path_factory.mktemp("kubectl")
    (folder / "kubeconfig").write_text((state / "kubeconfig").read_text())
    return Kubectl(list(KUBECTLS.values())[-1], folder)


RUN = ("run", "--image=none", "--restart=Never", "--rm", "-q", "--command")


def test_run_with_input_shows_its_output(kubectl: Kubectl) -> None:
    words = ("-i", "shout", "--", "tr", "a-z", "A-Z")
    assert kubectl(*RUN, *words, text="some text\n").splitlines()[0] == "SOME TEXT"


def test_run_with_input_has_two_streams_and_an_exit_code(kubectl: Kubectl) -> None:
    words = ("-i", "both", "--", "sh", "-c", "read x; echo got $x; echo wrong >&2; exit 3")
    done = kubectl.run(*RUN, *words, text="this\n")
    assert done.out.splitlines()[0] == "got this"
    assert "wrong" in done.err
    assert done.status == 3


def test_run_with_a_terminal(kubectl: Kubectl) -> None:
    script = "test -t 0 && stty size; read x; echo got $x"
    command = " ".join(kubectl.command(*RUN, "-it", "typed", "--", "sh", "-c", f"'{script}'"))
    done = subprocess.run(
        ["script", "-qec", f"stty cols 91 rows 17; exec {command}", "/dev/null"],
        env={**kubectl.environment, "TERM": "xterm"},
        capture_output=True,
        input=b"this\n",
        timeout=TIMEOUT_S,
        check=False,
    )
    assert b"got this" in done.stdout, done


def test_attach_with_input(kubectl: Kubectl) -> None:
    script = "echo ready; while read x; do echo got $x; test $x = end && exit; done"
    words = ("run", "listener", "--image=none", "--restart=Never", "--stdin", "--attach=false")
    kubectl(*words, "--command", "--", "sh", "-c", script)
    kubectl("wait", "--for=condition=Ready", "pod/listener", "--timeout=60s")
    assert "got one" in kubectl("attach", "-i", "listener", text="one\nend\n")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/listener", "--timeout=60s")
    kubectl("delete", "pod", "listener")
