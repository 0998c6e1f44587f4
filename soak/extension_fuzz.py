"""Random custom resources and admission policies on an API server: it answers without an error.

One real `moor server`, as in the campaign http-fuzz, with its laws for answers. Definitions of
three kinds change again and again, while objects are made from what they were a moment ago, and
policies that match them come, change and go. Besides:

1. whatever the definition has become, objects that are stored can be read in every version and
   form, and be deleted.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from soak import Outcome, Plan, Tally
from soak._definitions import GROUP, KINDS, VERSIONS, CustomKind, custom_object, definition
from soak._policies import policies
from soak._requests import (
    APPLY,
    FORMS,
    JSON,
    JSON_PATCH,
    MERGE,
    NAMES,
    NAMESPACE,
    Sent,
    json_patch,
    request,
)
from soak._servers import Server
from soak.http_fuzz import SHOWN_BYTES, Session

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1"
BINDINGS = tuple(f"{POLICIES}/{word}admissionpolicybindings" for word in ("validating", "mutating"))
LOOK_EVERY = 400  # cases
ATTEMPTS = 50
SELECTORS = ("spec.a=a", "spec.b!=1", "metadata.name=a", "x=y", "spec.a in (b)")
FORCED = (("fieldManager", "fuzz"), ("force", "true"))


@dataclass
class Extended:
    """A session, and the definitions that were sent last."""

    session: Session
    definitions: dict[str, dict[str, Any]] = field(default_factory=dict)

    def look(self) -> None:
        """Read all custom objects in every form, then delete them, and what would forbid that."""
        for path in BINDINGS:
            assert self.session.ask("DELETE", path).status == 200, path
            self._release(path)
        for kind in KINDS:
            for version in VERSIONS:
                path = _path(kind, version)
                for accept in (*FORMS[:1], *FORMS[2:]):
                    status = self.session.ask("GET", path, accept=accept).status
                    assert status in (200, 404), f"{path} as {accept}: {status}"
                self._delete(path)
        self.session.look()

    def _release(self, path: str) -> None:
        """Let bindings go that requests deleted in a way for which no garbage collector is here."""
        for left in self.session.ask("GET", path).json["items"]:
            body = {"metadata": {"finalizers": None}}
            one = f"{path}/{left['metadata']['name']}"
            self.session.ask("PATCH", one, body=body, media=MERGE)

    def _delete(self, path: str) -> None:
        """Delete all objects of a path; the server sees a moment later that policies are gone."""
        status = 0
        for _ in range(ATTEMPTS):
            status = self.session.ask("DELETE", path).status
            if status in (200, 404):
                return
            time.sleep(0.1)
        raise AssertionError(f"{path} cannot be deleted: {status}")


@dataclass(frozen=True)
class ExtensionCase:
    """One request to a server that has answered others before."""

    extended: Extended
    number: int
    sent: Sent

    def outcomes(self) -> Counter[str]:
        """Return what became of the request; raises when a law is broken."""
        counts = self.extended.session.play(self.sent)
        if self.number % LOOK_EVERY == LOOK_EVERY - 1:
            self.extended.look()
        what = self.sent.path.split("/")[2]
        return Counter({f"{what} {name}": count for name, count in counts.items()})

    def __str__(self) -> str:
        return f"{self.sent.data[:SHOWN_BYTES]!r}"


def make_case(extended: Extended, seed: int, number: int) -> ExtensionCase:
    """Return a case of a seed."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
    kind = random.choice(KINDS)
    of = extended.definitions.get(kind.name)
    makers: tuple[tuple[Callable[[Random, CustomKind, Any], Sent], int], ...] = (
        (_object_request, 10),
        (_patch_request, 8),
        (_reading_request, 4),
        (_policy_request, 2),
    )
    (maker,) = random.choices([m for m, _ in makers], [weight for _, weight in makers])
    if of is None or random.random() < 0.08:
        of = extended.definitions[kind.name] = definition(random, kind)
        sent = _definition_request(random, of)
    else:
        sent = maker(random, kind, of)
    return ExtensionCase(extended, number, sent)


