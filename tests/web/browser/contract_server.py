"""A server that answers the page's questions about an invented fleet, the same on every machine.

For tests of the page alone: of any size, in any state, with events that a test sends. Answers have
the form of docs/reference/page-protocol.md; tests of the whole run against `moorage.web`.
"""

from __future__ import annotations

import gzip
import json
import queue
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from moorage.web.columns import encode
from moorage.web.questions.paint import CLASS, NODE, QUESTIONS, TAINT, TAKEN, WOULD_DO

STATIC = Path(__file__).parents[3] / "src" / "moorage" / "web" / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NOW = 1_769_860_800
TIME = "2026-01-31T12:00:00Z"

Answer: TypeAlias = dict[str, Any]


class Strings:
    """Names as numbers, in the order in which they were first used."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def table(columns: str) -> dict[str, list[int]]:
    """Return empty columns of the names."""
    return {name: [] for name in columns.split()}


def add(rows: dict[str, list[int]], **values: int) -> int:
    """Add a row and return its number."""
    number = len(next(iter(rows.values())))
    for name, column in rows.items():
        column.append(values[name])
    return number


def fleet_of(nodes: int, pending: int = 3, gpus: int = 4, nics: int = 4) -> Answer:
    """Return a fleet: GPUs and NICs on two NUMA nodes, of which about two thirds are held."""
    text = Strings()
    fleet: Answer = {
        "nodes": table("name zone state devices"),
        "devices": table("node driver pool name numa root state used parent claims"),
        "holdings": table("device claim share"),
        "claims": table("namespace name created pod"),
        "pods": table("namespace name node state created group"),
    }
    for node in range(nodes):
        _add_node(fleet, text, node, gpus, nics)
    groups = _add_pending(fleet, text, pending)
    strings = list(text.numbers)
    return {"revision": 1000, "time": TIME, "strings": strings, **fleet, "groups": groups}


def _add_node(fleet: Answer, text: Strings, node: int, gpus: int, nics: int) -> None:
    name = f"node-{node}"
    state = 2 if node % 37 == 36 else 0
    add(
        fleet["nodes"],
        name=text(name),
        zone=text(f"zone-{node % 3}"),
        state=state,
        devices=gpus + nics,
    )
    mix = (node * 7919 + node // 5 + 3) % 11
    pod = -1
    for index in range(gpus + nics):
        is_gpu = index % 2 == 0 if gpus == nics else index < gpus
        number = index // 2 if gpus == nics else index if is_gpu else index - gpus
        half = index * 2 // (gpus + nics)
        held = (is_gpu and number < mix % (gpus + 1)) or (not is_gpu and number < mix % 3)
        state = 1 if held else 4 if (node % 23 == 22 and is_gpu) else 0
        is_shared = state == 1 and is_gpu and node % 9 == 4 and number == 0
        device = add(
            fleet["devices"],
            node=node,
            driver=text("gpu.example.com" if is_gpu else "nic.example.com"),
            pool=text(name),
            name=text(f"{'gpu' if is_gpu else 'nic'}-{number}"),
            numa=half,
            root=text(f"pci0000:{half}{index // 2 % 4}"),
            state=2 if is_shared else state,
            used=500 if is_shared else 1000 if state == 1 else 0,
            parent=-1,
            claims=1 if held else 0,
        )
        if held:
            if pod < 0 or number == 2:
                pod = _add_pod(fleet, text, node, f"train-{node}-{number}")
            claims, pods = fleet["claims"], fleet["pods"]
            claim = add(
                claims,
                namespace=pods["namespace"][pod],
                name=text(f"train-{node}-{number}-{'gpu' if is_gpu else 'nic'}"),
                created=NOW - 60 * (node * 13 % 20000),
                pod=pod,
            )
            share = 500 if is_shared else 1000
            add(fleet["holdings"], device=device, claim=claim, share=share)


def _add_pod(fleet: Answer, text: Strings, node: int, name: str, group: int = -1) -> int:
    namespace = ("research", "vision", "search", "default")[(node + group) % 4]
    return add(
        fleet["pods"],
        namespace=text(namespace),
        name=text(name),
        node=node,
        state=0 if node < 0 else 2,
        created=NOW - 300 - 60 * len(name),
        group=group,
    )


CAUSES = [
    (
        (
            "request gpus wants 3 devices with one resource.kubernetes.io/numaNode, "
            "but of the free ones at most 2 have the same (numaNode 0)"
        ),
        "3 gpu.example.com",
    ),
    (
        "request gpu: no device satisfies device.attributes['gpu.example.com'].model == 'H200'",
        "1 gpu.example.com",
    ),
    ("request big wants 8 devices on one node; nodes have at most 4", "8 gpu.example.com"),
]


def _add_pending(fleet: Answer, text: Strings, count: int) -> list[Answer]:
    groups: list[Answer] = []
    for number in range(count):
        group = min(number % 5, 2)
        pod = _add_pod(fleet, text, -1, f"wait-{number}", group)
        if group >= len(groups):
            cause, wants = CAUSES[group]
            groups.append({"cause": cause, "count": 0, "first": pod, "wants": wants})
        groups[group]["count"] += 1
    return groups


# --- answers ----------------------------------------------------------------------------------


def sent(fleet: Answer) -> Answer:
    """Return the fleet as it is sent."""
    return {
        key: {name: encode(column) for name, column in value.items()}
        if isinstance(value, dict)
        else value
        for key, value in fleet.items()
    }


def explanation(fleet: Answer) -> Answer:
    """Return why a pod waits: its funnel narrows to devices that do not fit together."""
    devices = fleet["devices"]
    strings = fleet["strings"]
    gpu = strings.index("gpu.example.com")
    kinds = [
        NODE
        if node > 3
        else CLASS
        if driver != gpu
        else TAINT
        if state == 4
        else TAKEN
        if state
        else WOULD_DO
        for node, driver, state in zip(
            devices["node"], devices["driver"], devices["state"], strict=True
        )
    ]
    everything = len(kinds)
    free = kinds.count(WOULD_DO)
    funnel = [("in the fleet", everything), ("on the node", 8), ("of the class", 4), ("free", 3)]
    return {
        "cause": CAUSES[0][0],
        "kubernetes": f"0/{len(fleet['nodes']['name'])} nodes are available",
        "fixes": [
            {
                "number": 1,
                "text": "ask for 2 instead of 3 in request gpus",
                "node": "node-0",
                "isAdvice": False,
            },
            {
                "number": 2,
                "text": "run 1 replica of Deployment train instead of 2",
                "isAdvice": False,
            },
            {
                "number": 3,
                "text": "wait until claim train-0-0-gpu frees a device, or ask its owner",
                "isAdvice": True,
            },
        ],
        "nodes": [{"names": ["node-0"], "count": 1, "texts": ["cannot allocate all claims"]}],
        "requests": [
            {
                "name": "gpus",
                "wants": "3 of class gpu.example.com",
                "node": "node-0",
                "funnel": [
                    {"label": label, "count": count} for label, count in [*funnel, ("together", 0)]
                ],
                "nearest": "gpu.example.com/node-0/gpu-2 numaNode 1 does not match with others (0)",
            }
        ],
        "conflict": [
            "request gpus: 3 of class gpu.example.com",
            "constraint matchAttribute numaNode",
        ],
        "paint": {"questions": QUESTIONS, "devices": encode(kinds)},
        "free": free,
    }


def selected(fleet: Answer, expression: str) -> Answer:
    """Answer the one expression that the invented server knows: the driver of a device."""
    if expression.count('"') != 2:
        return {
            "compileError": {"message": "undeclared reference to 'devise'", "offset": 0},
            "hints": ["device is what expressions are about"],
            "meant": {"lead": "did you mean", "expression": 'device.driver == "nic.example.com"'},
        }
    driver = expression.split('"')[1]
    known = fleet["strings"]
    number = known.index(driver) if driver in known else -1
    kinds = [int(each == number) for each in fleet["devices"]["driver"]]
    yes = sum(kinds)
    return {
        "devices": encode(kinds),
        "counts": {"yes": yes, "no": len(kinds) - yes, "error": 0},
        "cost": {"estimate": 5, "limit": 1_000_000, "worst": 5},
        "errors": [],
        "parts": [{"text": expression, "yes": yes, "of": len(kinds)}],
        "hints": [],
    }


def drained(fleet: Answer) -> Answer:
    """Return what a drain of the first node would do: its devices become free, others taken."""
    devices = fleet["devices"]
    leaving = [
        row for row, node in enumerate(devices["node"]) if node == 0 and devices["claims"][row]
    ]
    free = [
        row for row, node in enumerate(devices["node"]) if node == 3 and not devices["claims"][row]
    ]
    taken = free[: len(leaving)]
    changes = {
        "state": [[row, 0] for row in leaving] + [[row, 1] for row in taken],
        "claims": [[row, 0] for row in leaving] + [[row, 1] for row in taken],
        "used": [[row, 0] for row in leaving] + [[row, 1000] for row in taken],
    }
    return {
        "text": ["pod research/train-0-0: node-0 → node-3"],
        "evicted": [{"pod": "research/train-0-0", "cause": "node-0 is drained"}],
        "placed": [
            {"namespace": "research", "name": "train-0-0", "node": "node-3", "devices": taken}
        ],
        "pendingBefore": 3,
        "pendingAfter": 4,
        "after": {"set": {"devices": changes}},
    }


HISTORY = {
    "first": 900,
    "last": 1000,
    "points": [[900 + 10 * i, (NOW - 600 + 60 * i) * 1000] for i in range(11)],
    "marks": [
        {
            "revision": 950, "time": "2026-01-31T11:55:00Z", "what": "Pending", "kind": "Pod",
            "namespace": "vision", "name": "wait-0", "cause": CAUSES[0][0],
        }
    ],
}  # fmt: skip


class ContractServer:
    """The server; `url` is the page's address."""

    def __init__(self, fleet: Answer, **session: Any) -> None:
        self.fleet = fleet
        self.session = {
            "user": "admin", "title": "invented", "source": "cluster", "live": True,
            "history": True, "readOnly": True, "version": "1", "profiles": ["dgx-h100"],
            "forbidden": [], "whatIf": True,
            "now": TIME, **session,
        }  # fmt: skip
        self.is_signed_in = True
        self.asked: list[str] = []
        self.streams: list[queue.Queue[str | None]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], Answer]] = {
            "session": lambda _: self.session,
            "fleet": lambda query: self._fleet(query),
            "history": lambda _: HISTORY,
            "object": lambda query: {"yaml": f"kind: {query['kind']}\n", "events": []},
            "device": lambda _: DEVICE,
            "explain": lambda _: explanation(self.fleet),
            "cel": lambda body: selected(self.fleet, body["expression"]),
            "what-if": lambda _: drained(self.fleet),
        }
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://127.0.0.1:{self.port}/ui/"

    def start(self) -> None:
        """Serve, on the same port as before."""
        self.http = _Http(("127.0.0.1", self.port), _Handler)
        self.http.owner = self
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """End all streams and stop serving."""
        for stream in self.streams:
            stream.put(None)
        self.streams = []
        self.http.shutdown()
        self.http.server_close()

    def send(self, change: Answer) -> None:
        """Send a change to everyone who listens."""
        for stream in self.streams:
            stream.put(f"event: fleet\nid: {change['revision']}\ndata: {json.dumps(change)}\n\n")

    def _fleet(self, query: dict[str, Any]) -> Answer:
        answer = sent(self.fleet)
        if "at" in query:
            answer |= {"revision": int(query["at"]), "time": "2026-01-31T11:55:00Z", "groups": []}
        return answer


