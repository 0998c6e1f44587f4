"""What is answered to a request: a page, a log as it comes, or a WebSocket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from mooring.api.codec import encode_json
from mooring.api.core.podlogs import ALL_STREAMS, PodLogOptions, read_log_options
from mooring.api.errors import DecodeError
from mooring.api.timestamp import Timestamp
from mooring.kit.clock import REAL, Clock
from mooring.kit.heads import Head
from mooring.kit.metrics import PROMETHEUS
from mooring.node.kubelet_server.channels import Wanted, wanted_of
from mooring.node.kubelet_server.contract import Pods
from mooring.node.kubelet_server.finding import (
    NoContainerError,
    container_spec,
    log_container,
    running_container,
)
from mooring.node.kubelet_server.sockets import PROTOCOLS, chosen_protocol
from mooring.node.runtime.contract import ContainerId, LogRange, Runtime

PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"
QUERY_FIELDS_MAX = 1000  # the words of a command are many

_NO_SPDY = f"only WebSocket is spoken here, with {' or '.join(PROTOCOLS)}; SPDY is not"


class Page(NamedTuple):
    """A whole answer."""

    body: bytes
    code: int = HTTPStatus.OK
    type: str = PLAIN


class Log(NamedTuple):
    """An answer that goes on."""

    parts: AsyncIterator[bytes]


class Conversation(NamedTuple):
    """A WebSocket, and what goes through it."""

    protocol: str
    container: ContainerId
    wanted: Wanted


Answer = Page | Log | Conversation


class Answering:
    """Answers requests of who is let in."""

    def __init__(
        self,
        pods: Pods,
        runtime: Runtime,
        *,
        metrics: Callable[[], str] = lambda: "",
        clock: Clock = REAL,
    ) -> None:
        self.runtime = runtime
        self._pods = pods
        self._metrics = metrics
        self._clock = clock

    def answer(self, head: Head) -> Answer:
        """Return what is answered."""
        path, _, query = head.first[1].partition("?")
        try:
            fields = parse_qsl(query, keep_blank_values=True, max_num_fields=QUERY_FIELDS_MAX)
            return self._found(head, [unquote(each) for each in path.split("/")[1:]], fields)
        except NoContainerError as error:
            return Page(str(error).encode(), error.code)
        except (DecodeError, ValueError) as error:
            return _refusal(str(error))

    def _found(self, head: Head, parts: list[str], fields: list[tuple[str, str]]) -> Answer:
        match head.first[0], parts:
            case "GET" | "POST", [("exec" | "attach") as door, namespace, pod, container]:
                return self._conversation(head, door, (namespace, pod, container), fields)
            case "GET", ["containerLogs", namespace, pod, container]:
                return self._log(namespace, pod, container, dict(fields))
            case "GET", ["healthz"]:
                return Page(b"ok")
            case "GET", ["metrics"]:
                return Page(self._metrics().encode(), type=PROMETHEUS)
            case "GET", ["pods"]:
                return Page(self._listed(), type=JSON)
            case "GET", _:
                return Page(b"404 page not found\n", HTTPStatus.NOT_FOUND)
        return Page(b"405 method not allowed\n", HTTPStatus.METHOD_NOT_ALLOWED)

    def _listed(self) -> bytes:
        items = b",".join(map(encode_json, self._pods.all()))
        return b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[' + items + b"]}"

    # --- logs -------------------------------------------------------------------------------------

    def _log(self, namespace: str, pod: str, container: str, query: dict[str, str]) -> Answer:
        options = read_log_options(query)
        if not _is_valid(options):
            return Page(b'{"message": "Invalid request."}', HTTPStatus.UNPROCESSABLE_ENTITY)
        if options.stream != ALL_STREAMS:
            return _refusal(f'unable to return the given log stream: "{options.stream[:32]}"')
        found = log_container(self._pods, namespace, pod, container, previous=options.previous)
        return Log(self.runtime.logs(found, self._range(options)))

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

    def _conversation(
        self, head: Head, door: str, where: tuple[str, str, str], fields: list[tuple[str, str]]
    ) -> Answer:
        wanted = wanted_of(fields)
        container = running_container(self._pods, *where)
        if door == "exec" and not wanted.command:
            return _refusal("you must specify at least 1 command for exec")
        if door == "attach":
            wanted = self._attachable(where, wanted)
        if not (wanted.input or wanted.output or wanted.errors):
            return _refusal("you must specify at least 1 of stdin, stdout, stderr")
        if not head.upgrade:
            return _refusal("Upgrade request required")
        protocol = chosen_protocol(head)
        if protocol is None:
            return _refusal(_NO_SPDY)
        return Conversation(protocol, container, wanted)

    def _attachable(self, where: tuple[str, str, str], wanted: Wanted) -> Wanted:
        """Return what can be had of a container: a terminal and input only if it has them.

        As with kubelets its own terminal counts, not the one that is asked for.
        """
        container = container_spec(self._pods, *where)
        return Wanted(
            output=wanted.output,
            errors=wanted.errors and not container.tty,
            input=wanted.input and container.stdin,
            tty=container.tty,
        )


def _refusal(text: str) -> Page:
    return Page(text.encode(), HTTPStatus.BAD_REQUEST)


def _is_valid(options: PodLogOptions) -> bool:
    tail, size, since = options.tail_lines, options.limit_bytes, options.since_seconds
    return (
        (tail is None or tail >= 0)
        and (size is None or size > 0)
        and (since is None or (since > 0 and options.since_time is None))
    )


def _before(clock: Clock, seconds: int) -> Timestamp | None:
    """Return the time so long ago; None for one before the calendar."""
    try:
        return Timestamp(clock.now() - timedelta(seconds=seconds))
    except OverflowError:
        return None
