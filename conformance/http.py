"""HTTP exchanges: requests of kubectl and by hand, and the server's answers.

The target is a folder with `edge-cases.json` and `1.37/*.json`, which are replayed in their order
against a server in this process. An exchange is equal if status, content type and body are: the
same keys, types and values, but for revisions, times, uids, ages and tokens, of which only the type
counts. Of documents that list everything a server has (discovery, OpenAPI) only the head is
compared, and also of documents about Kubernetes' own components. The server authorizes by roles,
and the user is the one named in the answer. Where a table shows an object of which nothing but that
row was recorded, its cells are compared by type. Cases about kinds that are not served, and cases
with a better answer, are counted separately.

A folder with `NAME.yaml` beside `1.37/NAME.json` has scenes of our own, which begin with a new
server each (`conformance._scenes`, `conformance.record_scenes`): whole answers are compared.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from conformance._http_world import ADMIN, Tree, World
from conformance._scenes import OWN_WARNING, TRIES_MAX, SceneServer, without_choices, without_order
from conformance.runner import EQUAL, Apart, Case, Mismatch, Outcome, Suite
from moorage.api import protobuf
from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.users import ANONYMOUS, AUTHENTICATED, User
from moorage.apiserver.http.messages import Request, Response, StreamingResponse, Target, parse_path
from moorage.apiserver.resources import REVIEWS, Resource
from moorage.apiserver.verbs.selectors import required_fields

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_AGE = re.compile(r"(\d+[smhdy])+|<unknown>|<invalid>")
_TOKEN_VOLUME = re.compile(r"kube-api-access-[a-z0-9-]{5}")
_CURRENT = re.compile(r"current: \d+")
_ANY = {"resourceVersion", "continue", "remainingItemCount", "uid"}

_FORBIDDEN_USER = re.compile(r'User "(?P<name>[^"]*)" cannot ')
_DOCUMENTS = ("/api", "/apis", "/openapi", "/version", "/")
NOT_WHOLE = "objects that were not recorded whole"
_BETTER = {"put-bad-rv": "answered better: 400 for a resourceVersion that is no number"}
# Changes from before the recording, and checks that are named after parts of Kubernetes.
_HEAD_ONLY = ("watch-old-410", "livez-verbose")


def open_suite() -> Suite:
    """Return the suite."""
    return HttpSuite()


class HttpSuite(Suite):
    """The suite over recorded exchanges."""

    def __init__(self) -> None:
        self._world = World()
        self._scene: tuple[str, SceneServer] | None = None

    def fits(self, case: Case) -> bool:
        """Return whether a case is an exchange."""
        return "requestHeaders" in case.fields

    def cases(self, target: Path) -> Iterator[Case] | None:
        """Return all exchanges of a folder, in the order in which they are replayed."""
        return _cases(target) if target.is_dir() else None

    def compare(self, case: Case) -> Outcome:
        """Send the recorded request to our server, and compare the answers."""
        exchange = Exchange(case.fields)
        if "scene" in case.fields:
            return self._play(case.fields["scene"], exchange)
        apart = self._apart(case, exchange)
        if apart:
            return Apart(apart)
        for tree in exchange.objects():
            self._world.put(tree)
        reason = self._prepare(exchange)
        if reason:
            return Apart(reason)
        self._world.security.user = exchange.user
        request = exchange.request(self._world.ours, self._world.revision)
        answer = self._world.ask(self._with_our_tags(request, exchange))
        if case.fields.get("name", "") in _HEAD_ONLY:
            return self._head(exchange, answer)
        if isinstance(answer, StreamingResponse):
            return self._stream(exchange, answer)
        self._learn(exchange, answer)
        return _outcome(exchange, answer, self._world)

    def close(self) -> None:
        """Stop the servers."""
        self._world.close()
        if self._scene is not None:
            self._scene[1].close()

    def _play(self, name: str, exchange: Exchange) -> Outcome:
        """Compare an answer of a scene, each of which has a server of its own."""
        if self._scene is None or self._scene[0] != name:
            if self._scene is not None:
                self._scene[1].close()
            self._scene = name, SceneServer()
        server = self._scene[1]
        if exchange.differs:
            server.ask(exchange.request({}, 0))
            return Apart(exchange.differs)
        outcome: Outcome = EQUAL
        for _ in range(TRIES_MAX):
            server.settle()
            answer = server.ask(exchange.request({}, 0))
            outcome = _scene_outcome(exchange, answer)
            if outcome is EQUAL or exchange.method != "GET":
                break
        return outcome

    def _with_our_tags(self, request: Request, exchange: Exchange) -> Request:
        """Return a request for a document as a client makes it that knows ours."""
        if exchange.status != 304 and "hash" not in request.query:
            return request
        query = {name: text for name, text in request.query.items() if name != "hash"}
        headers = {k: v for k, v in request.headers.items() if k != "if-none-match"}
        found = self._world.ask(Request("GET", request.path, query, headers))
        tag = dict(found.headers).get("ETag", "")
        if exchange.status == 304:
            headers["if-none-match"] = tag
        if "hash" in request.query:
            query["hash"] = tag.strip('"')
        return Request("GET", request.path, query, headers)

    # --- state --------------------------------------------------------------------------------

    def _apart(self, case: Case, exchange: Exchange) -> str:
        name = case.fields.get("name", "")
        if name in _BETTER:
            return _BETTER[name]
        if exchange.body is None:
            return "requests whose body was not kept"
        target = exchange.target
        if target is not None and exchange.is_found and not self._is_served(target):
            return "kinds that are not served"
        return ""

    def _is_served(self, target: Target) -> bool:
        version = f"{target.group}/{target.version}"
        if any((r.group, r.plural) == (target.group, target.resource) for r in REVIEWS):
            return True
        resource = self._world.find(version, target.resource)
        if resource is None:
            return False
        return not target.subresource or target.subresource in resource.subresources

    def _prepare(self, exchange: Exchange) -> str:
        """Bring the store to where it was; return why that is not possible."""
        target = exchange.target
        if target is None:
            return ""
        resource = self._world.find(f"{target.group}/{target.version}", target.resource)
        if resource is None:
            return ""
        self._foresee(exchange)
        namespace = "" if target.resource == "namespaces" else target.namespace
        if exchange.status == 404 and target.name and not target.subresource:
            self._world.drop(resource, namespace, target.name)
        for metadata in exchange.parts():
            self._put_part(resource, exchange, metadata)
        listed = exchange.listed(resource)
        if listed is not None:
            return self._prepare_list(exchange, resource, namespace, listed)
        is_about_one = target.name and exchange.status < 400
        is_created = exchange.method == "PATCH" and exchange.status == 201
        if (
            is_about_one
            and not is_created
            and not self._world.has(resource, namespace, target.name)
        ):
            return NOT_WHOLE
        return ""

    def _prepare_list(
        self,
        exchange: Exchange,
        resource: Resource,
        namespace: str,
        listed: Mapping[tuple[str, str], str],
    ) -> str:
        there = self._world.objects(resource, namespace)
        for place, revision in listed.items():
            if place not in there:
                return NOT_WHOLE
            if self._world.ours.get(revision) != there[place].metadata.resource_version:
                return NOT_WHOLE  # We have another state of it than was shown then.
        for place in there.keys() - listed.keys():
            is_going = there[place].metadata.deletion_timestamp is not None
            if is_going or not exchange.is_partial:
                self._world.drop(resource, *place)
        return ""

    def _put_part(self, resource: Resource, exchange: Exchange, metadata: Tree) -> None:
        """Store an object of which only metadata is known, unless we have it as it was then."""
        place = metadata.get("namespace", ""), metadata.get("name", "")
        found = self._world.objects(resource, place[0]).get(place)
        revision = self._world.ours.get(str(metadata.get("resourceVersion", "")))
        fields = required_fields(exchange.field_selector)
        is_known = found is not None and found.metadata.resource_version == revision
        if not is_known or (fields and self._world.is_part(resource, *place)):
            assert exchange.target is not None
            self._world.put_part(resource, exchange.target.version, metadata, fields)

    def _foresee(self, exchange: Exchange) -> None:
        """Have the server make the uids, names and times that were made then."""
        found = exchange.answer
        if not isinstance(found, dict) or exchange.method == "GET":
            return
        metadata = found.get("metadata") or {}
        times = [metadata.get("creationTimestamp", "")] if exchange.status == 201 else []
        times += [entry.get("time") or "" for entry in metadata.get("managedFields") or ()]
        times += [metadata.get("deletionTimestamp", "")]
        newest = max((time for time in times if isinstance(time, str)), default="")
        if newest:
            self._world.now = Timestamp.parse(newest)
        self._world.uid = metadata.get("uid", "")
        self._world.suffix = str(metadata.get("name", ""))[-5:]

    def _learn(self, exchange: Exchange, answer: Response) -> None:
        """Note which of our revisions corresponds to which of theirs."""
        ours, theirs = _decoded(answer.body, answer.content_type), exchange.answer
        match ours, theirs:
            case {"metadata": {"resourceVersion": str(mine)}}, {
                "metadata": {"resourceVersion": str(recorded)}
            }:
                self._world.ours[recorded] = mine

    # --- watches ------------------------------------------------------------------------------

    def _stream(self, exchange: Exchange, stream: StreamingResponse) -> Outcome:
        """Make the recorded changes as another client, and compare our events."""
        try:
            events = exchange.events()
            if events is None:
                return self._head(exchange, stream)
            found = []
            waiting: list[bytes] = []  # lines of the last chunk: it may hold several events
            for event in events:
                if not exchange.begins_with_all or event.get("type") in ("MODIFIED", "DELETED"):
                    self._happen(event, exchange)
                if not waiting:
                    waiting = (self._world.next_chunk(stream) or b"").splitlines()
                line = waiting.pop(0) if waiting else None
                found.append(None if line is None else _decoded(line, "application/json"))
            faults = [*_head_faults(exchange, 200, stream.content_type)]
            faults += _faults("events", *_masked(exchange, events, found, self._world))
            return Mismatch(tuple(faults[:8])) if faults else EQUAL
        finally:
            self._world.end(stream)

    def _head(self, exchange: Exchange, answer: Response | StreamingResponse) -> Outcome:
        """Compare status and content type only."""
        status = answer.status if isinstance(answer, Response) else 200
        faults = tuple(_head_faults(exchange, status, answer.content_type))
        if isinstance(answer, StreamingResponse):
            self._world.end(answer)
        return Mismatch(faults) if faults else EQUAL

    def _happen(self, event: Tree, exchange: Exchange) -> None:
        tree, target = event.get("object") or {}, exchange.target
        resource = target and self._world.find(f"{target.group}/{target.version}", target.resource)
        if resource is None:
            return
        for metadata in _partial(tree):
            self._put_part(resource, exchange, metadata)
        if event.get("type") in ("ADDED", "MODIFIED"):
            self._world.put(tree)
        elif event.get("type") == "DELETED":
            for metadata in [*_partial(tree)] or [tree["metadata"]]:
                self._world.drop(resource, metadata.get("namespace", ""), metadata["name"])


class Exchange:
    """One request and its recorded answer."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.method: str = fields["method"]
        url = urlsplit(fields.get("uri") or fields["path"])
        self.path, self._query = url.path, dict(parse_qsl(url.query, keep_blank_values=True))
        self.headers = {name.lower(): text for name, text in fields["requestHeaders"].items()}
        self.body = _bytes_of(fields.get("requestBody"), self.headers.get("content-type", ""))
        status = fields["status"]
        self.status = status if isinstance(status, int) else int(status.split()[1])
        headers = {k.lower(): v for k, v in (fields.get("responseHeaders") or {}).items()}
        self.content_type: str = headers.get("content-type", "")
        self.warnings: list[str] = fields.get("warnings", [])
        self.answer = _recorded(fields.get("responseBody"), self.content_type)
        self.target = parse_path(self.path)
        self.differs: str = fields.get("differs", "")  # why, if it is meant to
        # Kubernetes walks through maps in another order each time.
        self.is_unordered: bool = fields.get("unordered", False)

    @property
    def user(self) -> User | None:
        """The user, as named in the answer; None for credentials that were wrong."""
        if self.status == 401:
            return None
        message = self.answer.get("message", "") if isinstance(self.answer, dict) else ""
        found = _FORBIDDEN_USER.search(message) if self.status == 403 else None
        if found is None:
            return ADMIN
        name = found["name"]
        return ANONYMOUS if name == ANONYMOUS.name else User(name, (AUTHENTICATED,))

    @property
    def field_selector(self) -> str:
        """The fields by which objects are selected."""
        return str(self._query.get("fieldSelector", ""))

    @property
    def is_found(self) -> bool:
        """Whether the answer is about something that there is."""
        return self.status != 404 or (
            isinstance(self.answer, dict) and "name" in (self.answer.get("details") or {})
        )

    @property
    def is_watch(self) -> bool:
        """Whether the answer is a stream."""
        return bool(self._query.get("watch", "") in ("1", "true"))

    @property
    def begins_with_all(self) -> bool:
        """Whether a watch begins with existing objects."""
        return bool(self._query.get("resourceVersion", "0") == "0")

    @property
    def is_partial(self) -> bool:
        """Whether a list leaves something out."""
        return any(name in self._query for name in ("labelSelector", "fieldSelector")) or bool(
            isinstance(self.answer, dict) and (self.answer.get("metadata") or {}).get("continue")
        )

    def request(self, ours: Mapping[str, str], revision: int) -> Request:
        """Return the request, with our revisions in place of theirs."""
        query = dict(self._query)
        if len(query.get("continue", "")) > 8:
            query["continue"] = _token_at(query["continue"], revision)
        if query.get("resourceVersion") in ours and self.is_watch:
            query["resourceVersion"] = ours[query["resourceVersion"]]
        elif self.is_watch and len(query.get("resourceVersion", "")) > 1:
            query["resourceVersion"] = max(ours.values(), key=int, default="0")
        body = self.body or b""
        for theirs, mine in ours.items():
            old = f'"resourceVersion": "{theirs}"'.encode()
            body = body.replace(old, f'"resourceVersion": "{mine}"'.encode())
            if "json-patch" in self.headers.get("content-type", ""):
                body = body.replace(f'"{theirs}"'.encode(), f'"{mine}"'.encode())
        headers = {k: v for k, v in self.headers.items() if k != "accept-encoding"}
        return Request(self.method, self.path, query, headers, body)

    def objects(self) -> Iterator[Tree]:
        """Return the whole objects that were there when the request came."""
        tree = self.answer
        if self.method == "DELETE" and isinstance(tree, dict) and self.status < 400:
            if "deletionTimestamp" not in (tree.get("metadata") or {}):
                yield from _whole(tree)  # It went as it was.
            return
        if self.status >= 400 or self.method != "GET":
            return
        if self.is_watch and not self.begins_with_all:
            return
        if not isinstance(tree, dict) and not self.is_watch:
            return
        for event in (self.events() or ()) if self.is_watch else ():
            tree = event.get("object") or {}
            if event.get("type") == "ADDED":
                yield from _whole(tree)
        if not self.is_watch:
            yield from _whole(tree)

    def parts(self) -> Iterator[Tree]:
        """Return the metadata of objects that were there, and of which no more was recorded."""
        if self.status >= 400 or self.method != "GET":
            return
        if not self.is_watch:
            yield from _partial(self.answer)
        elif self.begins_with_all:
            for event in self.events() or ():
                if event.get("type") == "ADDED":
                    yield from _partial(event.get("object"))

    def events(self) -> list[Tree] | None:
        """Return the events of a stream; None if they were not kept."""
        answer = self.answer
        match answer:
            case {"stream": list(events)}:
                return events
            case {"type": str()}:
                return [answer]
        if not isinstance(answer, str) or "protobuf" in self.content_type:
            return None
        return list(_whole_lines(answer))

    def listed(self, resource: Resource) -> dict[tuple[str, str], str] | None:
        """Return which objects existed, and their revisions, if the answer has them."""
        tree = self.answer
        if self.method != "GET" or not isinstance(tree, dict) or self.is_watch:
            return None
        rows = [row.get("object") or {} for row in tree.get("rows") or ()]
        items = rows if tree.get("kind") == "Table" else tree.get("items")
        if items is None or self.target is None or self.target.name:
            return None
        places = [item.get("metadata") or {} for item in items]
        return {
            (place.get("namespace", "") if resource.namespaced else "", place.get("name", "")): str(
                place.get("resourceVersion", "")
            )
            for place in places
        }


