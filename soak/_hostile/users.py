"""Who attacks, what they may do, and the canaries that they must neither see nor change.

    tenant-a, tenant-b  may do everything in a namespace of theirs, but write its quotas
    account             a service account of tenant-a, with the role `edit`
    operator            makes objects of the cluster, and changes those with hostile names
    node                system:node:evil, which nobody runs
    bootstrap           a bootstrap token
    impersonator        a user without rights, who says that it is somebody else
    forger              tokens that nobody signed
    anonymous           nobody
    quiet               the good one, whose namespace none of the others may see

Each canary has a marker, a text that is random, in its name or in its content. An answer with the
marker of a namespace that is not the user's own is a leak.
"""

from __future__ import annotations

import base64
from random import Random
from typing import Any, NamedTuple

from soak._hostile.objects import CLUSTER_SCOPED, NAMESPACED
from soak._http import Connection

QUIET = "quiet"
CANARY = "canary"
EVIL_NODE = "evil"
TENANTS = ("hostile-a", "hostile-b")
QUOTAS = "hostile-q"  # where a tenant may write quotas
MARK = b"zq7"  # all markers begin with it
GROUP = "rbac.authorization.k8s.io"
SUBRESOURCES = (
    *("pods/status", "pods/binding", "pods/eviction", "pods/exec", "pods/attach", "pods/log"),
    *("pods/resize", "pods/ephemeralcontainers", "pods/portforward", "pods/proxy"),
    *("serviceaccounts/token", "localsubjectaccessreviews"),
)
READ = ["get", "list", "watch"]
CHANGE = ["update", "patch", "delete", "get"]
# What an operator may not change: everything that gives rights or reaches others' pods.
NOT_FOR_OPERATORS = frozenset({"clusterrolebindings"})

Tree = dict[str, Any]


class User(NamedTuple):
    """A user, by the headers of their requests."""

    name: str
    authorization: str = ""
    own: tuple[str, ...] = ()  # namespaces
    share: int = 1  # of the requests
    more: str = ""  # further headers
    roams: frozenset[str] = frozenset()  # resources that it may use everywhere

    def may(self, plural: str, namespace: str) -> bool:
        """Return whether an answer about these objects may be a success."""
        return namespace in self.own or plural in self.roams


def token_of(random: Random, name: str) -> str:
    """Return a static token."""
    return f"{name}-{random.getrandbits(96):024x}"


def token_file(tokens: dict[str, str]) -> str:
    """Return the lines of the server's file of tokens."""
    names = {"node": (f"system:node:{EVIL_NODE}", "system:nodes")}
    lines = []
    for user, token in tokens.items():
        name, groups = names.get(user, (user, ""))
        lines.append(f'{token},{name},uid-{user},"{groups}"\n')
    return "".join(lines)


STATIC = ("tenant-a", "tenant-b", "operator", "node", "impersonator", QUIET)


def users_of(tokens: dict[str, str], account: str, bootstrap: str) -> tuple[User, ...]:
    """Return the hostile users."""

    def bearer(token: str) -> str:
        return f"Authorization: Bearer {token}\r\n"

    # A node makes mirror pods and events, and renews its lease; NodeRestriction says which.
    of_nodes = {"pods", "events", "leases", "nodes", "resourceslices", "runtimeclasses"}
    of_cluster = {kind.plural for kind in CLUSTER_SCOPED}
    masters = "Impersonate-User: x\r\nImpersonate-Group: system:masters\r\n"
    return (
        User("tenant-a", bearer(tokens["tenant-a"]), ("hostile-a", "hostile-a", QUOTAS), 9),
        User("tenant-b", bearer(tokens["tenant-b"]), ("hostile-b",), 7),
        User("account", bearer(account), ("hostile-a",), 3),
        User("operator", bearer(tokens["operator"]), (), 5, roams=frozenset(of_cluster)),
        User("node", bearer(tokens["node"]), ("kube-node-lease",), 3, roams=frozenset(of_nodes)),
        User("bootstrap", bearer(bootstrap), (), 1),
        User("impersonator", bearer(tokens["impersonator"]), (), 1, masters),
        User("forger", bearer("eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."), (), 1),
        User("anonymous", "", (), 1),
    )


