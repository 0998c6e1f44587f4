"""Router: the path of a request through the server.

    request ─ authenticate ─ flow control ─ authorize ─┬─ negotiate ─ verb (verbs.dispatch)
                                                       ├─ review (auth.reviews)
                                                       ├─ pods/log, exec, attach (node_proxy)
                                                       └─ other paths (http.non_resource)

Every error is a Status, in a representation that the client accepts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.errors import DecodeError
from moorage.apiserver.audit import NO_AUDIT, Audit
from moorage.apiserver.audit.auditor import Trail
from moorage.apiserver.auth.access import (
    Allowed,
    Authorizer,
    RequestAttributes,
    access_forbidden,
    access_of,
    attributes_of,
)
from moorage.apiserver.auth.authorizer import AccessControl, Sender
from moorage.apiserver.auth.reviews import answer_review
from moorage.apiserver.auth.users import User
from moorage.apiserver.custom_resources.requests import (
    check_served,
    deprecation,
    has_only_json,
    with_warnings,
)
from moorage.apiserver.dynamic_admission.plugin import admit_connection
from moorage.apiserver.http.direct_access import FAULT, DirectAccess, direct_labels_of
from moorage.apiserver.http.extensions import Extension, answer_extension, extension_for
from moorage.apiserver.http.flow_control import FlowControl, RequestClass, request_class
from moorage.apiserver.http.messages import (
    NOT_FOUND_TEXT,
    ClosingStream,
    Request,
    Response,
    StreamingResponse,
    Target,
    parse_path,
    text_response,
    without_watch,
)
from moorage.apiserver.http.metrics import (
    Metrics,
    RequestLabels,
    request_labels,
)
from moorage.apiserver.http.negotiation import negotiate
from moorage.apiserver.http.non_resource import (
    NonResourcePaths,
    ServedVersions,
    ServerDocuments,
    path_attributes,
)
from moorage.apiserver.http.response_encoder import error_response, tree_bytes
from moorage.apiserver.http.status import (
    StatusError,
    bad_request,
    internal,
    method_not_allowed,
    of_store,
    timed_out,
    unauthorized,
    unknown_resource,
    warned,
)
from moorage.apiserver.node_proxy.node_paths import answer_node_path, is_node_path
from moorage.apiserver.node_proxy.resource_metrics import METRICS, answer_metrics
from moorage.apiserver.node_proxy.streams import (
    answer_by_node,
    is_answered_by_node,
    is_tunnel,
    query_fields,
)
from moorage.apiserver.resources import REVIEWS, Review
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.verbs.dispatch import (
    check_verb,
    list_page,
    perform,
    perform_directly,
    verb_of,
    watch_batches,
)
from moorage.apiserver.verbs.list import ListPage
from moorage.apiserver.verbs.resource_request import (
    ResourceRequest,
    is_misplaced,
    read_plain_tree,
    resource_request_of,
)
from moorage.apiserver.verbs.watch import Batch
from moorage.apiserver.verbs.write import replace_with_status
from moorage.apiserver.worker_threads import LoopTurns
from moorage.store.errors import (
    StoreError,
)

LOG = logging.getLogger(__name__)

WATCH = "watch"
SELECTORS = ("labelSelector", "fieldSelector")
DIRECT_MAX = 32  # requests of this process that begin in one turn of the event loop


class Router:
    """Answers requests."""

    def __init__(
        self,
        server: ServerContext,
        access_control: AccessControl,
        documents: ServerDocuments,
        *,
        flow_control: FlowControl | None = None,
        audit: Audit = NO_AUDIT,
        reviews: tuple[Review, ...] = REVIEWS,
    ) -> None:
        self.metrics = Metrics()
        self.extensions: list[Extension] = []
        self._flow_control = flow_control or FlowControl()
        self.metrics.sources.append(self._flow_control.families)
        if server.admission is not None:
            self.metrics.sources.append(server.admission.families)
        self._audit = audit
        self._server = server
        self._access_control = access_control
        self._reviews = {(r.group, r.version, r.plural): r for r in reviews}
        self._versions = ServedVersions(server.resources, reviews)
        store = server.registry.store
        self._paths = NonResourcePaths(documents, self._versions, self.metrics, store)
        self._direct_turns = LoopTurns(DIRECT_MAX)
        self._direct = DirectAccess(access_control.authorizer, self._flow_control, self.metrics)

    async def handle(self, request: Request) -> Response | StreamingResponse:
        """Return the response to a request; never raises."""
        extension = extension_for(self.extensions, request.path)
        if extension is not None:
            request = replace(request, uri=request.path)  # Its queries may hold what no log may.
        watched_path = without_watch(request.path)
        target = parse_path(watched_path or request.path)
        verb = verb_of(request.method, target.name if target else "-", dict(request.query))
        if watched_path is not None:
            verb = WATCH
        trail = self._audit.trail(request)
        try:
            if extension is not None:
                access = self._access_control
                response = await answer_extension(extension, access, request, trail)
            else:
                response = await self._answer(request, target, verb, trail)
        except asyncio.CancelledError:  # It timed out, or the client has disconnected.
            trail.answered(error_response(timed_out(), request))
            raise
        except StatusError as error:
            response = error_response(error, request)
        except StoreError as error:
            response = error_response(of_store(error), request)
        except DecodeError as error:  # a custom resource whose defaults are too large
            response = error_response(bad_request(str(error)), request)
        except Exception:
            LOG.exception("%s %s", request.method, request.path)
            response = error_response(internal(FAULT), request)
        labels = self._labels(request, verb, target)
        self.metrics.requests.inc(*labels, str(response.status))
        if isinstance(response, StreamingResponse):
            ended = self.metrics.begun(labels)
            response = response._replace(chunks=ClosingStream(response.chunks, ended))
        return trail.answered(response)

    def _labels(self, request: Request, verb: str, target: Target | None) -> RequestLabels:
        """Return the metric labels of a request."""
        if target is None or (target.group, target.version) not in self._versions:
            return request_labels(request, verb, None, ())
        if target[:3] in self._reviews:
            return request_labels(request, verb, target, ())
        resource = self._server.resources.find(*target[:3])
        if resource is None:
            return request_labels(request, verb, target._replace(resource=""), ())
        return request_labels(request, verb, target, resource.subresources)

    async def _answer(
        self, request: Request, target: Target | None, verb: str, trail: Trail
    ) -> Response | StreamingResponse:
        attributes = (
            path_attributes(request)
            if target is None
            else attributes_of(verb, target, request.query)
        )
        sender = Sender(request.certificate, request.all_headers or tuple(request.headers.items()))
        try:
            user = await self._access_control.authenticate(request.headers, sender)
        except StatusError:
            trail.authenticated(None, attributes)
            raise
        trail.authenticated(user, attributes)
        if user is None:
            raise unauthorized()
        with self._flow_control.seat(user, request_class(request.method, verb)):
            if verb == WATCH and request.method not in ("GET", "HEAD"):
                raise method_not_allowed()
            self._authorize(user, attributes, trail)
            if verb == "get" and is_tunnel(target):  # It starts a command, too.
                self._authorize(user, attributes._replace(verb="create"), trail)
            if target is None:
                return await self._paths.answer(request)
            response = await self._resource(request, target, verb, user, trail)
        if isinstance(response, StreamingResponse):
            return await self._with_seat(response, request, user)
        return response._replace(user=user.name)

    def _authorize(self, user: User, attributes: RequestAttributes, trail: Trail) -> None:
        access = access_of(user, attributes)
        decision = self._access_control.authorizer.authorize(access)
        trail.authorized(decision)
        if not isinstance(decision, Allowed):
            raise access_forbidden(access, decision.reason)

    async def _with_seat(
        self, response: StreamingResponse, request: Request, user: User
    ) -> StreamingResponse:
        """Return a watch that has a seat of its own while it is open."""
        selector_bytes = sum(len(request.query.get(name, "")) for name in SELECTORS)
        try:
            self._flow_control.take_watch(user, selector_bytes)
        except StatusError:
            await ClosingStream(response.chunks, lambda: None).aclose()
            raise
        leave = partial(self._flow_control.leave_watch, user, selector_bytes)
        chunks = ClosingStream(response.chunks, leave)
        return response._replace(chunks=chunks, user=user.name)

    # --- clients in this process ------------------------------------------------------------------
    #
    # They authenticate every few seconds; everything else is checked as for requests over HTTP. An
    # audit log records HTTP messages, so with one they send those (`direct_client`).

    @property
    def authorizer(self) -> Authorizer:
        """Decides what users may do."""
        return self._access_control.authorizer

    @property
    def is_audited(self) -> bool:
        """Whether there is an audit log."""
        return self._audit is not NO_AUDIT

    @property
    def server(self) -> ServerContext:
        """The server."""
        return self._server

    async def authenticate(self, headers: Mapping[str, str], sender: Sender) -> User:
        """Return the user of a client, or raise 401."""
        user = await self._access_control.authenticate(headers, sender)
        if user is None:
            raise unauthorized()
        return user

    async def perform_directly(self, request: ResourceRequest, verb: str) -> Any:
        """Return the object of a request about one object, or raise StatusError."""
        await self._direct_turns.take()
        with self._direct.admitted(request, verb):
            return await perform_directly(self._server, request, verb)

    async def update_with_status_directly(self, request: ResourceRequest) -> Any:
        """Update an object and its status in one write, as two requests would one after the other.

        Return the stored object, or raise the StatusError of either; then nothing is written.
        """
        await self._direct_turns.take()
        status = replace(request, target=request.target._replace(subresource="status"))
        with self._direct.admitted(request, "update"):
            self._direct.check(status, "update")
            return (await replace_with_status(self._server, request, status)).value

    async def list_directly(self, request: ResourceRequest) -> ListPage:
        """Return the entries of a list, or raise StatusError."""
        with self._direct.admitted(request, "list"):
            return await list_page(self._server, request)

    async def watch_directly(self, request: ResourceRequest) -> AsyncGenerator[Batch, None]:
        """Yield the events of a watch, or raise StatusError; close it after use."""
        user = request.user
        with self._direct.admitted(request, WATCH):
            batches = await watch_batches(self._server, request)
        with self._flow_control.seat(user, RequestClass.WATCHING):
            ended = self.metrics.begun(direct_labels_of(request, WATCH))
            try:
                async for batch in batches:
                    yield batch
            finally:
                ended()
                await batches.aclose()  # type: ignore[attr-defined]

    # --- resources --------------------------------------------------------------------------------

    async def _resource(
        self, request: Request, target: Target, verb: str, user: User, trail: Trail
    ) -> Response | StreamingResponse:
        review = self._reviews.get((target.group, target.version, target.resource))
        if review is not None:
            return await self._review(request, target, review, user)
        if target[:2] == METRICS and self._server.nodes is not None:
            return await answer_metrics(self._server, target, request, user, verb)
        resource = self._server.resources.find(target.group, target.version, target.resource)
        if resource is None or is_misplaced(target, resource):
            if (target.group, target.version) in self._versions:
                raise unknown_resource()
            return text_response(NOT_FOUND_TEXT, 404)
        if resource.holds_namespaces:
            target = target._replace(namespace="")
        resource_request = resource_request_of(request, target, resource, user)
        if is_node_path(target):
            return await answer_node_path(self._server, target, request)
        if is_answered_by_node(target):
            check_verb(resource_request, verb)
            if is_tunnel(target):
                resource_request = replace(resource_request, annotate=trail.annotate)
                await admit_connection(self._server, resource_request, query_fields(request))
            return await answer_by_node(self._server, target, request)
        check_served(resource, target.version, verb)
        form = negotiate(
            request.accept,
            is_watch=verb == "watch",
            is_list=verb in ("list", "watch"),
            is_schemaless=has_only_json(resource),
        )
        resource_request = replace(resource_request, form=form, annotate=trail.annotate)
        check_verb(resource_request, verb)
        warnings = deprecation(resource, target.version)
        with warned(warnings):
            response = await perform(self._server, resource_request, verb)
        return with_warnings(response, warnings)

    async def _review(
        self, request: Request, target: Target, review: Review, user: User
    ) -> Response:
        if request.method != "POST":
            raise method_not_allowed()
        form = negotiate(request.accept)
        any_resource = next(self._server.resources.all())
        resource_request = resource_request_of(request, target, any_resource, user)
        kind = CATALOGUE.find(f"{review.group}/{review.version}", review.kind)
        answer = await answer_review(
            kind,
            read_plain_tree(resource_request, kind.api_version, kind.name),
            user,
            self._access_control,
            namespace=target.namespace,
            manager=resource_request.manager,
            now=self._server.now(),
        )
        return Response(tree_bytes(answer, form.media), 201, form.media)