# --- reading --------------------------------------------------------------------------------------


def _cases(target: Path) -> Iterator[Case]:
    files = sorted(target.glob("1.37/*.json"))
    edge = target / "edge-cases.json"
    for path in [*files, *([edge] if edge.exists() else [])]:
        for number, fields in enumerate(json.loads(path.read_bytes())):
            name = fields.get("name") or fields.get("uri", "")
            if (target / f"{path.stem}.yaml").exists():
                fields = {**fields, "scene": path.stem}
            yield Case(f"{path.stem}#{number} {fields['method']} {name}", fields, b"")


def _whole_lines(text: str) -> Iterator[Tree]:
    """Return the events of a text, up to where it was cut."""
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            return


def _bytes_of(body: Any, content_type: str) -> bytes | None:
    if body is None:
        return b""
    if not isinstance(body, str):
        return json.dumps(body).encode()
    if "protobuf" in content_type:
        return None if "\ufffd" in body else body.encode("latin-1", "replace")
    return body.encode()


def _recorded(body: Any, content_type: str) -> Any:
    if isinstance(body, dict) and "truncatedAt" in body:
        return None
    if isinstance(body, dict) and "base64" in body:
        return _decoded(base64.b64decode(body["base64"]), content_type)
    if isinstance(body, str) and "protobuf" in content_type:
        data = body.encode("latin-1", "replace")
        return None if "\ufffd" in body else _decoded(data, content_type)
    if isinstance(body, str) and "yaml" in content_type:
        return yaml.safe_load(body)
    return body