def _definition_request(random: Random, tree: dict[str, Any]) -> Sent:
    name = tree["metadata"]["name"]
    data = json.dumps(tree).encode()
    if random.random() < 0.1:
        return request(random, "DELETE", f"{DEFINITIONS}/{name}")
    return request(random, "PATCH", f"{DEFINITIONS}/{name}", data, APPLY, query=FORCED)


def _policy_request(random: Random, _: CustomKind, __: Any) -> Sent:
    tree = random.choice(policies(random))
    plural = f"{tree['kind'].lower()}s".replace("policys", "policies")
    path = f"{POLICIES}/{plural}/{tree['metadata']['name']}"
    if random.random() < 0.25:
        return request(random, "DELETE", path)
    return request(random, "PATCH", path, json.dumps(tree).encode(), APPLY, query=FORCED)


def _object_request(random: Random, kind: CustomKind, of: Any) -> Sent:
    name = random.choice(NAMES)
    tree = custom_object(random, kind, of, name, NAMESPACE)
    version = tree["apiVersion"].partition("/")[2]
    data = json.dumps(tree).encode()
    if random.random() < 0.5:
        return request(random, "POST", _path(kind, version), data, JSON)
    path = f"{_path(kind, version)}/{name}{random.choice(('', '', '/status'))}"
    return request(random, "PATCH", path, data, APPLY, query=FORCED)


def _patch_request(random: Random, kind: CustomKind, of: Any) -> Sent:
    name = random.choice(NAMES)
    tree = custom_object(random, kind, of, name, NAMESPACE)
    version = tree["apiVersion"].partition("/")[2]
    path = f"{_path(kind, version)}/{name}{random.choice(('', '', '', '/status', '/scale'))}"
    if path.endswith("/scale"):
        body: Any = {"spec": {"replicas": random.choice((0, 3, -1, "x", None, 2**31))}}
        return request(random, "PATCH", path, json.dumps(body).encode(), MERGE)
    if random.random() < 0.5:
        body = {key: tree[key] for key in ("spec", "status") if random.random() < 0.7}
        return request(random, "PATCH", path, json.dumps(body).encode(), MERGE)
    body = json_patch(random, tree)
    return request(random, "PATCH", path, json.dumps(body).encode(), JSON_PATCH)


def _reading_request(random: Random, kind: CustomKind, _: Any) -> Sent:
    path = _path(kind, random.choice(VERSIONS))
    if random.random() < 0.3:
        path += f"/{random.choice(NAMES)}{random.choice(('', '/status', '/scale'))}"
        method = random.choice(("GET", "GET", "DELETE"))
        return request(random, method, path)
    if random.random() < 0.5:
        return request(random, "GET", path, query=(("fieldSelector", random.choice(SELECTORS)),))
    return request(random, "GET", path)


def _path(kind: CustomKind, version: str) -> str:
    within = f"/namespaces/{NAMESPACE}" if kind.namespaced else ""
    return f"/apis/{GROUP}/{version}{within}/{kind.plural}"


@contextmanager
def running() -> Iterator[Extended]:
    """Run a server for a session."""
    with tempfile.TemporaryDirectory(prefix="extension-fuzz-") as folder:
        session = Session(Server(Path(folder) / "data"))
        try:
            session.open()
            yield Extended(session)
        finally:
            session.close()


def run(plan: Plan) -> Outcome:
    """Run the campaign."""
    started = time.monotonic()
    with running() as extended:
        tally = Tally("extension-fuzz", lambda seed, number: make_case(extended, seed, number))
        tally.run(plan)
        tally.finish(extended.look)
        tally.finish(extended.session.end)
    figures = {"cases": f"{tally.cases:,}", "seed": str(plan.seed)}
    counts = tally.counts + extended.session.counts
    figures |= {name: f"{count:,}" for name, count in sorted(counts.items())}
    figures["seconds"] = f"{time.monotonic() - started:.0f}"
    return Outcome(figures, tuple(tally.faults.values()))
