"""A stage: an embedded cluster on which manifests are applied as they are written.

Pods are played in order: the next one comes when the last one has a node, or a word why not. There
are no nodes behind the Node objects: who needs a kubelet or a driver plays it here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from moorage.api.catalogue import KINDS
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Event, Pod
from moorage.api.documents import expand_lists, read
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimTemplate
from moorage.apiserver.auth.credentials import ADMIN
from moorage.apiserver.http.app import PEER
from moorage.client.contract import Request
from moorage.client.in_process import InProcessTransport
from moorage.client.writes import Delete, Patch, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import ProgramContext
from moorage.hardware.attributes import NumaNodeForm
from moorage.hardware.catalogue import Catalogue
from moorage.insight.snapshot.stand_ins import stand_in
from moorage.kit.clock import REAL, Clock
from moorage.scheduler.live import SchedulerConfig, kinds_of
from tests.client.servers import until
from tests.stories.resting import comes_with_others, counted, known

PLAY_S_MAX = 30.0
FINALIZER = "resource.kubernetes.io/delete-protection"
WORKLOADS = ("Deployment", "ReplicaSet", "DaemonSet", "Job")

T = TypeVar("T")


class Given(NamedTuple):
    """A device that a claim got."""

    request: str
    driver: str
    pool: str
    device: str
    share: str
    consumed: dict[str, str]
    is_admin: bool


class Answer(NamedTuple):
    """What the server said of a manifest."""

    status: int
    tree: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """Why it was refused."""
        return str(self.tree.get("message", ""))


class RefusedManifestError(Exception):
    """The server did not take a manifest."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