# --- rights ---------------------------------------------------------------------------------------


def _named(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Tree:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def rights() -> list[tuple[str, Tree]]:
    """Return namespaces, roles and bindings, each with the path to create it at."""
    made: list[tuple[str, Tree]] = [
        ("/api/v1/namespaces", _named("v1", "Namespace", name))
        for name in (*TENANTS, QUOTAS, QUIET)
    ]
    resources = sorted({kind.plural for kind in NAMESPACED} - {"resourcequotas"})
    parts = sorted({f"{kind.plural}/status" for kind in NAMESPACED if kind.has_status})
    parts += [f"{name}/scale" for name in ("deployments", "replicasets", "statefulsets")]
    everything = [*resources, *(set(parts) - {"resourcequotas/status"}), *SUBRESOURCES]
    tenant = [
        {"apiGroups": ["*"], "resources": everything, "verbs": ["*"]},
        {"apiGroups": [""], "resources": ["resourcequotas"], "verbs": READ},
    ]
    quotas = [{"apiGroups": [""], "resources": ["resourcequotas", "configmaps"], "verbs": ["*"]}]
    plurals = sorted({kind.plural for kind in CLUSTER_SCOPED} - NOT_FOR_OPERATORS)
    parts = [f"{kind.plural}/status" for kind in CLUSTER_SCOPED if kind.has_status]
    operator = [
        {"apiGroups": ["*"], "resources": plurals, "verbs": ["create", *READ]},
        {
            "apiGroups": ["*"],
            "resources": [*plurals, *parts],
            "verbs": CHANGE,
            "resourceNames": ["a", "b", "c", "d"],
        },
    ]
    for name, rules in (("tenant", tenant), ("quotas", quotas), ("operator", operator)):
        role = _named(f"{GROUP}/v1", "ClusterRole", f"soak-{name}", rules=rules)
        made.append((f"/apis/{GROUP}/v1/clusterroles", role))
    users = (("tenant-a", TENANTS[0], "soak-tenant"), ("tenant-b", TENANTS[1], "soak-tenant"),
             (QUIET, QUIET, "soak-tenant"), ("tenant-a", QUOTAS, "soak-quotas"))  # fmt: skip
    for user, namespace, role_name in users:
        made.append(
            _binding(namespace, role_name, {"kind": "User", "name": user, "apiGroup": GROUP})
        )
    account = {"kind": "ServiceAccount", "name": "worker", "namespace": TENANTS[0]}
    made.append(
        (
            "/api/v1/namespaces/hostile-a/serviceaccounts",
            _named("v1", "ServiceAccount", "worker", TENANTS[0]),
        )
    )
    made.append(_binding(TENANTS[0], "edit", account))
    made.append(
        _binding("", "soak-operator", {"kind": "User", "name": "operator", "apiGroup": GROUP})
    )
    for namespace in TENANTS:
        spec = {"hard": {"pods": "30", "count/jobs.batch": "30", "count/secrets": "60"}}
        quota = _named("v1", "ResourceQuota", "limit", namespace, spec=spec)
        made.append((f"/api/v1/namespaces/{namespace}/resourcequotas", quota))
    return made


def _binding(namespace: str, role: str, subject: Tree) -> tuple[str, Tree]:
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": role}
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    binding = _named(f"{GROUP}/v1", kind, role, namespace, roleRef=reference, subjects=[subject])
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{GROUP}/v1{within}/{kind.lower()}s", binding


def bootstrap_secret(token: str) -> Tree:
    """Return the secret of a bootstrap token."""
    name, _, secret = token.partition(".")
    data = {"token-id": name, "token-secret": secret, "usage-bootstrap-authentication": "true"}
    found = _named("v1", "Secret", f"bootstrap-token-{name}", "kube-system", stringData=data)
    return {**found, "type": "bootstrap.kubernetes.io/token"}


# --- canaries -------------------------------------------------------------------------------------


class Canaries:
    """Objects with markers, by namespace, and how they were when they were made."""

    def __init__(self, random: Random) -> None:
        self.markers = {
            namespace: f"{MARK.decode()}{namespace[-1]}{random.getrandbits(64):016x}"
            for namespace in (*TENANTS, QUIET)
        }
        self._made: dict[str, Tree] = {}  # those that nobody hostile may change

    def foreign_to(self, user: User) -> tuple[bytes, ...]:
        """Return the texts that must not be in an answer to a user."""
        foreign = [mark for namespace, mark in self.markers.items() if namespace not in user.own]
        encoded = [base64.b64encode(mark.encode()).rstrip(b"=")[:-1] for mark in foreign]
        return (*(mark.encode() for mark in foreign), *encoded)

    def _objects(self, namespace: str) -> list[tuple[str, Tree]]:
        mark = self.markers[namespace]
        notes: Tree = {"annotations": {"note": mark}, "labels": {"mark": mark}}
        container = {"name": "main", "image": mark, "command": ["sleep", mark]}
        gates = [{"name": "never.example.com/x"}]
        claim = {"devices": {"requests": [{"name": mark, "exactly": {"deviceClassName": mark}}]}}
        content: tuple[tuple[str, str, str, Tree], ...] = (
            ("v1", "ConfigMap", "configmaps", {"data": {"k": mark}}),
            ("v1", "Secret", "secrets", {"stringData": {"k": mark}}),
            ("v1", "Pod", "pods", {"spec": {"containers": [container], "schedulingGates": gates}}),
            ("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", {"spec": claim}),
        )
        found = []
        for api_version, kind, plural, fields in content:
            root = "/api/v1" if api_version == "v1" else f"/apis/{api_version}"
            path = f"{root}/namespaces/{namespace}/{plural}"
            for name in (CANARY, mark):
                tree = _named(api_version, kind, name, namespace, **fields)
                tree["metadata"] |= notes
                found.append((path, tree))
        return found

    async def put(self, connection: Connection, namespace: str) -> None:
        """Create the canaries of a namespace that are not there."""
        for path, tree in self._objects(namespace):
            reply = await connection.ask("POST", path, tree)
            # Hostile quotas of a tenant, or its own finalizers, may be in the way.
            assert reply.status in (201, 409, 403), reply
            if namespace == QUIET and reply.status == 201:
                self._made[f"{path}/{tree['metadata']['name']}"] = reply.json

    async def put_all(self, connection: Connection) -> None:
        """Create all canaries, and one without a namespace."""
        for namespace in self.markers:
            await self.put(connection, namespace)
        for plural, kind, spec in (
            ("deviceclasses", "DeviceClass", {}),
            ("resourceslices", "ResourceSlice", {
                "driver": "canary.example.com", "nodeName": "nowhere",
                "pool": {"name": CANARY, "generation": 1, "resourceSliceCount": 1},
            }),
        ):  # fmt: skip
            path = f"/apis/resource.k8s.io/v1/{plural}"
            reply = await connection.ask(
                "POST", path, _named("resource.k8s.io/v1", kind, CANARY, spec=spec)
            )
            assert reply.status == 201, reply
            self._made[f"{path}/{CANARY}"] = reply.json

    async def check(self, connection: Connection) -> list[str]:
        """Return which canaries are not as they were made."""
        found = []
        for path, made in self._made.items():
            reply = await connection.ask("GET", path)
            if reply.status != 200:
                found.append(f"{path}: {reply.status} {reply.body[:300]!r}")
                continue
            now = reply.json
            same = all(
                now["metadata"][key] == made["metadata"][key]
                for key in ("uid", "creationTimestamp")
            )
            is_pod = made["kind"] == "Pod"  # its conditions are the scheduler's
            if is_pod:
                same = same and now["spec"] == made["spec"]
            elif not same or now != made:
                same = False
            if not same:
                found.append(f"{path}: was {made}, is {now}")
        return found