def _token_at(token: str, revision: int) -> str:
    """Return a continue token for the same place at a revision of ours."""
    content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    text = json.dumps({**content, "rv": revision}).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _decoded(body: bytes, content_type: str) -> Any:
    try:
        if "protobuf" in content_type:
            return json.loads(protobuf.decode(body).json)
        if "yaml" in content_type:
            return yaml.safe_load(body)
        return json.loads(body)
    except (ApiError, ValueError):
        return body.decode(errors="replace")


def _whole(tree: Tree) -> Iterator[Tree]:
    """Return the objects of a tree that have more than metadata."""
    kind = str(tree.get("kind", ""))
    if kind == "Table":
        for row in tree.get("rows") or ():
            yield from _whole(row.get("object") or {})
    if kind in ("Status", "Table") or kind.startswith("PartialObjectMetadata"):
        return
    if kind.endswith("List") and "items" in tree:
        for item in tree["items"] or ():
            head = {"apiVersion": tree["apiVersion"], "kind": kind.removesuffix("List")}
            yield {**head, **item}
    elif "metadata" in tree:
        yield tree


def _partial(tree: Any) -> Iterator[Tree]:
    """Return the metadata of the objects of a tree that have nothing else."""
    match tree:
        case {"kind": "Table", "rows": list(rows)}:
            for row in rows:
                yield from _partial(row.get("object"))
        case {"kind": "PartialObjectMetadataList", "items": list(items)}:
            for item in items:
                yield item.get("metadata") or {}
        case {"kind": "PartialObjectMetadata", "metadata": {"name": str()} as metadata}:
            yield metadata