class Stage:
    """A cluster, and what one does with it."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.objects = cluster.controlling.informers.objects
        self.warnings: list[str] = []
        self._transport = self._transport_of()

    def _transport_of(self, user: str = "") -> InProcessTransport:
        credentials = self.cluster.server.credentials
        assert credentials is not None
        pem = credentials.clients[ADMIN].certificate.decode()
        return InProcessTransport(
            self.cluster.server.application,
            headers={"impersonate-user": user} if user else None,
            scope={PEER: ssl.PEM_cert_to_DER_cert(pem)},
        )

    # --- applying -------------------------------------------------------------------------------

    async def furnish(self, trees: Iterable[dict[str, Any]], namespace: str = "default") -> None:
        """Apply what a cluster has: each after what it names."""
        for tree in sorted((placed(tree, namespace) for tree in trees), key=_turn):
            await self.play(tree)

    async def apply(self, *paths: Path, namespace: str = "default") -> None:
        """Apply the manifests of files; a pod stands in for each claim that no pod uses."""
        trees = [placed(tree, namespace) for path in paths for tree in trees_of(path)]
        await self.furnish(trees)
        for pod in _unused(trees):
            await self.play(to_tree(pod))

    async def play(self, tree: dict[str, Any], *, waits: bool = True) -> Any:
        """Apply one manifest and wait until all programs know of it, and pods are decided on."""
        answer = await self.send(tree)
        if answer.status >= 300:
            raise RefusedManifestError(answer)
        self.warnings += answer.warnings
        kind = kind_of(answer.tree)
        name, space = answer.tree["metadata"]["name"], answer.tree["metadata"].get("namespace", "")
        if "status" in tree and kind.name in ("ResourceClaim", "Pod"):
            if kind.name == "ResourceClaim":  # as the scheduler does before it allocates
                body = {"metadata": {"finalizers": [FINALIZER]}}
                await self.cluster.admin.write(Patch(Target(ResourceClaim, space, name), body))
            await self.set_status(kind, space, name, await self._status_of(tree["status"], space))
        await self.seen(kind, space, name)
        if kind.name == "PodDisruptionBudget":
            await counted(self.cluster, space, name)
        elif kind.name == "Pod" and waits and not self._is_left(answer.tree):
            await until(lambda: self.is_decided(self.pod(name, space)))
        elif kind.name in WORKLOADS:
            replicas = answer.tree["spec"].get("replicas", 1)
            await until(lambda: self._are_decided(name, replicas))
        return answer.tree

    def _is_left(self, tree: dict[str, Any]) -> bool:
        """Whether a pod is decided already, or later with others."""
        return bool(tree["spec"].get("nodeName")) or comes_with_others(self.cluster, tree)

    async def send(self, tree: dict[str, Any], namespace: str = "default") -> Answer:
        """Create an object from a manifest as it is written, or apply it where it exists."""
        kind, tree = kind_of(tree), placed(tree, namespace)
        metadata = tree["metadata"]
        path = path_of(kind, metadata.get("namespace", ""))
        answer = await self.ask("POST", path, tree)
        if answer.status == 409 and "already exists" in answer.message:
            path = path_of(kind, metadata.get("namespace", ""), metadata["name"])
            query = "fieldManager=stage&force=true"
            answer = await self.ask("PATCH", path, tree, query, "application/apply-patch+yaml")
        return answer

    async def ask(
        self,
        method: str,
        path: str,
        tree: Any = None,
        query: str = "",
        content_type: str = "application/json",
        *,
        as_user: str = "",
    ) -> Answer:
        """Send a request as an admin, or as a user that the admin plays, and return the answer."""
        body = b"" if tree is None else msgspec.json.encode(tree)
        request = Request(method, path, query, body, content_type)
        transport = self._transport_of(as_user) if as_user else self._transport
        answer = await transport.send(request)
        return Answer(answer.status, msgspec.json.decode(answer.body), answer.warnings)

    async def set_status(self, kind: Kind, namespace: str, name: str, status: Any) -> None:
        """Write a status as whoever reports it does."""
        target = Target(kind.struct, namespace, name)
        made = await self.cluster.admin.write(Patch(target, {"status": status}, "status"))
        if kind.struct is Pod:
            await known(self.cluster, made)

    async def _status_of(self, status: Any, namespace: str) -> Any:
        """Return a status that means the objects here by the names that it says."""
        reserved = []
        for each in status.get("reservedFor", ()):
            pod = await self.pod_that_comes(each["name"], namespace)
            reserved.append({**each, "uid": pod.metadata.uid})
        return {**status, **({"reservedFor": reserved} if reserved else {})}

    async def pod_that_comes(self, name: str, namespace: str = "default") -> Pod:
        return await arrives(lambda: self.pod(name, namespace))

    async def seen(self, kind: Kind, namespace: str, name: str) -> None:
        """Wait until scheduler and controllers know of an object, if they follow its kind."""
        struct = kind_of({"apiVersion": kind.hub_version, "kind": kind.name}).struct
        scheduling = self.cluster.scheduling.informers.objects
        if struct in kinds_of(self.cluster.scheduling.scheduler.cache.cluster.features):
            await until(lambda: scheduling.get(struct, namespace, name))
        if struct in (Pod, ResourceClaim):
            await until(lambda: self.objects.get(struct, namespace, name))

    # --- looking --------------------------------------------------------------------------------

    def pod(self, name: str, namespace: str = "default") -> Pod | None:
        return self.objects.get(Pod, namespace, name)

    def claim(self, name: str, namespace: str = "default") -> ResourceClaim | None:
        return self.objects.get(ResourceClaim, namespace, name)

    def claim_like(self, start: str) -> ResourceClaim | None:
        """Return a claim by how its name begins."""
        found = self.objects.list(ResourceClaim)
        return next((each for each in found if each.metadata.name.startswith(start)), None)

    def pods_of(self, owner: str) -> list[Pod]:
        """Return the pods whose names begin with that of a workload, in the order they came."""
        found = [each for each in self.objects.list(Pod) if each.metadata.name.startswith(owner)]
        return sorted(found, key=lambda pod: pod.metadata.name)

    def claims_of(self, pod: Pod) -> list[ResourceClaim]:
        """Return the claims of a pod as its entries name them, and that for its resources."""
        made = {e.name: e.resource_claim_name for e in pod.status.resource_claim_statuses or ()}
        names = [e.resource_claim_name or made.get(e.name) for e in pod.spec.resource_claims]
        special = pod.status.extended_resource_claim_status
        names += [special.resource_claim_name] if special is not None else []
        found = (self.claim(name, pod.metadata.namespace) for name in names if name)
        return [each for each in found if each is not None]

    def given(self, pod: Pod) -> list[Given]:
        """Return the devices that a pod's claims got."""
        return [each for claim in self.claims_of(pod) for each in given_by(claim)]

    def message(self, name: str, namespace: str = "default") -> str:
        """Return why a pod has no node."""
        pod = self.pod(name, namespace)
        return _refusal(pod) if pod is not None else ""

    def is_decided(self, pod: Pod | None) -> bool:
        """Whether a pod has a node and all its claims are known here, or has a word why not."""
        if pod is None:
            return False
        if pod.spec.node_name:
            claims = self.claims_of(pod)
            wanted = len(pod.spec.resource_claims)
            return len(claims) >= wanted and all(c.status.allocation is not None for c in claims)
        return bool(_refusal(pod))

    def _are_decided(self, owner: str, replicas: int) -> bool:
        found = self.pods_of(f"{owner}-")
        return len(found) == replicas and all(map(self.is_decided, found))

    async def events(self, reason: str) -> list[Event]:
        """Return the events with a reason, once there is one."""
        for _ in range(500):
            page = await self.cluster.admin.list(Event, fields=f"reason={reason}")
            if page.values:
                return list(page.values)
            await asyncio.sleep(0.01)
        raise AssertionError(f"no event {reason}")

    # --- acting ---------------------------------------------------------------------------------

    async def delete(self, struct: type[Any], name: str, namespace: str = "default") -> None:
        grace_s = 0 if struct is Pod else None
        await self.cluster.admin.write(Delete(Target(struct, namespace, name), grace_s=grace_s))

    async def phase(self, name: str, phase: str, namespace: str = "default") -> None:
        """Play the kubelet: a pod runs, succeeds or fails."""
        target = Target(Pod, namespace, name)
        await self.cluster.admin.write(Patch(target, {"status": {"phase": phase}}, "status"))

    async def bound(self, name: str, namespace: str = "default") -> Pod:
        """Wait until a pod has a node and its devices, and return it."""

        def check() -> Pod | None:
            pod = self.pod(name, namespace)
            is_bound = pod is not None and pod.spec.node_name and self.is_decided(pod)
            return pod if is_bound else None

        return await arrives(check)


