"""The pages about clusters are correct: their commands print the shown output."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from tests.apiserver.programs import NO_KUBECTL, find_kubectl
from tests.apiserver.test_kubectl_server import running
from tests.shell_session import ShellSession
from tests.test_docs import DOCS, ROOT, SEARCH_PATH, blocks_of, commands_of, matches

README = ROOT / "README.md"
PAGES = (
    DOCS / "tutorial" / "first-cluster.md",
    DOCS / "tutorial" / "this-machine.md",
    DOCS / "how-to" / "run-with-devices.md",
)
WAITS = """
apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  containers: [{name: main, image: any}]
  resourceClaims: [{name: gpu, resourceClaimName: missing}]
"""
TIMEOUT_S = 150
HERE = socket.gethostname().lower()

_VARYING = re.compile(
    r"\b\d+(?:ms|[smhd])\b"  # ages
    r"|\S+/state/\S+|/\S+/moor-\S+"  # with its short path
    r"|, dra.nvme \d+/\d+"  # a machine may have no disks
    r"|(?<=dra.memory )\d+/\d+"  # NUMA nodes, with and without huge pages
    r"|(?<=dra.cpu )\d+/\d+"
    r"|(?<=has )\d+(?=\. Fix: )|(?<=Fix: ask for )\d+"  # CPUs
    r"|(?<=of )\d+(?= in use)"
    r"|(?:cpudev|memory-)numa\d+"
    r"|(?<=Cpus_allowed_list:)\s+\S+"
    r"|(?<=127\.0\.0\.1:)\d+"
    r"|(?<=since )\S+"
    r"|(?<=token=)\S+"
    r"|(?<=working )\s*\d+"
    r"|-[a-z0-9]{6,10}-[a-z0-9]{5}(?:-gpu-[a-z0-9]{5})?\b"
)


def plain(line: str) -> str:
    """Return a line without what differs from run to run, and from machine to machine."""
    here = re.sub(rf"(?<![\w.-]){re.escape(HERE)}(?![\w-]|\.\w)", "worker", line)
    return " ".join(_VARYING.sub("N", here).split())


def shell(tmp_path: Path) -> ShellSession:
    """Return a shell in an empty folder, with moor and kubectl."""
    folder, programs = tmp_path / "here", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    (programs / "kubectl").symlink_to(find_kubectl() or "")
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{programs}{os.pathsep}{SEARCH_PATH}",
    }
    return ShellSession(folder, environment, timeout_s=TIMEOUT_S)


@pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    with shell(tmp_path) as session:
        try:
            for block in blocks_of(page):
                if block.file:
                    session.write(block.file, block.lines)
                if block.language == "sh":
                    session.run("\n".join(block.lines))
                for command in commands_of(block) if block.language == "kubectl" else ():
                    printed = session.run(command.text)
                    shown = tuple(map(plain, command.expected))
                    found = tuple(map(plain, printed.splitlines()))
                    assert matches(shown, found), f"$ {command.text}\n{printed}"
        finally:
            session.run(f"cd {tmp_path / 'here'}; moor down; moor reset --yes")


@pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
def test_what_the_readme_says_to_type_on_a_cluster_answers(tmp_path: Path) -> None:
    """Its pod is called x, and waits, as there is no scheduler."""
    (block,) = (block for block in blocks_of(README) if block.language == "kubectl")
    explain, devices = (command.text for command in commands_of(block))
    with running(tmp_path / "data"), shell(tmp_path) as session:
        session.run(f"export KUBECONFIG={tmp_path / 'data' / 'kubeconfig'}")
        session.run(f"kubectl apply -f {ROOT / 'examples' / 'gpu-node'}")
        session.write("x.yaml", tuple(WAITS.splitlines()))
        session.run("kubectl apply -f x.yaml")
        assert "pod default/x: " in session.run(explain)
        assert session.status == 1
        assert "gpu.example.com" in session.run(devices)
        assert session.status == 0