# --- comparing ------------------------------------------------------------------------------------


def _outcome(exchange: Exchange, answer: Response, world: World) -> Outcome:
    faults = [*_head_faults(exchange, answer.status, answer.content_type)]
    if exchange.answer is not None and not faults:
        ours = _decoded(answer.body, answer.content_type)
        is_document = exchange.target is None and exchange.path.startswith(_DOCUMENTS[:4])
        if is_document or exchange.path == "/":
            faults += _document_faults(exchange.answer, ours)
        else:
            faults += _faults("", *_masked(exchange, exchange.answer, ours, world))
    return Mismatch(tuple(faults[:8])) if faults else EQUAL


def _scene_outcome(exchange: Exchange, answer: Response) -> Outcome:
    faults = [*_head_faults(exchange, answer.status, answer.content_type)]
    if not faults:
        ours = without_choices(_decoded(answer.body, answer.content_type))
        theirs = without_choices(exchange.answer)
        if exchange.is_unordered:
            theirs, ours = without_order(theirs), without_order(ours)
        faults += _faults("", theirs, ours)
        warned = [text for name, text in answer.headers if name == "Warning"]
        warned = [text for text in warned if not OWN_WARNING.search(text)]
        faults += _faults("warnings", exchange.warnings, warned)
    return Mismatch(tuple(faults[:8])) if faults else EQUAL


