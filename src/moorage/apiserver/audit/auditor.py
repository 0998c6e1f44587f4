"""The audit trail of requests, and the log file that takes it.

A request hands its notes over and goes on; a thread writes them. Notes that come faster than the
disk takes them are dropped and counted: a full disk costs audit events, never requests.
"""

from __future__ import annotations

import logging
import os
import queue
import re
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol

from moorage.api.timestamp import Timestamp
from moorage.apiserver.audit.event import AuditBody, AuditNote, line_of
from moorage.apiserver.audit.policy import (
    COMPLETE,
    RECEIVED,
    STARTED,
    AuditDecision,
    AuditLevel,
    AuditPolicy,
    decide,
)
from moorage.apiserver.auth.access import Allowed, Decision, RequestAttributes
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import ClosingStream, Request, Response, StreamingResponse
from moorage.kit import metrics

LOG = logging.getLogger(__name__)

WAITING_NOTES_MAX = 10_000
WAITING_BYTES_MAX = 64 * 1024 * 1024
CLOSE_S_MAX = 5.0
WARN_EVERY = 1000  # lost events, after the first
MEGABYTE = 1024 * 1024
STANDARD_OUTPUT = "-"

_STAMP = "%Y-%m-%dT%H-%M-%S.%f"


class Rotation(NamedTuple):
    """When the log file is rotated, and which old files are kept; 0 is no bound."""

    size_mb_max: int = 100
    backups_max: int = 0
    age_days_max: int = 0