def play(
    folder: Path,
    act: Callable[[Stage], Coroutine[Any, Any, T]],
    *,
    gates: Gates | None = None,
    config: SchedulerConfig | None = None,
    clock: Clock = REAL,
    server: Gates | None = None,
) -> T:
    """Run an act on a stage whose data is in a folder; the data stays for another act.

    `server` has the gates of the server, where they are not those of the other programs.
    """

    async def run() -> T:
        around = ProgramContext(gates or Gates.parse(), clock)
        async with (
            asyncio.timeout(PLAY_S_MAX),
            embedded(folder, around, config=config, server_gates=server) as cluster,
        ):
            return await act(Stage(cluster))

    return asyncio.run(run())


async def arrives(check: Callable[[], T | None]) -> T:
    """Return what a check finds, once it finds something."""
    found = await until(check)
    assert found is not None
    return found


def trees_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the manifests of a file."""
    for document in read(path.read_bytes(), source=str(path)):
        for item in expand_lists(document):
            assert isinstance(item.tree, dict)
            yield item.tree


def profile_trees(name: str, form: str) -> Iterator[dict[str, Any]]:
    """Yield the nodes, slices and classes of machines of a profile."""
    fleet = Catalogue().fleet(name, NumaNodeForm[form.upper()])
    for each in (*fleet.nodes, *fleet.classes, *fleet.slices):
        yield to_tree(each)


def kind_of(tree: dict[str, Any]) -> Kind:
    wanted = (tree["apiVersion"], tree["kind"])
    return next(kind for kind in KINDS if (kind.api_version, kind.name) == wanted)


def path_of(kind: Kind, namespace: str, name: str = "", part: str = "") -> str:
    base = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
    space = f"/namespaces/{quote(namespace)}" if kind.namespaced else ""
    return f"{base}{space}/{kind.plural}" + "".join(
        f"/{quote(each)}" for each in (name, part) if each
    )


def given_by(claim: ResourceClaim) -> Iterator[Given]:
    allocation = claim.status.allocation
    for each in allocation.devices.results if allocation is not None else ():
        consumed = {str(key): str(value) for key, value in (each.consumed_capacity or {}).items()}
        yield Given(
            each.request,
            each.driver,
            each.pool,
            each.device,
            each.share_id or "",
            consumed,
            bool(each.admin_access),
        )


def reserved(claim: ResourceClaim) -> list[tuple[str, str]]:
    return [(each.resource, each.name) for each in claim.status.reserved_for]


def placed(tree: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return a manifest in its namespace, without what a server gives out itself."""
    metadata = {k: v for k, v in tree["metadata"].items() if k not in ("uid", "creationTimestamp")}
    if kind_of(tree).namespaced:
        metadata.setdefault("namespace", namespace)
    return {**tree, "metadata": metadata}


