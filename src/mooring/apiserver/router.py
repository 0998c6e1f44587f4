"""From a request to its answer: who asks, what for, whether they may, and what comes of it.

    request ─ authenticated ─ target ─ authorized ─ form ─ verb ─ answer
                                │
                                └ no resource: discovery, OpenAPI, health, version, metrics

Every refusal is a Status, in the form that the client reads.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from mooring.api.catalogue import CATALOGUE
from mooring.apiserver.auditing import NO_AUDIT, Audit
from mooring.apiserver.auditing.trail import Trail
from mooring.apiserver.calls import Call, User, read_plain_tree
from mooring.apiserver.discovery import Discovery
from mooring.apiserver.documents import Document
from mooring.apiserver.ending import Ending
from mooring.apiserver.exchange import NO_CACHE, Answer, Headers, Request, Streaming, text_answer
from mooring.apiserver.fairness import Sort, Turnstile, sort_of
from mooring.apiserver.guarding import RoleSecurity
from mooring.apiserver.metrics import Asked, Metrics, asked_of
from mooring.apiserver.negotiation import Form, form_of_errors, negotiate
from mooring.apiserver.openapi import Moved, OpenAPI
from mooring.apiserver.paths import MISSING, Target, parse_path, without_watch
from mooring.apiserver.reaching.answering import answer_by_node, is_conversation, is_of_node
from mooring.apiserver.representing import as_bytes, tree_bytes
from mooring.apiserver.resources import Resource
from mooring.apiserver.reviews import answer_review, with_owners
from mooring.apiserver.security import Attributes, Security, Sender, refusal_of
from mooring.apiserver.selectors import wanted_fields
from mooring.apiserver.served import REVIEWS, Review
from mooring.apiserver.service import Service
from mooring.apiserver.status import (
    About,
    StatusError,
    bad_request,
    forbidden,
    internal,
    method_not_allowed,
    not_acceptable,
    timed_out,
    too_many_requests,
    unauthorized,
    unavailable,
    unknown_resource,
)
from mooring.apiserver.verbs import check_verb, perform, verb_of, warning_headers
from mooring.kit.metrics import PROMETHEUS
from mooring.store.errors import (
    BadRequestError,
    ClosedError,
    NoRoomError,
    OverloadedError,
    StoreError,
    UnavailableError,
)

LOG = logging.getLogger(__name__)

WATCH = "watch"
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")


class Fixed(NamedTuple):
    """Documents that do not change while the server runs."""

    discovery: Discovery
    openapi: OpenAPI
    version: Document
    address: str = ""


class Router:
    """Answers requests."""

    def __init__(
        self,
        service: Service,
        security: Security,
        fixed: Fixed,
        *,
        turnstile: Turnstile | None = None,
        audit: Audit = NO_AUDIT,
        reviews: tuple[Review, ...] = REVIEWS,
    ) -> None:
        self.metrics = Metrics()
        self._turnstile = turnstile or Turnstile()
        self.metrics.sources.append(self._turnstile.families)
        self._audit = audit
        self._service = service
        self._security = security
        self._fixed = fixed
        self._reviews = {(r.group, r.version, r.plural): r for r in reviews}
        self._versions = {(r.group, version) for r in service.resources for version in r.kinds}
        self._versions |= {(r.group, r.version) for r in reviews}

    async def answer(self, request: Request) -> Answer | Streaming:
        """Return the answer to a request; never raises."""
        plain = without_watch(request.path)
        target = parse_path(plain or request.path)
        verb = verb_of(request.method, target.name if target else "-", dict(request.query))
        if plain is not None:
            verb = WATCH
        trail = self._audit.trail(request)
        try:
            answer = await self._answer(request, target, verb, trail)
        except asyncio.CancelledError:  # Its time is over, or the client is gone.
            trail.answered(refused(timed_out(), request))
            raise
        except StatusError as error:
            answer = refused(error, request)
        except StoreError as error:
            answer = refused(_of_store(error), request)
        except Exception:
            LOG.exception("%s %s", request.method, request.path)
            answer = refused(internal("the server could not do it; its log says more"), request)
        known = target if target and (target.group, target.version) in self._versions else None
        asked = self._asked(request, verb, known)
        self.metrics.requests.add(*asked, str(answer.status))
        if isinstance(answer, Streaming):
            ended = self.metrics.begun(asked)
            answer = answer._replace(chunks=Ending(answer.chunks, ended))
        return trail.answered(answer)

    def _asked(self, request: Request, verb: str, target: Target | None) -> Asked:
        """Return what a request asked for, as it is counted."""
        if target is None or target[:3] in self._reviews:
            return asked_of(request, verb, target, ())
        resource = self._service.resources.find(*target[:3])
        if resource is None:
            return asked_of(request, verb, target._replace(resource=""), ())
        return asked_of(request, verb, target, resource.subresources)

    async def _answer(
        self, request: Request, target: Target | None, verb: str, trail: Trail
    ) -> Answer | Streaming:
        asked = _path_attributes(request) if target is None else _attributes(verb, target, request)
        try:
            user = await self._security.authenticate(request.headers, _sender(request))
        except StatusError:
            trail.known(None, asked)
            raise
        trail.known(user, asked)
        if user is None:
            raise unauthorized()
        with self._turnstile.seat(user, sort_of(request.method, verb)):
            if verb == WATCH and request.method not in ("GET", "HEAD"):
                raise method_not_allowed()
            await self._authorize(user, asked, trail)
            if verb == "get" and is_conversation(target):  # It starts a command, too.
                await self._authorize(user, asked._replace(verb="create"), trail)
            if target is None:
                return await self._path(request)
            answer = await self._resource(request, target, verb, user)
        if isinstance(answer, Streaming):
            return await self._seated(answer, user)
        return answer

    async def _seated(self, answer: Streaming, user: User) -> Streaming:
        """Return a watch that has a seat of its own as long as it is open."""
        try:
            self._turnstile.take(user, Sort.WATCHING)
        except StatusError:
            await Ending(answer.chunks, lambda: None).aclose()
            raise
        leave = partial(self._turnstile.leave, user, Sort.WATCHING)
        return answer._replace(chunks=Ending(answer.chunks, leave))

    async def _resource(
        self, request: Request, target: Target, verb: str, user: User
    ) -> Answer | Streaming:
        review = self._reviews.get((target.group, target.version, target.resource))
        if review is not None:
            return await self._review(request, target, review, user)
        resource = self._service.resources.find(target.group, target.version, target.resource)
        if resource is None or _is_misplaced(target, resource):
            if (target.group, target.version) in self._versions:
                raise unknown_resource()
            return text_answer(MISSING, 404)
        if resource.plural == "namespaces":
            target = target._replace(namespace="")
        call = Call(
            target=target,
            resource=resource,
            user=user,
            query=request.query,
            agent=request.headers.get("user-agent", ""),
            content_type=request.headers.get("content-type", ""),
            body=request.body,
        )
        if is_of_node(target):
            check_verb(call, verb)
            return await answer_by_node(self._service, target, request)
        is_list = verb in ("list", "watch")
        form = negotiate(request.accept, is_watch=verb == "watch", is_list=is_list)
        call = replace(call, form=form)
        check_verb(call, verb)
        return await perform(self._service, call, verb)

    async def _authorize(self, user: User, attributes: Attributes, trail: Trail) -> None:
        decision = await self._security.authorize(user, attributes)
        trail.decided(decision)
        if decision.is_allowed:
            return
        why = refusal_of(user, attributes)
        if decision.reason:
            why = f"{why}: {decision.reason}"
        about = None
        if attributes.resource:
            about = About(attributes.resource, "", attributes.group)
        raise forbidden(about, attributes.name, why)

    async def _review(self, request: Request, target: Target, review: Review, user: User) -> Answer:
        if request.method != "POST":
            raise method_not_allowed()
        form = negotiate(request.accept)
        any_resource = next(self._service.resources.all())
        call = Call(
            target=target,
            resource=any_resource,
            user=user,
            query=request.query,
            agent=request.headers.get("user-agent", ""),
            content_type=request.headers.get("content-type", ""),
            body=request.body,
        )
        kind = CATALOGUE.find(f"{review.group}/{review.version}", review.kind)
        tree = read_plain_tree(call, kind.api_version, kind.name)
        now = self._service.now()
        if isinstance(self._security, RoleSecurity):
            answer = await self._security.review(kind, tree, user, target.namespace)
        else:
            answer = await answer_review(review, tree, user, self._security, now)
        answer = with_owners(answer, tree, kind, manager=call.manager, now=now)
        return Answer(tree_bytes(answer, form.media), 201, form.media)

    # --- paths that are no resources ----------------------------------------------------------

    async def _path(self, request: Request) -> Answer:
        path = request.path
        base = _base_of(path)
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if base in HEALTH_PATHS:
            return await self._health(path, request)
        match path.rstrip("/") or "/":
            case "/version":
                return _document(self._fixed.version, request)
            case "/metrics":
                revision = await self._service.registry.store.revision()
                return Answer(self.metrics.text(revision).encode(), 200, PROMETHEUS)
            case "/":
                return Answer(msgspec.json.encode({"paths": self._paths()}))
        return self._found(request)

    def _found(self, request: Request) -> Answer:
        path, accept = request.path, request.accept
        openapi, discovery = self._fixed.openapi, self._fixed.discovery
        if path in openapi:
            found = openapi.find(path, accept, request.query.get("hash", ""))
            if isinstance(found, Moved):
                headers = (*NO_CACHE, ("Location", found.location))
                return Answer(b"", 301, "text/plain; charset=utf-8", headers)
        elif path in discovery:
            found = discovery.find(path, accept, address=self._fixed.address)
        else:
            return text_answer(MISSING, 404)
        if found is None:
            raise not_acceptable(("application/json", "application/yaml"))
        return _document(found, request)

    def _paths(self) -> list[str]:
        bases = {f"/apis/{g}" if g else "/api" for g, _ in self._versions}
        versions = {f"/apis/{g}/{v}" if g else f"/api/{v}" for g, v in self._versions}
        others = {"/apis", *HEALTH_PATHS, "/metrics", "/openapi/v2", "/openapi/v3", "/version"}
        return sorted(bases | versions | others)

    async def _health(self, path: str, request: Request) -> Answer:
        checks = {"ping": True, "store": await self._is_store_well()}
        name = path.strip("/").partition("/")[2]
        if name and name not in checks:
            return text_answer(MISSING, 404)
        wanted = {name: checks[name]} if name else checks
        is_well = all(wanted.values())
        lines = [
            f"[{'+' if ok else '-'}]{check} {'ok' if ok else 'failed'}\n"
            for check, ok in wanted.items()
        ]
        kind = path.strip("/").partition("/")[0]
        if not is_well:
            return text_answer("".join(lines) + f"{kind} check failed\n", 500)
        if "verbose" in request.query:
            return text_answer("".join(lines) + f"{kind} check passed\n")
        return text_answer("ok")

    async def _is_store_well(self) -> bool:
        try:
            await self._service.registry.store.revision()
        except StoreError:
            return False
        return True


def _base_of(path: str) -> str:
    return f"/{path.strip('/').partition('/')[0]}"


def _path_attributes(request: Request) -> Attributes:
    """Return what a request for a path wants; who may ask for health may ask for its parts."""
    verb = request.method.lower() if request.method != "HEAD" else "get"
    base = _base_of(request.path)
    return Attributes(verb, path=base if base in HEALTH_PATHS else request.path)


def _attributes(verb: str, target: Target, request: Request) -> Attributes:
    """Return what a request wants; a field selector may name the object of a list."""
    asked = Attributes(verb, *_named(target))
    if verb not in ("list", "watch", "deletecollection"):
        return asked
    fields = wanted_fields(request.query.get("fieldSelector", ""))
    return asked._replace(name=asked.name or fields.get("metadata.name", ""), fields=fields)


def _sender(request: Request) -> Sender:
    return Sender(request.certificate, request.all_headers or tuple(request.headers.items()))


def refused(error: StatusError, request: Request) -> Answer:
    """Return a refusal as an answer."""
    status = error.status
    is_406 = status.reason == "NotAcceptable"
    form = Form() if is_406 else form_of_errors(request.accept)
    headers: Headers = NO_CACHE
    if status.details is not None and status.details.retry_after_seconds:
        headers += (("Retry-After", str(status.details.retry_after_seconds)),)
    headers += warning_headers(error.warnings)
    return Answer(as_bytes(status, form.media), status.code, form.media, headers)


def _document(document: Document, request: Request) -> Answer:
    headers = tuple(
        (name, value) for name, value in document.headers.items() if name != "Content-Type"
    )
    if document.is_known(request.headers.get("if-none-match", "")):
        return Answer(b"", 304, document.content_type, headers)
    return Answer(document.body, 200, document.content_type, headers)


def _named(target: Target) -> tuple[str, str, str, str, str, str]:
    return (
        target.group,
        target.version,
        target.resource,
        target.subresource,
        target.namespace,
        target.name,
    )


def _is_misplaced(target: Target, resource: Resource) -> bool:
    """Return whether a path has a namespace where there is none, or none where one is needed."""
    if resource.plural == "namespaces":
        return False
    if resource.namespaced:
        return bool(target.name) and not target.namespace
    return bool(target.namespace)


def _of_store(error: StoreError) -> StatusError:
    match error:
        case OverloadedError():
            return too_many_requests(1)
        case BadRequestError():
            return bad_request(str(error))
        case NoRoomError() | ClosedError() | UnavailableError():
            return unavailable(str(error))
    return internal(str(error))