def _masked(exchange: Exchange, theirs: Any, ours: Any, world: World) -> tuple[Any, Any]:
    """Return both trees with types in place of unknown cells."""
    target = exchange.target
    resource = target and world.find(f"{target.group}/{target.version}", target.resource)
    if resource is None:
        return theirs, ours

    def masked(tree: Any) -> Any:
        match tree:
            case list():
                return [masked(item) for item in tree]
            case {"object": {"kind": "Table"} as table}:
                return {**tree, "object": masked(table)}
            case {"kind": "Table", "rows": list(rows)}:
                return {**tree, "rows": [row_of(row) for row in rows]}
        return tree

    def row_of(row: Tree) -> Tree:
        metadata = (row.get("object") or {}).get("metadata") or {}
        place = metadata.get("namespace", ""), metadata.get("name", "")
        if not world.is_part(resource, *place):
            return row
        first, *rest = row["cells"]
        shown = first if first == place[1] else type(first).__name__
        return {**row, "cells": [shown, *(type(cell).__name__ for cell in rest)]}

    return masked(theirs), masked(ours)


def _head_faults(exchange: Exchange, status: int, content_type: str) -> Iterator[str]:
    if status != exchange.status:
        yield f"status: Kubernetes {exchange.status}, Moorage {status}"
    if exchange.content_type and content_type != exchange.content_type:
        yield f"content type: Kubernetes {exchange.content_type}, Moorage {content_type}"