_FIRST = ("Namespace", "Node", "DeviceClass", "PriorityClass", "ResourceQuota")
_LAST = {"Pod": 2, **dict.fromkeys(WORKLOADS, 4)}


def _turn(tree: dict[str, Any]) -> int:
    """Return when a manifest has its turn: a pod after what it names, a status after its pods."""
    if tree["kind"] in _FIRST:
        return -1
    if tree["kind"] == "ResourceClaim" and "status" in tree:
        return 3
    if tree["kind"] == "Pod" and "nodeName" in tree["spec"]:
        return 1
    return _LAST.get(tree["kind"], 0)


def _unused(trees: list[dict[str, Any]]) -> Iterator[Pod]:
    """Yield pods for claims and templates that no pod, group or workload of the manifests names."""
    entries = [
        (tree["metadata"].get("namespace"), entry) for tree in trees for entry in _entries(tree)
    ]
    used = {
        (space, kind, entry.get(key))
        for space, entry in entries
        for kind, key in (
            ("ResourceClaim", "resourceClaimName"),
            ("ResourceClaimTemplate", "resourceClaimTemplateName"),
        )
    }
    structs: dict[str, type[Any]] = {
        "ResourceClaim": ResourceClaim,
        "ResourceClaimTemplate": ResourceClaimTemplate,
    }
    for tree in trees:
        kind, metadata = tree["kind"], tree["metadata"]
        key = (metadata.get("namespace"), kind, metadata.get("name"))
        if kind in structs and key not in used and "status" not in tree:
            names = {key: metadata[key] for key in ("name", "namespace")}
            pod = stand_in(decode_tree({"metadata": names}, structs[kind]).value)
            container = replace(pod.spec.containers[0], image="registry.example.com/app")
            spec = replace(pod.spec, containers=(container,))
            yield replace(pod, spec=spec, metadata=replace(pod.metadata, uid=""))


def _entries(tree: dict[str, Any]) -> list[dict[str, Any]]:
    spec = tree.get("spec") or {}
    if tree["kind"] in WORKLOADS:
        spec = spec["template"]["spec"]
    return spec.get("resourceClaims") or []


def _refusal(pod: Pod) -> str:
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""
