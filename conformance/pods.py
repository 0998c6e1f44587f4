"""Pods and workload objects: accepted, rejected and defaulted by a server.

A case creates an object with a dry run, or changes one that is created for it and deleted
afterwards; see the README of the recordings. All cases go to one server in this process, with the
gates of Kubernetes 1.37. A case is equal if the HTTP status is and the set of (field, reason) of
the causes. Counted besides are the texts, the warnings and the returned objects, and how many cases
of each family are equal.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from conformance.runner import EQUAL, Apart, Case, Mismatch, Outcome, Suite, compared
from moorage.api.gates import Gates
from moorage.apiserver.http.messages import Request, Response, StreamingResponse, parse_path
from moorage.apiserver.server import Assembled, assembled
from moorage.apiserver.settings import Settings
from moorage.store.memory import open_memory

Tree = dict[str, Any]

JSON = "application/json"
PATCH_TYPES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
RELEASE = b'{"metadata":{"finalizers":null}}'
AT_ONCE = b'{"gracePeriodSeconds":0}'
OBJECT_DIFFERENCES_MAX = 6

_DROPPED = ("managedFields", "uid", "creationTimestamp", "resourceVersion", "selfLink")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9]{5}$")
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def open_suite() -> Suite:
    """Return the suite."""
    return PodsSuite()


class Count:
    """How many of some claims hold."""

    def __init__(self) -> None:
        self.equal = self.total = 0

    def add(self, is_equal: bool) -> None:
        """Count one claim."""
        self.equal += is_equal
        self.total += 1

    def __str__(self) -> str:
        return f"{self.equal}/{self.total}"


class PodsSuite(Suite):
    """The suite of pods/*.jsonl."""

    def __init__(self) -> None:
        self._server: Server | None = None
        self._messages, self._warnings, self._objects = Count(), Count(), Count()
        self._families: dict[str, Count] = {}

    def fits(self, case: Case) -> bool:
        """Return whether the case is an object that is made first, or a request with its path."""
        if case.fields.get("op") == "fixture":
            return True
        return {"tags", "path", "op", "expect"} <= case.fields.keys()

    def compare(self, case: Case) -> Outcome:
        """Send the recorded request, and compare the answers."""
        server = self._server = self._server or Server()
        if not server.serves(case.fields["path"]):
            return Apart(f"kinds that are not served: {case.fields['path'].rpartition('/')[2]}")
        if case.fields["op"] == "fixture":
            server.ask("POST", case.fields["path"], _text_of(case, "object"))
            return Apart("objects that are created before the cases")
        found = server.answer(case)
        return self._counted(
            case, found, compared(_essence(case.fields["expect"]), _essence(found))
        )

    def _counted(self, case: Case, found: Tree, outcome: Outcome) -> Outcome:
        """Return the outcome; count it for its family, and the further claims."""
        expected = case.fields["expect"]
        family = self._families.setdefault(case.fields["tags"][0], Count())
        family.add(outcome is EQUAL)
        differences = list(outcome.differences) if isinstance(outcome, Mismatch) else []
        if expected["code"] >= 400:
            self._messages.add(_messages(expected) == _messages(found))
        if expected.get("warnings") or found.get("warnings"):
            self._warnings.add(expected.get("warnings") == found.get("warnings"))
        if "object" in expected:
            whole = compared(expected["object"], found.get("object"))
            self._objects.add(whole is EQUAL)
            if differences and isinstance(whole, Mismatch):
                differences += whole.differences[:OBJECT_DIFFERENCES_MAX]
        return Mismatch((str(case.fields["tags"]), *differences)) if differences else EQUAL

    def figures(self) -> Iterable[str]:
        """Return the further claims and the families that are not all equal."""
        for family, count in sorted(self._families.items()):
            if count.equal < count.total:
                yield f"family {family}: {count} equal"
        yield f"messages: {self._messages} refusals equal"
        yield f"warnings: {self._warnings} answers with warnings equal"
        yield f"objects: {self._objects} returned objects equal"

    def close(self) -> None:
        """Stop the server, if a case started one."""
        if self._server is not None:
            self._server.close()


# --- the server -----------------------------------------------------------------------------------


class Server:
    """A server in this process that allows everything, without a network."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-pods-"))
        self._stack = AsyncExitStack()
        self._made: Assembled = self._run(self._start())

    async def _start(self) -> Assembled:
        gates = Gates.parse(preset="kubernetes-1.37")
        settings = Settings(self._folder, gates=gates, allows_all=True)
        store = await self._stack.enter_async_context(open_memory())
        return await self._stack.enter_async_context(assembled(settings, store=store))

    def close(self) -> None:
        """Stop the server."""
        self._run(self._stack.aclose())
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, awaitable: Any) -> Any:
        return self._loop.run_until_complete(awaitable)

    def serves(self, path: str) -> bool:
        """Return whether the resource of a collection is served."""
        target = parse_path(path)
        resources = self._made.context.resources
        return target is not None and bool(
            resources.find(target.group, target.version, target.resource)
        )

    def ask(
        self, method: str, path: str, body: bytes, content_type: str = JSON, **query: str
    ) -> Response:
        """Return the answer to a request."""
        headers = {"content-type": content_type, "accept": JSON}
        request = Request(method, path, query, headers, body)
        answer: Response | StreamingResponse = self._run(
            self._made.application.router.handle(request)
        )
        assert isinstance(answer, Response)
        return answer

    def answer(self, case: Case) -> Tree:
        """Return our answer to a case, in the form of the recorded one."""
        fields = case.fields
        mode: str = fields["fieldValidation"]
        if fields["op"] == "create":
            body = _text_of(case, "object")
            answer = self.ask("POST", fields["path"], body, dryRun="All", fieldValidation=mode)
            return _recorded(answer, body)
        before = _text_of(case, "before")
        made = self.ask("POST", fields["path"], before)
        if made.status >= 400:
            return {"code": made.status, "causes": [], "message": f"before: {made.body.decode()}"}
        tree = json.loads(made.body)
        path = f"{fields['path']}/{tree['metadata']['name']}"
        try:
            method, body, media = _change(case, tree)
            below = f"{path}/{fields['subresource']}" if fields.get("subresource") else path
            answer = self.ask(method, below, body, media, fieldValidation=mode)
            # The body of an update holds values that the server generated on creation.
            sent = body if fields["op"] == "patch" else json.dumps(fields["edit"]).encode()
            return _recorded(answer, before + sent)
        finally:
            self.ask("PATCH", path, RELEASE, PATCH_TYPES["merge"])
            self.ask("DELETE", path, AT_ONCE)


class _Line(msgspec.Struct):
    """The parts of a line whose very text is sent: numbers may have any size."""

    object: msgspec.Raw = msgspec.Raw(b"")
    before: msgspec.Raw = msgspec.Raw(b"")
    patch: msgspec.Raw = msgspec.Raw(b"")


def _text_of(case: Case, name: str) -> bytes:
    return bytes(getattr(msgspec.json.decode(case.line, type=_Line), name))


class Change(NamedTuple):
    """A request that changes an object."""

    method: str
    body: bytes
    content_type: str


def _change(case: Case, tree: Tree) -> Change:
    if case.fields["op"] == "patch":
        return Change("PATCH", _text_of(case, "patch"), PATCH_TYPES[case.fields["patchType"]])
    for step in case.fields["edit"]:
        _edit(tree, step)
    return Change("PUT", json.dumps(tree).encode(), JSON)


def _edit(tree: Any, step: Mapping[str, Any]) -> None:
    """Make one step of an edit; missing maps on the way are made."""
    *above, last = (part.replace("~1", "/").replace("~0", "~") for part in _parts(step["path"]))
    for part in above:
        tree = tree[int(part)] if isinstance(tree, list) else tree.setdefault(part, {})
    match step["op"], tree:
        case "remove", list():
            del tree[int(last)]
        case "remove", _:
            tree.pop(last, None)
        case _, list() if last == "-":
            tree.append(step["value"])
        case _, list():
            tree.insert(int(last), step["value"])
        case _:
            tree[last] = step["value"]


def _parts(pointer: str) -> Iterator[str]:
    return iter(pointer.split("/")[1:])


# --- answers --------------------------------------------------------------------------------------


def _recorded(answer: Response, request: bytes) -> Tree:
    """Return an answer in the form of the recorded ones."""
    tree = json.loads(answer.body)
    found: Tree = {"code": answer.status}
    warnings = [text for name, text in answer.headers if name.lower() == "warning"]
    if warnings:
        found["warnings"] = sorted(_UID.sub("<uid>", _unquoted(text)) for text in warnings)
    if answer.status < 400:
        return found | {"object": _masked_object(tree, request.decode(errors="replace"))}
    details = tree.get("details") or {}
    causes = [
        {name: cause.get(name, "") for name in ("field", "reason", "message")}
        for cause in details.get("causes") or ()
    ]
    found["causes"] = sorted(causes, key=lambda cause: tuple(cause.values()))
    if not causes:
        found["message"] = _masked_text(tree.get("message", ""), request.decode(errors="replace"))
    return found


def _unquoted(header: str) -> str:
    found = _WARNING.fullmatch(header)
    return re.sub(r"\\(.)", r"\1", found[1]) if found else header


def _masked_object(tree: Tree, request: str) -> Any:
    metadata = tree.get("metadata") or {}
    kept = {name: value for name, value in metadata.items() if name not in _DROPPED}
    prefix = kept.get("generateName")
    if prefix and kept.get("name", "") not in request:
        kept["name"] = f"{prefix}<generated>"
    return _masked(tree | {"metadata": kept}, request)


def _masked(value: Any, request: str) -> Any:
    match value:
        case dict():
            return {_masked_text(k, request): _masked(item, request) for k, item in value.items()}
        case list():
            return [_masked(item, request) for item in value]
        case str():
            return _masked_text(value, request)
    return value


def _masked_text(text: str, request: str) -> str:
    """Return a text without generated values; values of the request stay."""
    if _TIME.fullmatch(text) and text not in request:
        return "<time>"
    if _TOKEN_VOLUME.match(text) and text not in request:
        return "kube-api-access-<random>"
    return _UID.sub(lambda found: found[0] if found[0] in request else "<uid>", text)


def _essence(answer: Mapping[str, Any]) -> Tree:
    causes = answer.get("causes") or ()
    pairs = {f"{cause['field']} {cause['reason']}" for cause in causes}
    essence: Tree = {"code": answer["code"]}
    return essence | Counter(pairs)


def _messages(answer: Mapping[str, Any]) -> tuple[str, list[str]]:
    causes = answer.get("causes") or ()
    return answer.get("message", ""), sorted(cause["message"] for cause in causes)