class AuditLog:
    """The audit log."""

    def __init__(
        self,
        path: str,
        rotation: Rotation = Rotation(),  # noqa: B008
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._file = _Rotating(Path(path), rotation, now) if path != STANDARD_OUTPUT else None
        self._queue: queue.SimpleQueue[AuditNote | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting_bytes = 0
        self.written = 0
        self.lost = 0  # dropped, or not written
        self._thread = threading.Thread(target=self._run, name="audit-log", daemon=True)
        self._thread.start()

    def put(self, note: AuditNote) -> None:
        """Queue a note for writing; never waits."""
        size = note.size
        with self._lock:
            is_full = self._queue.qsize() >= WAITING_NOTES_MAX
            if is_full or self._waiting_bytes + size > WAITING_BYTES_MAX:
                self._count_loss("notes come faster than they can be written")
                return
            self._waiting_bytes += size
        self._queue.put(note)

    def close(self) -> None:
        """Write queued notes, for a bounded time, and close."""
        self._queue.put(None)
        self._thread.join(CLOSE_S_MAX)

    def _run(self) -> None:
        while (note := self._queue.get()) is not None:
            with self._lock:
                self._waiting_bytes -= note.size
            try:
                self._write(line_of(note))
                self.written += 1
            except Exception as error:  # Requests and the log go on, whatever it is.
                with self._lock:
                    self._count_loss(str(error))
        if self._file is not None:
            self._file.close()

    def _write(self, line: bytes) -> None:
        if self._file is None:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        else:
            self._file.write(line)

    def _count_loss(self, why: str) -> None:
        if self.lost % WARN_EVERY == 0:
            LOG.warning("audit log: %s; lost so far: %d", why, self.lost + 1)
        self.lost += 1


class _Rotating:
    """A log file that only its owner can read, with rotated files beside it."""

    def __init__(self, path: Path, rotation: Rotation, now: Callable[[], datetime]) -> None:
        self._path = path
        self._rotation = rotation
        self._now = now
        self._file = _opened(path)

    def write(self, line: bytes) -> None:
        """Write a line; rotate the file first if the line does not fit."""
        if self._file.closed:  # it could not be opened again after it was turned over
            self._file = _opened(self._path)
        size_max = self._rotation.size_mb_max * MEGABYTE
        size = self._file.tell()
        if size_max and size and size + len(line) > size_max:
            self._turn_over()
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _turn_over(self) -> None:
        self._file.close()
        stamp = self._now().strftime(_STAMP)[:-3]
        older = self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}")
        try:
            os.replace(self._path, older)
        finally:
            self._file = _opened(self._path)
        self._remove_old()

    def _remove_old(self) -> None:
        backups, days = self._rotation.backups_max, self._rotation.age_days_max
        found = self._older_files()
        gone = found[backups:] if backups else []
        if days:
            oldest = (self._now() - timedelta(days=days)).strftime(_STAMP)
            gone += [file for file in found if self._stamp_of(file) < oldest]
        for file in gone:
            file.unlink(missing_ok=True)

    def _older_files(self) -> list[Path]:
        """Return the rotated files, newest first."""
        name = re.compile(
            rf"{re.escape(self._path.stem)}-\d{{4}}-\d\d-\d\dT[\d.-]+{re.escape(self._path.suffix)}"
        )
        files = [file for file in self._path.parent.iterdir() if name.fullmatch(file.name)]
        return sorted(files, key=self._stamp_of, reverse=True)

    def _stamp_of(self, file: Path) -> str:
        return file.name.removeprefix(f"{self._path.stem}-")


def _opened(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    file = os.fdopen(descriptor, "ab")
    file.seek(0, os.SEEK_END)
    return file


# --- the trail of a request -----------------------------------------------------------------------

ID_LENGTH_MAX = 64
ID_HEADER = "audit-id"


class Log(Protocol):
    """The audit log."""

    written: int
    lost: int

    def put(self, note: AuditNote) -> None:
        """Take a note; never waits and never raises."""


class Trail:
    """The audit trail of one request; this one records nothing."""

    def authenticated(self, user: User | None, asked: RequestAttributes) -> None:
        """Note the user and the attributes of the request."""

    def authorized(self, decision: Decision) -> None:
        """Note the decision of the authorizer."""

    def annotate(self, name: str, text: str) -> None:
        """Add an annotation to the event; the last text of a name counts."""

    def answered(self, answer: Response | StreamingResponse) -> Response | StreamingResponse:
        """Note the response; of a stream, its end too."""
        return answer


class Audit(Protocol):
    """Starts audit trails."""

    def trail(self, request: Request) -> Trail:
        """Return the trail of a new request."""


class Auditor:
    """Logs the requests that a policy selects."""

    def __init__(
        self,
        policy: AuditPolicy,
        log: Log,
        now: Callable[[], Timestamp],
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._policy = policy
        self._log = log
        self._now = now
        self._new_id = new_id

    def families(self) -> Iterator[metrics.Family]:
        """Yield the metrics of the log."""
        yield from log_families(lambda: self._log.written, lambda: self._log.lost)

    def trail(self, request: Request) -> Trail:
        """Return the trail of a new request."""
        given = request.headers.get(ID_HEADER, "")
        is_good = 0 < len(given) <= ID_LENGTH_MAX and given.isprintable()
        audit_id = given if is_good else self._new_id()
        return _LoggedTrail(self._policy, self._log, self._now, request, audit_id)


def log_families(written: Callable[[], int], lost: Callable[[], int]) -> Iterator[metrics.Family]:
    """Yield the metrics of an audit log."""
    yield metrics.Gauge(
        "apiserver_audit_event_total",
        "Events that were written to the audit log.",
        (),
        lambda: {(): written()},
        is_counter=True,
    )
    yield metrics.Gauge(
        "apiserver_audit_error_total",
        "Events that the audit log lost.",
        ("plugin",),
        lambda: {("log",): lost()},
        is_counter=True,
    )


class _LoggedTrail(Trail):
    def __init__(
        self,
        policy: AuditPolicy,
        log: Log,
        now: Callable[[], Timestamp],
        request: Request,
        audit_id: str,
    ) -> None:
        self._policy = policy
        self._log = log
        self._now = now
        self._request = request
        self._audit_id = audit_id
        self._received = now()
        self._user: User | None = None
        self._asked = RequestAttributes(request.method.lower(), path=request.path)
        self._verdict = AuditDecision()
        self._annotations: tuple[tuple[str, str], ...] = ()

    def authenticated(self, user: User | None, asked: RequestAttributes) -> None:
        self._user, self._asked = user, asked
        self._verdict = decide(self._policy, user, asked)
        self._note(RECEIVED)

    def authorized(self, decision: Decision) -> None:
        word = "allow" if isinstance(decision, Allowed) else "forbid"
        self._annotations = (
            ("authorization.k8s.io/decision", word),
            ("authorization.k8s.io/reason", decision.reason),
        )

    def annotate(self, name: str, text: str) -> None:
        self._annotations = (*self._annotations, (name, text))

    def answered(self, answer: Response | StreamingResponse) -> Response | StreamingResponse:
        if self._verdict.level is AuditLevel.NONE:
            return answer
        headers = (*answer.headers, ("Audit-Id", self._audit_id))
        if isinstance(answer, Response):
            body = AuditBody(answer.body, answer.content_type)
            self._note(COMPLETE, answer.status, body)
            return answer._replace(headers=headers)
        self._note(STARTED, answer.status)
        ending = ClosingStream(answer.chunks, lambda: self._note(COMPLETE, answer.status))
        return answer._replace(headers=headers, chunks=ending)

    def _note(self, stage: str, code: int = 0, response: AuditBody | None = None) -> None:
        level, omitted, omits_managed_fields = self._verdict
        if level is AuditLevel.NONE or stage in omitted:
            return
        request = self._request
        content_type = request.headers.get("content-type", "")
        # Every level has the message of errors and the name of created objects.
        keeps_request = stage != RECEIVED and (
            level >= AuditLevel.REQUEST or self._asked.verb == "create"
        )
        keeps_response = level is AuditLevel.REQUEST_RESPONSE or code >= 400
        self._log.put(
            AuditNote(
                level=level,
                stage=stage,
                audit_id=self._audit_id,
                uri=request.uri or request.path,
                asked=self._asked,
                user=self._user,
                received=self._received,
                noted=self._now(),
                source=request.client,
                agent=request.headers.get("user-agent", ""),
                annotations=self._annotations,
                code=code,
                request=AuditBody(request.body, content_type) if keeps_request else None,
                response=response if keeps_response else None,
                omits_managed_fields=omits_managed_fields,
            )
        )


class NoAudit:
    """Audits nothing."""

    def trail(self, request: Request) -> Trail:  # noqa: ARG002
        """Return a trail that records nothing."""
        return _NO_TRAIL


_NO_TRAIL: Final = Trail()
NO_AUDIT: Final = NoAudit()