DEVICE = {
    "attributes": [{"name": "model", "value": "X100", "type": "string"}],
    "capacity": [{"name": "memory", "value": "80Gi", "used": "40Gi"}],
    "counters": [
        {"set": "gpu-0", "name": "memory", "total": "80Gi", "used": "40Gi", "consumes": "10Gi"}
    ],
    "taints": [
        {"key": "sick", "value": "", "effect": "NoSchedule", "timeAdded": TIME, "from": "slice"}
    ],
    "holders": [],
    "slice": "node-0-gpu",
    "yaml": "name: gpu-0\n",
}  # fmt: skip


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    owner: ContractServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        name = parts.path.removeprefix("/ui/")
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if name == "events":
            self._stream()
        elif name in self.server.owner.answers:
            self._answer(name, query)
        else:
            self._file(name.removeprefix("static/") or "index.html")

    def do_POST(self) -> None:
        name = urlsplit(self.path).path.removeprefix("/ui/")
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self._answer(name, body)

    def _answer(self, name: str, given: dict[str, Any]) -> None:
        owner = self.server.owner
        owner.asked.append(name)
        if not owner.is_signed_in:
            return self._send(
                401, "application/json", b'{"error": "not signed in", "code": "not-signed-in"}'
            )
        found = owner.answers[name](given)
        answer = json.dumps(found, separators=(",", ":"))
        return self._send(422 if "error" in found else 200, "application/json", answer.encode())

    def _file(self, name: str) -> None:
        path = STATIC / name
        if path.is_file() and path.resolve().is_relative_to(STATIC):
            self._send(200, TYPES.get(path.suffix, "text/plain"), path.read_bytes())
        else:
            self._send(404, "text/plain", b"")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        packed = gzip.compress(body, 6)
        self.send_response(status)
        self.send_header("content-type", f"{kind}; charset=utf-8")
        self.send_header("content-encoding", "gzip")
        self.send_header("content-security-policy", POLICY)
        # As the real server's ETags, which are not worth their questions here.
        keeps = "no-store" if kind == "application/json" else "max-age=600"
        self.send_header("cache-control", keeps)
        self.send_header("content-length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b": keep-alive\n\n")
        mine: queue.Queue[str | None] = queue.Queue()
        self.server.owner.streams.append(mine)
        while (message := mine.get()) is not None:
            try:
                self.wfile.write(message.encode())
            except OSError:
                return
        self.close_connection = True
