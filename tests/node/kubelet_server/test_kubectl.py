"""kubectl logs, exec and attach, end to end: with a real server, and a node's endpoint in here."""

from __future__ import annotations

import asyncio
import json
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import write_node_folder
from moorage.node.kubelet_server import KubeletServer, RequestHandler, TlsFiles
from moorage.node.runtime.contract import Runtime
from tests.apiserver.programs import NO_KUBECTL, find_kubectls
from tests.apiserver.test_kubectl_server import Kubectl, running, until
from tests.node.kubelet_server.fakes import (
    ENDED,
    LISTENING,
    RUNNING,
    WAITING,
    FakePods,
    FakeRuntime,
    pod,
    status,
)

KUBECTLS = find_kubectls()
TIMEOUT_S = 60

pytestmark = pytest.mark.skipif(not KUBECTLS, reason=NO_KUBECTL)


class NodeThread:
    """An endpoint with an event loop of its own."""

    def __init__(self, files: TlsFiles) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.port: int = self.run(self._open(files))

    async def _open(self, files: TlsFiles) -> int:
        self.runtime = FakeRuntime()
        self.runtime.write("main", 0, b"before\n")
        self.runtime.write("main", 1, b"one\n", b"two\n", b"three\n")
        self.runtime.write("side", 0, b"beside\n")
        self.runtime.write("talker", 0)
        is_runningagain = status("main", 1, lastState=ENDED, **RUNNING)
        pods = FakePods(
            pod(is_runningagain, status("side", **RUNNING), name="two"),
            pod(is_runningagain, name="one"),
            pod(status("main", **WAITING), name="new"),
            pod(status("talker", **RUNNING), name="talker"),
            pod(status("listener", **RUNNING), name="listener"),
            pod(status("terminal", **RUNNING), name="terminal"),
        )
        answering = RequestHandler(pods, cast("Runtime", self.runtime))
        self.endpoint = KubeletServer(answering, files)
        await self.endpoint.listen("127.0.0.1", 0)
        return self.endpoint.port

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(TIMEOUT_S)

    def close(self) -> None:
        self.run(self.endpoint.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def say(self, *lines: bytes) -> None:
        async def write() -> None:
            self.runtime.write("talker", 0, *lines)

        self.run(write())


def node_object(name: str, port: int, **annotations: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": annotations},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }


def pod_object(name: str, node: str, *containers: str) -> dict[str, Any]:
    listed = [
        {
            "name": container,
            "image": "i",
            "stdin": container in LISTENING,
            "tty": container == "terminal",
        }
        for container in containers
    ]
    spec = {"containers": listed, "nodeName": node} if node else {"containers": listed}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("server")
    with running(folder):
        yield folder


@pytest.fixture(scope="module")
def node(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeThread]:
    admin = yaml.safe_load((state / "kubeconfig").read_text())
    made = write_node_folder(
        tmp_path_factory.mktemp("node"),
        node="n1",
        hosts=("127.0.0.1",),
        server=admin["clusters"][0]["cluster"]["server"],
        pki=state / "pki",
        now=Timestamp(datetime.now(UTC)),
    )
    thread = NodeThread(TlsFiles(made.certificate, made.key, made.authority))
    yield thread
    thread.close()


@pytest.fixture(scope="module", autouse=True)
def objects(state: Path, node: NodeThread, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = [
        node_object("n1", node.port),
        node_object("gone", 1),
        node_object("play", node.port, **{"moorage.dev/simulated": "true"}),
        pod_object("one", "n1", "main"),
        pod_object("two", "n1", "main", "side"),
        pod_object("new", "n1", "main"),
        pod_object("talker", "n1", "talker"),
        pod_object("listener", "n1", "listener"),
        pod_object("terminal", "n1", "terminal"),
        pod_object("lost", "gone", "main"),
        pod_object("played", "play", "main"),
        pod_object("unplaced", "", "main"),
    ]
    folder = tmp_path_factory.mktemp("setup")
    (folder / "kubeconfig").write_text((state / "kubeconfig").read_text())
    kubectl = Kubectl(next(iter(KUBECTLS.values())), folder)
    for each in made:
        kubectl("create", "-f", "-", text=json.dumps(each))


@pytest.fixture(scope="module", params=list(KUBECTLS.values()), ids=list(KUBECTLS))
def kubectl(
    request: pytest.FixtureRequest, state: Path, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    folder = tmp_path_factory.mktemp("kubectl")
    (folder / "kubeconfig").write_text((state / "kubeconfig").read_text())
    return Kubectl(request.param, folder)


# --- port-forward ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tunnels", ["true", "false"])
def test_port_forward(kubectl: Kubectl, tunnels: str) -> None:
    is_running = '{"status": {"phase": "Running"}}'
    kubectl("patch", "pod", "two", "--subresource=status", "-p", is_running)
    with shouting() as port, forwarding(kubectl, port, tunnels) as local:
        for text in (b"one", b"x" * 300_000):  # a connection each
            with socket.create_connection(("127.0.0.1", local), TIMEOUT_S) as connection:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                with connection.makefile("rb") as answer:
                    assert answer.read() == text.upper()


def test_port_forward_needs_the_right_to_create(kubectl: Kubectl) -> None:
    raw = "/api/v1/namespaces/default/pods/one/portforward"
    assert "Upgrade request required" in kubectl.fails("get", "--raw", raw)
    played = "/api/v1/namespaces/default/pods/played/portforward"
    assert 'node "play" is simulated' in kubectl.fails("get", "--raw", played)
    who = ("--as=somebody", "get", "--raw", raw)
    assert 'cannot get resource "pods/portforward"' in kubectl.fails(*who)


@contextmanager
def shouting() -> Iterator[int]:
    """Serve: what comes goes back in capitals, once it is complete."""

    class Shout(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(self.rfile.read().upper())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Shout) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(TIMEOUT_S)


@contextmanager
def forwarding(kubectl: Kubectl, port: int, tunnels: str) -> Iterator[int]:
    """Run port-forward to pod two, with WebSocket or SPDY alone; give the local port."""
    process = subprocess.Popen(
        kubectl.command("port-forward", "pod/two", f":{port}", "--address=127.0.0.1", "-v=4"),
        env={**kubectl.environment, "KUBECTL_PORT_FORWARD_WEBSOCKETS": tunnels},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said = process.stdout.readline()
        assert said.startswith("Forwarding from 127.0.0.1:"), process.stderr.read()
        yield int(said.split()[2].rpartition(":")[2])
    finally:
        process.kill()
        _, log = process.communicate(timeout=TIMEOUT_S)
    assert "fallback" not in log


# --- logs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([], "one\ntwo\nthree\n"),
        (["-c", "main"], "one\ntwo\nthree\n"),
        (["--tail=1"], "three\n"),
        (["--tail=0"], ""),
        (["--previous"], "before\n"),
        (["--limit-bytes=5"], "one\nt"),
        (["--tail=1", "--timestamps"], "2026-11-15T12:00:02Z three\n"),
        (["--since-time=2026-11-15T12:00:01Z"], "two\nthree\n"),
    ],
)
def test_logs(kubectl: Kubectl, flags: list[str], text: str) -> None:
    assert kubectl("logs", "one", *flags) == text


def test_logs_since_a_while_ago(kubectl: Kubectl, node: NodeThread) -> None:
    kubectl("logs", "one", "--since=1h")
    since = node.runtime.asked[-1][1].since
    assert since is not None
    age_s = (datetime.now(UTC) - since.instant).total_seconds()
    assert 3600 <= age_s < 3600 + TIMEOUT_S


def test_logs_of_several_containers(kubectl: Kubectl) -> None:
    assert kubectl("logs", "two", "-c", "side") == "beside\n"
    listed = kubectl("logs", "two", "--all-containers", "--prefix").splitlines()
    assert {"[pod/two/main] one", "[pod/two/side] beside"} <= set(listed)
    # By itself, kubectl takes the first one.
    raw = "/api/v1/namespaces/default/pods/two/log"
    refused = kubectl.fails("get", "--raw", raw)
    assert "a container name must be specified for pod two, choose one of: [main side]" in refused


def first_line_told(kubectl: Kubectl, node: NodeThread, *arguments: str) -> str:
    """Return the first line that a kubectl prints of what a container says while it listens."""
    runtime = node.runtime
    runtime.followed.clear()
    runtime.left.clear()
    process = subprocess.Popen(
        kubectl.command(*arguments),
        env=kubectl.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        node.run(asyncio.wait_for(runtime.followed.wait(), TIMEOUT_S))
        node.say(b"news\n")
        return process.stdout.readline()
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        process.stdout.close()
        # Who goes away is not read to any more.
        node.run(asyncio.wait_for(runtime.left.wait(), TIMEOUT_S))


def test_logs_are_followed(kubectl: Kubectl, node: NodeThread) -> None:
    assert first_line_told(kubectl, node, "logs", "talker", "-f", "--tail=0") == "news\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["new"], 'container "main" in pod "new" is waiting to start: ContainerCreating'),
        (["new", "-p"], 'previous terminated container "main" in pod "new" not found'),
        (["one", "-c", "other"], "container other is not valid for pod one"),
        (["lost"], "dial tcp 127.0.0.1:1: connect: connection refused"),
        (["played"], 'node "play" is simulated: nothing runs on it'),
        (["nobody"], 'pods "nobody" not found'),
    ],
)
def test_why_there_is_no_log(kubectl: Kubectl, arguments: list[str], text: str) -> None:
    assert text in kubectl.fails("logs", *arguments)


def test_a_pod_without_a_node_has_said_nothing(kubectl: Kubectl) -> None:
    assert kubectl("logs", "unplaced") == ""


# --- exec and attach ------------------------------------------------------------------------------


def test_exec(kubectl: Kubectl) -> None:
    assert kubectl("exec", "one", "--", "echo", "a b", "c&d=e") == "a b c&d=e\n"
    done = kubectl.run("exec", "two", "-c", "side", "--", "complain", "too loud")
    assert (done.status, done.out) == (0, "out\n")
    assert done.err == "too loud"


def test_the_exit_code_of_a_command(kubectl: Kubectl) -> None:
    done = kubectl.run("exec", "one", "--", "exit", "7")
    assert done.status == 7
    assert "command terminated with exit code 7" in done.err


def test_input_of_a_command(kubectl: Kubectl) -> None:
    assert kubectl("exec", "-i", "one", "--", "cat", text="some text") == "SOME TEXT"


def test_much_output(kubectl: Kubectl) -> None:
    assert len(kubectl("exec", "one", "--", "flood")) == 300_000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["one", "--", "missing"], "no such file: missing"),
        (["new", "--", "echo"], 'container not found ("main")'),
        (["lost", "--", "echo"], "error dialing backend: dial tcp 127.0.0.1:1: connect"),
        (["played", "--", "echo"], 'node "play" is simulated'),
        (["unplaced", "--", "echo"], "pod unplaced does not have a host assigned"),
    ],
)
def test_why_a_command_does_not_run(kubectl: Kubectl, arguments: list[str], text: str) -> None:
    assert text in kubectl.fails("exec", *arguments)