def _document_faults(theirs: Any, ours: Any) -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict) and theirs.keys() != ours.keys():
        yield f"keys: Kubernetes {sorted(theirs)}, Moorage {sorted(ours)}"


def _faults(place: str, theirs: Any, ours: Any) -> Iterator[str]:
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
        for key in sorted({*theirs, *ours}):
            inner = f"{place}.{key}" if place else key
            if key not in theirs or key not in ours:
                side, value = (
                    ("Kubernetes", theirs[key]) if key in theirs else ("Moorage", ours[key])
                )
                yield f"{inner}: only {side} has it: {_shown(value)}"
            elif key == "description" and "columnDefinitions" in place:
                continue  # Ours have our own messages.
            elif key in _ANY:
                if type(theirs[key]) is not type(ours[key]):
                    yield f"{inner}: other types"
            else:
                yield from _faults(inner, theirs[key], ours[key])
    elif (
        isinstance(theirs, Sequence) and isinstance(ours, Sequence) and not isinstance(theirs, str)
    ):
        if len(theirs) != len(ours):
            yield f"{place}: Kubernetes has {len(theirs)}, Moorage {len(ours)}"
        for index, (one, other) in enumerate(zip(theirs, ours, strict=False)):
            yield from _faults(f"{place}[{index}]", one, other)
    elif type(theirs) is not type(ours) or _plain(theirs) != _plain(ours):
        yield f"{place or 'body'}: Kubernetes {_shown(theirs)}, Moorage {_shown(ours)}"


def _plain(value: Any) -> Any:
    """Return a value without what differs from run to run."""
    if not isinstance(value, str):
        return value
    if _AGE.fullmatch(value):
        return "AGE"
    text = _TOKEN_VOLUME.sub("TOKEN", _UID.sub("UID", _TIME.sub("TIME", value)))
    return _CURRENT.sub("current: N", text)


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:160]
