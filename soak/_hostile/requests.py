"""Hostile requests: verbs, paths, options, headers and streams by every user.

Most are whole HTTP requests to paths that the server knows, so that bodies come through to where
objects are decoded, validated, patched, stored and acted upon; some are tricks with the path or
with HTTP itself. Seed, case and worker decide the sequence of requests.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

from moorage.api.kinds import Kind
from moorage.apiserver.resources import REVIEWS
from soak._damage import damaged_bytes
from soak._hostile.bodies import NAMES, Bodies, json_bytes
from soak._hostile.objects import CLUSTER_SCOPED, KINDS, NAMESPACED
from soak._hostile.users import CANARY, EVIL_NODE, QUIET, QUOTAS, TENANTS, User
from soak._hostile.values import INTEGERS, pick
from soak._requests import ACCEPTS, APPLY, HEADERS, JSON, METHODS, ODD_REQUESTS, WORDS, some_query

FOREIGN = (QUIET, QUIET, "hostile-a", "hostile-b", "kube-system", "default", "nowhere", "")
SUBRESOURCES = (
    *("status", "status", "status", "scale", "eviction", "binding", "token", "finalize", "resize"),
    *("ephemeralcontainers", "log", "proxy", "exec", "approval", "x", ".."),
)
STREAMS = ("exec", "attach", "log", "portforward", "proxy", "proxy/x/../y")
_WEBSOCKET = "Connection: Upgrade\r\nUpgrade: websocket\r\n"
_KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
UPGRADES = (
    "",
    "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n",
    f"{_WEBSOCKET}{_KEY}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n",
    f"{_WEBSOCKET}Sec-WebSocket-Version: 1\r\nSec-WebSocket-Key: x\r\n",
    "Connection: Upgrade\r\nUpgrade: x\r\n",
)
STREAM_QUERIES = (
    "command=true&stdout=1", "command=true&stdout=1&stdin=1&tty=1", "command=", "",
    "container=../x", "command=sh&command=-c&command=exit+3&stdout=1&stderr=1",
    "container=main&stdout=1&command=nowhere",
    "container=main&previous=true", "tailLines=-1", "tailLines=99999999999999999999",
    "limitBytes=0",
    "sinceSeconds=9223372036854775807", "sinceTime=10000-01-01T00:00:00Z", "timestamps=x",
    "follow=x",
    "container=%00", "ports=0&ports=x", "stream=x", "tailLines=1&limitBytes=1&timestamps=true",
)  # fmt: skip
NODE_KINDS = frozenset(
    {"Node", "Pod", "Lease", "ResourceSlice", "ResourceClaim", "Event", "Secret"}
)
NODE_SHARED = tuple(kind for kind in KINDS if kind.name in NODE_KINDS)
QUOTA = next(kind for kind in KINDS if kind.name == "ResourceQuota")
OPTION_NAMES = ("gracePeriodSeconds", "timeoutSeconds", "limit", "resourceVersion")
SEVERAL = User("several", own=(*TENANTS, QUOTAS))  # requests of more than one user in a row
FRESH = 500  # names of objects that mostly do not exist
TAIL = "Host: localhost\r\n"


class Attack(NamedTuple):
    """A request as bytes, and the facts that the laws need.

    shape      whole: one answer is due; watch, stream: an answer that may go on; odd: anything
    kind       None where the path is no plain path of a kind
    """

    data: bytes
    user: User
    method: str = ""
    path: str = ""
    shape: str = "whole"
    kind: Kind | None = None
    namespace: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether the path says whose objects are meant."""
        return self.kind is not None