def test_a_terminal_and_its_size(kubectl: Kubectl) -> None:
    command = " ".join(kubectl.command("exec", "-it", "one", "--", "size"))
    with_size = f"stty cols 91 rows 17; exec {command}"
    done = subprocess.run(
        ["script", "-qec", with_size, "/dev/null"],
        env={**kubectl.environment, "TERM": "xterm"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert b"91x17" in done.stdout, done


def test_without_websockets_kubectl_is_told(kubectl: Kubectl) -> None:
    environment = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
    done = kubectl.run("exec", "one", "--", "echo", **environment)
    assert done.status != 0
    assert "only WebSocket is spoken here" in done.err


def test_attach_shows_what_a_container_says(kubectl: Kubectl, node: NodeThread) -> None:
    assert first_line_told(kubectl, node, "attach", "talker") == "news\n"
    # Input that it does not take is none of its business.
    assert first_line_told(kubectl, node, "attach", "-i", "talker") == "news\n"


def test_attach_passes_input_on(kubectl: Kubectl) -> None:
    assert "SOME TEXT" in kubectl("attach", "-i", "listener", text="some text")


def test_attach_to_a_terminal(kubectl: Kubectl) -> None:
    """As with kubelets it is the container that has a terminal, whoever asks for one."""
    command = " ".join(kubectl.command("attach", "-it", "terminal"))
    done = subprocess.run(
        ["script", "-qec", f"stty cols 91 rows 17; exec {command}", "/dev/null"],
        env={**kubectl.environment, "TERM": "xterm"},
        capture_output=True,
        input=b"typed\n",
        timeout=TIMEOUT_S,
        check=False,
    )
    assert b"91x17" in done.stdout, done
    assert b"TYPED" in done.stdout, done


def test_who_may_run_commands(kubectl: Kubectl) -> None:
    """Who may only get pods/exec may not run commands by a GET."""
    may = ("--verb=get", "--resource=pods,pods/exec,pods/log")
    role = kubectl("create", "role", "getter", *may, "--dry-run=client", "-o", "yaml")
    kubectl("apply", "-f", "-", text=role)
    bound = ("--role=getter", "--user=ann", "--dry-run=client", "-o", "yaml")
    kubectl("apply", "-f", "-", text=kubectl("create", "rolebinding", "ann", *bound))
    until(lambda: kubectl.run("logs", "one", "--tail=1", "--as=ann").out == "three\n")
    refused = kubectl.fails("exec", "one", "--as=ann", "--", "echo")
    assert 'User "ann" cannot create resource "pods/exec"' in refused
