"""Requests to the kubelet server, and their responses: a page, a log as it comes, or a WebSocket.

The status of the pod decides which container a request means; errors have Kubernetes' messages.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote

from moorage.api.codec import encode_json
from moorage.api.core import Container, Pod
from moorage.api.core.pod import ContainerStatus
from moorage.api.core.pod_log_options import ALL_STREAMS, PodLogOptions, read_log_options
from moorage.api.errors import DecodeError
from moorage.api.meta import object_text
from moorage.api.timestamp import Timestamp
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock
from moorage.kit.http_head import Head
from moorage.kit.metrics import PROMETHEUS
from moorage.node.errors import NoContainerError, NodeAgentError
from moorage.node.kubelet_server.port_forward import upgrade_fault
from moorage.node.kubelet_server.streaming import (
    PROTOCOLS,
    StreamOptions,
    chosen_protocol,
    read_stream_options,
)
from moorage.node.runtime.contract import ContainerId, LogRange, Runtime

PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
QUERY_FIELDS_MAX = 1000  # a command may have many arguments

_NO_SPDY = f"only WebSocket is spoken here, with {' or '.join(PROTOCOLS)}; SPDY is not"
_PULLING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class PlainResponse(NamedTuple):
    """A complete response."""

    body: bytes
    code: int = HTTPStatus.OK
    type: str = PLAIN


class LogResponse(NamedTuple):
    """A response that is sent in parts."""

    parts: AsyncIterator[bytes]


class StreamResponse(NamedTuple):
    """A WebSocket, and the streams that go through it."""

    protocol: str
    container: ContainerId
    options: StreamOptions


class PortForwardResponse(NamedTuple):
    """A connection that carries connections to ports of a pod."""

    pod: str
    uid: str


class DeferredResponse(NamedTuple):
    """A response that takes a while."""

    page: Awaitable[PlainResponse]


Response = DeferredResponse | PlainResponse | LogResponse | StreamResponse | PortForwardResponse


class RequestHandler:
    """Handles authenticated requests."""

    def __init__(
        self,
        pods: PodLister,
        runtime: Runtime,
        *,
        metrics: Callable[[], str] = lambda: "",
        summary: Callable[[], Awaitable[dict[str, Any]]] | None = None,
        config: Callable[[], dict[str, Any]] = dict,
        clock: Clock = REAL,
    ) -> None:
        self.runtime = runtime
        self._pods = pods
        self._metrics = metrics
        self._summary, self._config = summary, config
        self._clock = clock

    def answer(self, head: Head) -> Response:
        """Return the response to a request."""
        path, _, query = head.first[1].partition("?")
        try:
            fields = parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
            return self._route(head, [unquote(each) for each in path.split("/")[1:]], fields)
        except NoContainerError as error:
            return PlainResponse(str(error).encode(), error.code)
        except (DecodeError, ValueError) as error:
            return _bad_request(str(error))
        except Exception as error:
            FAULTS.note("kubelet server", path, error, "cannot be served")
            return PlainResponse(b"Internal Error", HTTPStatus.INTERNAL_SERVER_ERROR)

    def _route(self, head: Head, parts: list[str], fields: list[tuple[str, str]]) -> Response:
        match head.first[0], parts:
            case "GET" | "POST", [("exec" | "attach") as verb, namespace, pod, container]:
                return self._stream(head, verb, (namespace, pod, container), fields)
            case "GET" | "POST", ["portForward", namespace, pod, *uid] if len(uid) <= 1:
                return self._port_forward(head, namespace, pod, *uid)
            case "GET", ["containerLogs", namespace, pod, container]:
                return self._log(namespace, pod, container, dict(fields))
            case "GET", ["healthz"]:
                return PlainResponse(b"ok")
            case "GET", ["metrics"]:
                return PlainResponse(self._metrics().encode(), type=PROMETHEUS)
            case "GET", ["stats", "summary"] if self._summary is not None:
                return DeferredResponse(_json_page(self._summary()))
            case "GET", ["configz"]:
                tree = {"kubeletconfig": self._config()}
                return PlainResponse(json.dumps(tree).encode(), type=JSON)
            case "GET", ["pods"]:
                return PlainResponse(self._listed(), type=JSON)
            case "GET", _:
                return PlainResponse(b"404 page not found\n", HTTPStatus.NOT_FOUND)
        return PlainResponse(b"405 method not allowed\n", HTTPStatus.METHOD_NOT_ALLOWED)

    def _listed(self) -> bytes:
        items = []
        for pod in self._pods.all():
            with FAULTS.guard("kubelet server", partial(object_text, pod)):
                items.append(encode_json(pod))
        listed = b",".join(items)
        return b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[' + listed + b"]}"

    # --- logs -------------------------------------------------------------------------------------

    def _log(self, namespace: str, pod: str, container: str, query: dict[str, str]) -> Response:
        options = read_log_options(query)
        if not _is_valid(options):
            return PlainResponse(
                b'{"message": "Invalid request."}', HTTPStatus.UNPROCESSABLE_ENTITY
            )
        if options.stream != ALL_STREAMS:
            return _bad_request(f'unable to return the given log stream: "{options.stream[:32]}"')
        found = log_container(self._pods, namespace, pod, container, previous=options.previous)
        return LogResponse(self.runtime.logs(found, self._range(options)))

    def _range(self, options: PodLogOptions) -> LogRange:
        since = options.since_time
        if options.since_seconds is not None:
            since = _before(self._clock, options.since_seconds)
        return LogRange(
            follow=options.follow,
            tail_lines=options.tail_lines,
            since=since,
            bytes_max=options.limit_bytes,
            has_times=options.timestamps,
        )

    # --- commands ---------------------------------------------------------------------------------

    def _stream(
        self, head: Head, verb: str, where: tuple[str, str, str], fields: list[tuple[str, str]]
    ) -> Response:
        options = read_stream_options(fields)
        container = running_container(self._pods, *where)
        if verb == "exec" and not options.command:
            return _bad_request("you must specify at least 1 command for exec")
        if verb == "attach":
            options = self._attachable(where, options)
        if not (options.input or options.output or options.errors):
            return _bad_request("you must specify at least 1 of stdin, stdout, stderr")
        if not head.upgrade:
            return _bad_request("Upgrade request required")
        protocol = chosen_protocol(head)
        if protocol is None:
            return _bad_request(_NO_SPDY)
        return StreamResponse(protocol, container, options)

    def _port_forward(self, head: Head, namespace: str, name: str, uid: str = "") -> Response:
        pod = _pod(self._pods, namespace, name, "pod does not exist")
        if uid and pod.metadata.uid != uid:
            raise NoContainerError(HTTPStatus.NOT_FOUND, "pod not found")
        if fault := upgrade_fault(head):
            return _bad_request(fault)
        return PortForwardResponse(f"{namespace}/{name}", pod.metadata.uid)

    def _attachable(self, where: tuple[str, str, str], options: StreamOptions) -> StreamOptions:
        """Return the streams of a container: a terminal and input only if its spec has them.

        As in the kubelet its own terminal counts, not the requested one.
        """
        container = container_spec(self._pods, *where)
        return StreamOptions(
            output=options.output,
            errors=options.errors and not container.tty,
            input=options.input and container.stdin,
            tty=container.tty,
        )


async def _json_page(tree: Awaitable[dict[str, Any]]) -> PlainResponse:
    try:
        return PlainResponse(json.dumps(await tree).encode(), type=JSON)
    except (NodeAgentError, OSError) as error:
        text = f"Internal Error: {error}"
        return PlainResponse(text.encode(), HTTPStatus.INTERNAL_SERVER_ERROR)


def _bad_request(text: str) -> PlainResponse:
    return PlainResponse(text.encode(), HTTPStatus.BAD_REQUEST)


def _is_valid(options: PodLogOptions) -> bool:
    tail, size, since = options.tail_lines, options.limit_bytes, options.since_seconds
    return (
        (tail is None or tail >= 0)
        and (size is None or size > 0)
        and (since is None or (since > 0 and options.since_time is None))
    )


def _before(clock: Clock, seconds: int) -> Timestamp | None:
    """Return the time some seconds ago; None for one before the calendar."""
    try:
        return Timestamp(clock.now() - timedelta(seconds=seconds))
    except OverflowError:
        return None


# --- containers -----------------------------------------------------------------------------------


class PodLister(Protocol):
    """The pods of this node, each with its current status.

    A container's restart count is the attempt whose log is read, as the runtime counts them.
    """

    def find(self, namespace: str, name: str) -> Pod | None:
        """Return a pod, if it is here."""

    def all(self) -> Iterable[Pod]:
        """Return all pods."""


def log_container(
    pods: PodLister, namespace: str, name: str, container: str, *, previous: bool
) -> ContainerId:
    """Return the container whose log is requested, or raise NoContainerError."""
    pod = _pod(pods, namespace, name, f'pod "{name}" does not exist')
    if container not in _containers(pod):
        text = f'container "{container}" not found in pod "{name}"'
        raise NoContainerError(HTTPStatus.NOT_FOUND, text)
    attempt = _attempt(pod, container, previous=previous)
    return ContainerId(pod.metadata.uid, container, attempt)


def running_container(pods: PodLister, namespace: str, name: str, container: str) -> ContainerId:
    """Return a running container, or raise NoContainerError."""
    pod = _pod(pods, namespace, name, "pod does not exist")
    status = _status(pod, container)
    if status is None or status.state.running is None:
        text = f'container not found ("{container}")'
        raise NoContainerError(HTTPStatus.INTERNAL_SERVER_ERROR, text)
    return ContainerId(pod.metadata.uid, container, status.restart_count)


def container_spec(pods: PodLister, namespace: str, name: str, container: str) -> Container:
    """Return the spec of a container, or raise NoContainerError."""
    pod = _pod(pods, namespace, name, "pod does not exist")
    spec = pod.spec
    for each in (*spec.containers, *spec.init_containers, *spec.ephemeral_containers):
        if each.name == container:
            return each
    text = f'container "{container}" not found in pod "{name}"'
    raise NoContainerError(HTTPStatus.NOT_FOUND, text)


def _pod(pods: PodLister, namespace: str, name: str, missing: str) -> Pod:
    pod = pods.find(namespace, name)
    if pod is None:
        raise NoContainerError(HTTPStatus.NOT_FOUND, missing)
    return pod


def _containers(pod: Pod) -> list[str]:
    spec = pod.spec
    listed = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return [container.name for container in listed]


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    status = pod.status
    for listed in (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    ):
        for each in listed or ():
            if each.name == container:
                return each
    return None


def _attempt(pod: Pod, container: str, *, previous: bool) -> int:
    status = _status(pod, container)
    where = f'container "{container}" in pod "{pod.metadata.name}"'
    if status is None:
        raise _no_container(f"{where} is not available")
    state, has_ended_before = status.state, status.last_state.terminated is not None
    is_there = state.running is not None or state.terminated is not None
    if previous:
        if not has_ended_before:
            raise _no_container(f"previous terminated {where} not found")
        # While it waits for its restart, the ended attempt is still the newest.
        return status.restart_count - 1 if is_there else status.restart_count
    if is_there or has_ended_before:
        return status.restart_count
    if state.waiting is None:
        raise _no_container(f"{where} is waiting to start - no logs yet")
    reason = state.waiting.get("reason", "") if isinstance(state.waiting, dict) else ""
    raise _no_container(f"{where} is waiting to start: {_PULLING.get(reason, reason)}")


def _no_container(text: str) -> NoContainerError:
    return NoContainerError(HTTPStatus.BAD_REQUEST, text)