class Requests:
    """Makes the requests of a case."""

    def __init__(self, bodies: Bodies, users: tuple[User, ...]) -> None:
        self._bodies = bodies
        self._users = tuple(user for user in users for _ in range(user.share))
        makers: tuple[tuple[Callable[[Random], Attack], int], ...] = (
            (self._write, 34),
            (self._patch, 22),
            (self._part, 10),
            (self._read, 13),
            (self._delete, 8),
            (self._review, 3),
            (self._words, 4),
            (self._odd, 2),
            (self._stream, 2),
            (self._watch, 2),
        )
        self._makers = tuple(maker for maker, share in makers for _ in range(share))

    def renew(self, users: tuple[User, ...]) -> None:
        """Take new tokens of the users."""
        self._users = tuple(user for user in users for _ in range(user.share))

    def make(self, random: Random) -> Attack:
        """Return the next request."""
        return pick(random, self._makers)(random)

    # --- whole requests -----------------------------------------------------------------------

    def _target(self, random: Random) -> tuple[User, Kind, str]:
        """Return who attacks, and what: mostly where they may."""
        user = pick(random, self._users)
        if user.name == "node":
            kinds = NODE_SHARED
        elif user.name == "operator":
            kinds = CLUSTER_SCOPED if random.random() < 0.85 else KINDS
        else:
            kinds = NAMESPACED if random.random() < 0.9 else KINDS
        kind = pick(random, kinds)
        if not kind.namespaced:
            return user, kind, ""
        namespace = pick(random, user.own or FOREIGN)
        if random.random() < 0.15:
            namespace = pick(random, FOREIGN)
        if namespace == QUOTAS:
            kind = QUOTA
        return user, kind, namespace

    def _name(self, random: Random, user: User, namespace: str) -> str:
        if user.name == "node" and random.random() < 0.6:
            return EVIL_NODE
        if namespace not in user.own and random.random() < 0.5:
            return CANARY
        if random.random() < 0.04:
            return quote(
                self._bodies.grammar.lexicon.string(random).encode(errors="replace"), safe=""
            )
        return pick(random, NAMES)

    def _write(self, random: Random) -> Attack:
        user, kind, namespace = self._target(random)
        is_create = random.random() < 0.65
        name = self._name(random, user, namespace)
        if is_create and name in NAMES and random.random() < 0.7:
            name = f"n{int(random.random() * FRESH)}"
        body_name = name if random.random() < 0.95 else CANARY
        data, media = self._bodies.object_body(random, kind, namespace, body_name[:300])
        path = _path(kind, namespace, "" if is_create else name)
        return self._whole(
            random, user, "POST" if is_create else "PUT", path, data, media, kind, namespace
        )

    def _patch(self, random: Random) -> Attack:
        user, kind, namespace = self._target(random)
        name = self._name(random, user, namespace)
        data, media = self._bodies.patch_body(random, kind, namespace, name[:300])
        path = _path(kind, namespace, name)
        if kind.has_status and random.random() < 0.25:
            path += "/status"
        first = "fieldManager=m&force=true" if media == APPLY and random.random() < 0.9 else ""
        return self._whole(random, user, "PATCH", path, data, media, kind, namespace, first=first)

    def _part(self, random: Random) -> Attack:
        user, kind, namespace = self._target(random)
        name = self._name(random, user, namespace)
        part = "status" if kind.has_status and random.random() < 0.6 else pick(random, SUBRESOURCES)
        method = pick(random, ("POST", "PUT", "PUT", "PATCH", "GET"))
        data, media = b"", JSON
        if method == "PATCH":
            data, media = self._bodies.patch_body(random, kind, namespace, name[:300])
        elif method != "GET":
            data, media = self._part_body(random, part, kind, namespace, name[:300])
        path = f"{_path(kind, namespace, name)}/{part}"
        is_known = kind if part != ".." else None
        return self._whole(random, user, method, path, data, media, is_known, namespace)

    def _part_body(
        self, random: Random, part: str, kind: Kind, namespace: str, name: str
    ) -> tuple[bytes, str]:
        trees: dict[str, Any] = {
            "scale": {"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": {"replicas": 1}},
            "eviction": {"kind": "Eviction", "apiVersion": "policy/v1", "deleteOptions": {}},
            "binding": {"kind": "Binding", "apiVersion": "v1", "target": {"name": EVIL_NODE}},
            "token": {
                "kind": "TokenRequest",
                "apiVersion": "authentication.k8s.io/v1",
                "spec": {"audiences": ["x"], "expirationSeconds": 600},
            },
        }
        tree = trees.get(part)
        if tree is None:
            return self._bodies.object_body(random, kind, namespace, name)
        tree = json.loads(json.dumps(tree))
        tree["metadata"] = {"name": name if random.random() < 0.8 else CANARY}
        for holder in (tree, tree.get("spec"), tree.get("deleteOptions"), tree.get("target")):
            if isinstance(holder, dict) and random.random() < 0.3:
                key = pick(
                    random, [*holder, "gracePeriodSeconds", "replicas", "name", "preconditions"]
                )
                is_number = random.random() < 0.5
                lexicon = self._bodies.grammar.lexicon
                holder[key] = pick(random, INTEGERS) if is_number else lexicon.string(random)
        return json_bytes(random, tree), JSON

    def _read(self, random: Random) -> Attack:
        user, kind, namespace = self._target(random)
        name = self._name(random, user, namespace) if random.random() < 0.4 else ""
        path = _path(kind, namespace, name)
        method = "GET" if random.random() < 0.9 else "HEAD"
        return self._whole(random, user, method, path, kind=kind, namespace=namespace, options=0.8)

    def _delete(self, random: Random) -> Attack:
        user, kind, namespace = self._target(random)
        name = self._name(random, user, namespace) if random.random() < 0.85 else ""
        if kind.name == "RoleBinding" and not name:
            name = "a"  # else tenants would take their own rights away
        data = b""
        if random.random() < 0.6:
            lexicon = self._bodies.grammar.lexicon
            tree: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
            tree |= pick(
                random,
                (
                    {"gracePeriodSeconds": pick(random, INTEGERS)},
                    {
                        "propagationPolicy": pick(
                            random, ("Foreground", "Orphan", "Background", "x")
                        )
                    },
                    {"preconditions": {"uid": lexicon.string(random), "resourceVersion": "1"}},
                    {"orphanDependents": True, "propagationPolicy": "Orphan"},
                    {"dryRun": pick(random, ("All", ["All"], ["x"], [1], 1))},
                    {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
                ),
            )
            data = json_bytes(random, tree)
        return self._whole(
            random,
            user,
            "DELETE",
            _path(kind, namespace, name),
            data,
            kind=kind,
            namespace=namespace,
        )

    def _review(self, random: Random) -> Attack:
        user, review = pick(random, self._users), pick(random, REVIEWS)
        lexicon = self._bodies.grammar.lexicon
        attributes = {"verb": "get", "resource": "pods", "namespace": pick(random, FOREIGN)}
        spec: dict[str, Any] = {
            "resourceAttributes": attributes,
            "user": pick(random, ("x", "", 1, "system:admin")),
            "groups": ["x", lexicon.string(random)],
            "token": lexicon.string(random),
            "nonResourceAttributes": {"path": lexicon.string(random), "verb": "get"},
            "namespace": pick(random, FOREIGN),
            "extra": {"a": [lexicon.string(random)]},
        }
        kept = {key: value for key, value in spec.items() if random.random() < 0.4}
        api_version = f"{review.group}/{review.version}"
        tree = {"apiVersion": api_version, "kind": review.kind, "spec": kept}
        within = f"/namespaces/{pick(random, FOREIGN)}" if review.namespaced else ""
        path = f"/apis/{api_version}{within}/{review.plural}"
        return self._whole(random, user, "POST", path, json_bytes(random, tree))

    def _words(self, random: Random) -> Attack:
        words = [pick(random, WORDS) for _ in range(int(random.random() * 8))]
        path = "/" + "/".join(words)
        if random.random() < 0.5:
            tricks = (
                "%2f..%2f",
                "/../",
                "//",
                "/./",
                "%00",
                "%2e%2e/",
                ";x=y/",
                "%252f",
                "\\",
                "%0d%0aX:1",
            )
            _, kind, namespace = self._target(random)
            plain = _path(kind, namespace, pick(random, (CANARY, "a")))
            at = int(random.random() * len(plain))
            path = plain[:at] + pick(random, tricks) + plain[at:]
        data = pick(random, (b"", b"", b"{}", b"[]", b"null", b"\x00", b"k8s\x00", b"a: b"))
        return self._whole(random, pick(random, self._users), pick(random, METHODS), path, data)

    # --- what may go on, and what is hardly HTTP ----------------------------------------------

    def _watch(self, random: Random) -> Attack:
        user, kind, namespace = self._target(random)
        path, first = _path(kind, namespace, ""), "watch=1&timeoutSeconds=1"
        found = self._whole(
            random, user, "GET", path, kind=kind, namespace=namespace, options=0.6, first=first
        )
        return found._replace(shape="watch")

    def _stream(self, random: Random) -> Attack:
        user = pick(random, self._users)
        namespace = pick(random, user.own or FOREIGN) if random.random() < 0.8 else QUIET
        name = pick(random, NAMES) if namespace != QUIET else CANARY
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/{pick(random, STREAMS)}"
        method = pick(random, ("GET", "POST"))
        head = (
            f"{method} {path}?{pick(random, STREAM_QUERIES)} HTTP/1.1\r\n{TAIL}{user.authorization}"
        )
        data = f"{head}{pick(random, UPGRADES)}Content-Length: 0\r\n\r\n".encode(
            "latin-1", "replace"
        )
        if random.random() < 0.5:
            data += bytes(int(random.random() * 256) for _ in range(40))
        return Attack(data, user, method, path, "stream")

    def _odd(self, random: Random) -> Attack:
        user = pick(random, self._users)
        if random.random() < 0.4:
            return Attack(pick(random, ODD_REQUESTS), user, shape="odd")
        whole = self._write(random)
        data = whole.data
        match int(random.random() * 5):
            case 0:
                data = data[: int(random.random() * len(data))]
            case 1:  # several at once, of one user and another
                data = data + self._read(random).data + self._write(random).data
                return Attack(data, SEVERAL, whole.method, whole.path, "odd")
            case 2:
                inner = self._read(random).data
                data = data.replace(
                    b"Content-Length: ", b"Transfer-Encoding: chunked\r\nContent-Length: ", 1
                )
                return Attack(data + inner, SEVERAL, whole.method, whole.path, "odd")
            case 3:
                data = data.replace(TAIL.encode(), b"X: " + b"y" * 70_000 + b"\r\n", 1)
            case _:
                data = damaged_bytes(random, data)
        return Attack(data, whole.user, whole.method, whole.path, "odd")

    def _whole(
        self, random: Random, user: User, method: str, path: str, data: bytes = b"",
        media: str = JSON,
        kind: Kind | None = None, namespace: str = "", options: float = 0.15, first: str = "",
    ) -> Attack:  # fmt: skip
        """Return a whole request, with random options and headers."""
        query = [first] if first else []
        if random.random() < options:
            pairs = some_query(random)
            if random.random() < 0.2:
                pairs = (*pairs, (pick(random, OPTION_NAMES), str(pick(random, INTEGERS))))
            query += [f"{quote(k.encode('latin-1', 'replace'))}={quote(v)}" for k, v in pairs]
        lines = [f"{method} {path}{'?' if query else ''}{'&'.join(query)} HTTP/1.1\r\n", TAIL]
        lines += [user.authorization, user.more]
        is_plain = random.random() < (0.7 if method == "GET" else 0.95)
        lines.append(f"Accept: {JSON if is_plain else pick(random, ACCEPTS)}\r\n")
        if random.random() < 0.06:
            name, values = pick(random, HEADERS)
            value = pick(random, tuple(values))
            if (name, value) == ("Content-Encoding", "gzip") and random.random() < 0.7:
                data = gzip.compress(data, 1, mtime=0)
            if name != "Authorization" or user.authorization == "":
                lines.append(f"{name}: {value}\r\n")
        if data:
            lines.append(f"Content-Type: {media}\r\n")
        if data and random.random() < 0.05:
            lines.append("Transfer-Encoding: chunked\r\n\r\n")
            data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
        else:
            lines.append(f"Content-Length: {len(data)}\r\n\r\n")
        head = "".join(lines).encode("latin-1", "replace")
        is_watch = any(each.startswith("watch=") for each in query)
        return Attack(
            head + data, user, method, path, "watch" if is_watch else "whole", kind, namespace
        )


def _path(kind: Kind, namespace: str, name: str) -> str:
    start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    within = f"/namespaces/{namespace}" if kind.namespaced and namespace else ""
    return f"{start}{within}/{kind.plural}" + (f"/{name}" if name else "")
