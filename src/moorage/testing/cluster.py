"""A whole cluster for a test, with a node that runs pods as processes.

API server, scheduler, controllers and the node agent share one thread with its own event loop; the
methods here block until they are done. `kubeconfig` is for tests that call the API themselves.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from ssl import PEM_cert_to_DER_cert
from typing import TYPE_CHECKING, Any, cast

from moorage.api.catalogue import KINDS
from moorage.api.core import Node, Pod
from moorage.api.documents import read
from moorage.api.gates import Gates
from moorage.api.object_reader import read_document
from moorage.api.resource.v1 import DeviceRequestAllocationResult, ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.credentials import NodeFolder, write_node_folder
from moorage.apiserver.http.app import PEER
from moorage.apiserver.server import listening
from moorage.apiserver.server_files import CREDENTIALS_FOLDER, KUBECONFIG_FILE
from moorage.apiserver.settings import Settings as ServerSettings
from moorage.client.client_factory import in_process_client
from moorage.client.contract import Request, list_all
from moorage.client.writes import Apply, Delete, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.node import (
    AGENT,
    KubeletEndpoint,
    NodeProgram,
    NodeSettings,
    held,
    node_program,
)
from moorage.cluster.programs import ProgramContext
from moorage.insight.answer.summary import PendingSummary
from moorage.kit.clock import REAL
from moorage.node.kubelet_server import TlsFiles
from moorage.node.runtime.process import ProcessRuntime
from moorage.testing.allocations import assert_allocated
from moorage.testing.served_drivers import START_S, DriverFailedError, ServedDrivers, background

if TYPE_CHECKING:
    from moorage.driver.driver import Driver
    from moorage.driver.serving import Running

__all__ = ["Cluster", "DriverFailedError", "cluster"]
__tracebackhide__ = True  # pytest shows the test, not us

NODE_NAME = "node-1"
MANAGER = "dra-cluster"
WAIT_S = 30.0
LOOK_S = 0.02
ENDED = ("Succeeded", "Failed")


class Cluster:
    """A running cluster; all methods block until they are done."""

    def __init__(self, folder: Path, parts: EmbeddedCluster, gates: Gates) -> None:
        self._background, self._folder, self._parts = background(), folder, parts
        self._gates = gates
        self._drivers = ServedDrivers()

    # --- where it is ----------------------------------------------------------------------------

    @property
    def node_name(self) -> str:
        """The node that runs pods."""
        return NODE_NAME

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator, for kubectl and drivers."""
        return self._folder / "server" / KUBECONFIG_FILE

    @property
    def kubelet_dir(self) -> Path:
        """The root folder of the kubelet, with plugins_registry and plugins."""
        return self._folder / "kubelet"

    @property
    def cdi_dir(self) -> Path:
        """The folder of CDI specs."""
        return self._folder / "cdi"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a driver on the SDK that runs as a program."""
        return {
            "KUBECONFIG": str(self.kubeconfig),
            "NODE_NAME": self.node_name,
            "KUBELET_DIR": str(self.kubelet_dir),
            "CDI_ROOT": str(self.cdi_dir),
        }

    # --- objects --------------------------------------------------------------------------------

    def apply(self, manifests: str | Path) -> list[Any]:
        """Apply manifests, given as YAML or as the path of a file; return the objects."""
        text = Path(manifests).read_text() if _is_path(manifests) else str(manifests)
        source = str(manifests) if _is_path(manifests) else "manifests"
        return self._background.run(self._apply(text, source))

    async def _apply(self, text: str, source: str) -> list[Any]:
        applied = []
        for document in read(text.encode(), source=source):
            found = read_document(document, gates=self._gates)
            if found.problems:
                raise ValueError(f"{source}: {found.problems[0].message}")
            tree: dict[str, Any] = dict(cast("dict[str, Any]", document.tree))
            tree["metadata"] = dict(tree.get("metadata") or {})
            if found.kind.namespaced:
                tree["metadata"].setdefault("namespace", "default")
            metadata = tree["metadata"]
            target = Target(found.kind.struct, metadata.get("namespace", ""), metadata["name"])
            applied.append(await self._parts.admin.write(Apply(target, tree, MANAGER)))
        return applied

    def get(self, kind: str, name: str, namespace: str = "default") -> Any:
        """Return an object, such as `get("pod", "web")`, or None."""
        struct, scope = _kind(kind, namespace)
        return self._background.run(self._parts.admin.get(struct, scope, name))

    def list(self, kind: str, namespace: str = "") -> list[Any]:
        """Return all objects of a kind, such as `list("resourceslices")`."""
        struct, scope = _kind(kind, namespace)
        return list(self._background.run(list_all(self._parts.admin, struct, scope)).values)

    def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object, and wait until it is gone."""
        struct, scope = _kind(kind, namespace)
        self._background.run(self._parts.admin.write(Delete(Target(struct, scope, name))))
        self.until(lambda: self.get(kind, name, namespace) is None)

    # --- waiting --------------------------------------------------------------------------------

    def until(
        self, holds: Callable[[], Any], within_s: float = WAIT_S, *, raises_bugs: bool = True
    ) -> Any:
        """Wait until a condition holds, and return its value.

        A bug of a driver that runs in the cluster is raised at once, as DriverFailedError;
        `raises_bugs=False` waits for the driver to recover.
        """
        end_s = time.monotonic() + within_s
        while not (found := holds()):
            if raises_bugs:
                self._drivers.raise_bugs()
            if time.monotonic() > end_s:
                said = self._drivers.said()
                raise AssertionError(f"the condition did not hold within {within_s:g} s{said}")
            time.sleep(LOOK_S)
        return found

    def wait_for(
        self,
        pod: str,
        phase: str = "Running",
        *,
        namespace: str = "default",
        within_s: float = WAIT_S,
        raises_bugs: bool = True,
    ) -> Pod:
        """Wait until a pod is in a phase, and return it; the error says why it is not.

        As with `until`, a bug of a driver is raised at once.
        """
        work = self._wait_for(pod, phase, namespace, within_s, raises_bugs)
        found, is_there = self._background.run(work, within_s + WAIT_S)
        said = self._drivers.said()
        if found is None:
            raise AssertionError(f"there was no pod {namespace}/{pod} within {within_s:g} s{said}")
        if not is_there:
            raise AssertionError(f"pod {namespace}/{pod} is not {phase}, but {_how(found)}{said}")
        return found

    async def _wait_for(
        self, name: str, phase: str, namespace: str, within_s: float, raises_bugs: bool
    ) -> tuple[Pod | None, bool]:
        end_s = time.monotonic() + within_s
        while True:
            pod = await self._parts.admin.get(Pod, namespace, name)
            if pod is not None and pod.status.phase == phase:
                return pod, True
            if raises_bugs:
                self._drivers.raise_bugs()
            if time.monotonic() > end_s or (pod is not None and pod.status.phase in ENDED):
                return pod, False
            await asyncio.sleep(LOOK_S)

    def logs(self, pod: str, container: str = "", namespace: str = "default") -> str:
        """Return the logs of a container of a pod."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        query = f"container={container}" if container else ""
        answer = self._background.run(self._parts.transport_of().send(Request("GET", path, query)))
        text = answer.body.decode(errors="replace")
        if answer.status != 200:
            raise AssertionError(f"no logs of pod {namespace}/{pod}: {text}")
        return text

    def assert_allocated(
        self, claim: str, *, namespace: str = "default", within_s: float = WAIT_S, **wanted: Any
    ) -> tuple[DeviceRequestAllocationResult, ...]:
        """Wait until a claim is allocated, and assert its devices; see `allocations`."""
        try:
            found = self.until(lambda: self._allocated(claim, namespace), within_s)
        except DriverFailedError:
            raise
        except AssertionError:
            found = self.get("resourceclaim", claim, namespace)
        if found is None:
            raise AssertionError(f"there is no claim {namespace}/{claim}")
        why = self._why_not(found) if found.status.allocation is None else ""
        return assert_allocated(found, slices=self.list("resourceslice"), why=why, **wanted)

    def _allocated(self, name: str, namespace: str) -> ResourceClaim | None:
        found: ResourceClaim | None = self.get("resourceclaim", name, namespace)
        return None if found is None or found.status.allocation is None else found

    def _why_not(self, claim: ResourceClaim) -> str:
        """Return why the pods that use a claim are not scheduled."""
        name = claim.metadata.name
        for pod in self.list("pod", claim.metadata.namespace):
            entries = (
                *(pod.spec.resource_claims or ()),
                *(pod.status.resource_claim_statuses or ()),
            )
            if any(each.resource_claim_name == name for each in entries):
                return f"pod {pod.metadata.name} is {_how(pod)}"
        return "no pod wants it, and claims are allocated for pods"

    # --- drivers --------------------------------------------------------------------------------

    @contextmanager
    def run(self, driver: Driver, within_s: float = START_S) -> Iterator[Running]:
        """Run a driver on the node during a `with` block, registered and published.

        Raises InventoryError, caused by the driver's own exception, if `devices` fails, and
        DriverFailedError if something takes too long.
        """
        with self._drivers.run(
            driver,
            self._parts.admin,
            lambda running: running.wait_registered(),
            within_s,
            node_name=self.node_name,
            kubelet_dir=self.kubelet_dir,
            cdi_dir=self.cdi_dir,
        ) as running:
            yield running


# --- starting -------------------------------------------------------------------------------------


@contextmanager
def cluster(*, runtime: str = "process", gates: Gates | None = None) -> Iterator[Cluster]:
    """Run a cluster during a `with` block; nothing is left of it."""
    gates = gates or Gates.parse()
    # Paths of sockets must be short, and those of pytest are not.
    folder = Path(tempfile.mkdtemp(prefix="moor-", dir="/tmp"))
    try:
        with background().entered(_running(folder, runtime, gates)) as parts:
            yield Cluster(folder, parts, gates)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _running(folder: Path, runtime: str, gates: Gates) -> AsyncIterator[EmbeddedCluster]:
    around = ProgramContext(gates=gates)
    server = folder / "server"
    (folder / "cdi").mkdir()
    explain = PendingSummary(around.clock.monotonic, around.gates)
    async with embedded(server, around, explain=explain) as parts:
        settings = ServerSettings(server, port=0, gates=gates, has_rbac=True)
        async with listening(parts.server, settings) as url:
            now = Timestamp(REAL.now()).truncated()
            credentials = write_node_folder(
                folder / "node",
                node=NODE_NAME,
                hosts=("127.0.0.1",),
                server=url,
                pki=server / CREDENTIALS_FOLDER,
                now=now,
            )
            async with _node(folder, runtime, around, parts, credentials):
                yield parts


@asynccontextmanager
async def _node(
    folder: Path,
    runtime: str,
    around: ProgramContext,
    parts: EmbeddedCluster,
    credentials: NodeFolder,
) -> AsyncIterator[None]:
    """Run the node agent; its containers end with it."""
    root = folder / "kubelet"
    files = TlsFiles(credentials.certificate, credentials.key, credentials.authority)
    settings = NodeSettings(
        name=NODE_NAME,
        folder=root,
        runtime=runtime,
        cdi_folders=(Path("/etc/cdi"), folder / "cdi"),
        address="127.0.0.1",
        endpoint=KubeletEndpoint("127.0.0.1", 0, files),
    )
    own = (folder / "node" / "client.crt").read_text()
    scope = {PEER: PEM_cert_to_DER_cert(own)}
    client = in_process_client(parts.server.application, manager=AGENT, scope=scope)
    with held(root):
        async with node_program(client, around, settings) as program:
            task = asyncio.create_task(program.run())
            try:
                await _until_ready(parts, task)
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                await _end_containers(program)


async def _until_ready(parts: EmbeddedCluster, task: asyncio.Task[None]) -> None:
    while True:
        if task.done():
            task.result()
        node = await parts.admin.get(Node, "", NODE_NAME)
        conditions = () if node is None else node.status.conditions
        if any(each.type == "Ready" and each.status == "True" for each in conditions):
            return
        await asyncio.sleep(LOOK_S)


async def _end_containers(program: NodeProgram) -> None:
    if isinstance(program.runtime, ProcessRuntime):
        await program.runtime.shut_down()


def _kind(text: str, namespace: str) -> tuple[type[Any], str]:
    """Return the struct of a kind, such as pod, pods or Pod, and its namespace, if any."""
    wanted = text.lower()
    for kind in KINDS:
        if wanted in (kind.name.lower(), kind.plural) and kind.api_version == kind.hub_version:
            return kind.struct, namespace if kind.namespaced else ""
    raise ValueError(f"no kind {text!r}")


def _is_path(manifests: str | Path) -> bool:
    return isinstance(manifests, Path) or "\n" not in manifests


def _how(pod: Pod) -> str:
    """Return the phase of a pod, with messages of its conditions and containers."""
    texts = [each.message for each in pod.status.conditions or () if each.message]
    for status in pod.status.container_statuses or ():
        waiting = status.state.waiting or {}
        ended = status.state.terminated
        if message := waiting.get("message") or waiting.get("reason"):
            texts.append(f"{status.name}: {message}")
        if ended is not None and ended.exit_code:
            texts.append(f"{status.name} ended with status {ended.exit_code} {ended.message or ''}")
    phase = pod.status.phase or "Pending"
    return f"{phase}: {'; '.join(texts)}" if texts else phase
