"""A request on its way: what is noted of it when it comes, when it is answered, when it ends."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from mooring.api.timestamp import Timestamp
from mooring.apiserver.auditing.events import Body, Note
from mooring.apiserver.auditing.policy import (
    COMPLETE,
    RECEIVED,
    STARTED,
    Level,
    Policy,
    Verdict,
    decide,
)
from mooring.apiserver.calls import User
from mooring.apiserver.ending import Ending
from mooring.apiserver.exchange import Answer, Request, Streaming
from mooring.apiserver.security import Attributes, Decision
from mooring.kit import metrics

ID_LENGTH_MAX = 64
ID_HEADER = "audit-id"


class Log(Protocol):
    """Where notes go."""

    written: int
    lost: int

    def put(self, note: Note) -> None:
        """Take a note; never waits, never raises."""


class Trail(Protocol):
    """What happens to one request."""

    def known(self, user: User | None, asked: Attributes) -> None:
        """Note who asks for what, once that is known."""

    def decided(self, decision: Decision) -> None:
        """Note whether it may be."""

    def answered(self, answer: Answer | Streaming) -> Answer | Streaming:
        """Note what came of it; of a stream also that it ends."""


class Audit(Protocol):
    """Whatever notes requests."""

    def trail(self, request: Request) -> Trail:
        """Return what follows a request that begins now."""


class Auditor:
    """Notes requests in a log, as a policy wants it."""

    def __init__(
        self,
        policy: Policy,
        log: Log,
        now: Callable[[], Timestamp],
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:
        self._policy = policy
        self._log = log
        self._now = now
        self._new_id = new_id

    def families(self) -> Iterator[metrics.Family]:
        """Give the counts of the log for /metrics."""
        yield from log_families(lambda: self._log.written, lambda: self._log.lost)

    def trail(self, request: Request) -> Trail:
        """Return what follows a request that begins now."""
        given = request.headers.get(ID_HEADER, "")
        is_good = 0 < len(given) <= ID_LENGTH_MAX and given.isprintable()
        audit_id = given if is_good else self._new_id()
        return _Trail(self._policy, self._log, self._now, request, audit_id)


def log_families(written: Callable[[], int], lost: Callable[[], int]) -> Iterator[metrics.Family]:
    """Give the metrics of an audit log."""
    yield metrics.Level(
        "apiserver_audit_event_total",
        "Events that were written to the audit log.",
        (),
        lambda: {(): written()},
        is_counter=True,
    )
    yield metrics.Level(
        "apiserver_audit_error_total",
        "Events that the audit log lost.",
        ("plugin",),
        lambda: {("log",): lost()},
        is_counter=True,
    )


class _Trail:
    def __init__(
        self,
        policy: Policy,
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
        self._asked = Attributes(request.method.lower(), path=request.path)
        self._verdict = Verdict()
        self._annotations: tuple[tuple[str, str], ...] = ()

    def known(self, user: User | None, asked: Attributes) -> None:
        self._user, self._asked = user, asked
        self._verdict = decide(self._policy, user, asked)
        self._note(RECEIVED)

    def decided(self, decision: Decision) -> None:
        word = "allow" if decision.is_allowed else "forbid"
        self._annotations = (
            ("authorization.k8s.io/decision", word),
            ("authorization.k8s.io/reason", decision.reason),
        )

    def answered(self, answer: Answer | Streaming) -> Answer | Streaming:
        if self._verdict.level is Level.NONE:
            return answer
        headers = (*answer.headers, ("Audit-Id", self._audit_id))
        if isinstance(answer, Answer):
            body = Body(answer.body, answer.content_type)
            self._note(COMPLETE, answer.status, body)
            return answer._replace(headers=headers)
        self._note(STARTED, answer.status)
        ending = Ending(answer.chunks, lambda: self._note(COMPLETE, answer.status))
        return answer._replace(headers=headers, chunks=ending)

    def _note(self, stage: str, code: int = 0, response: Body | None = None) -> None:
        level, omitted, omits_managed_fields = self._verdict
        if level is Level.NONE or stage in omitted:
            return
        request = self._request
        content_type = request.headers.get("content-type", "")
        # Of errors the message is noted at every level, and of objects that are made the name.
        keeps_request = stage != RECEIVED and (
            level >= Level.REQUEST or self._asked.verb == "create"
        )
        keeps_response = level is Level.REQUEST_RESPONSE or code >= 400
        self._log.put(
            Note(
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
                request=Body(request.body, content_type) if keeps_request else None,
                response=response if keeps_response else None,
                omits_managed_fields=omits_managed_fields,
            )
        )


class NoAudit:
    """Notes nothing."""

    def trail(self, request: Request) -> Trail:  # noqa: ARG002
        """Return what does nothing."""
        return _NO_TRAIL


class _NoTrail:
    def known(self, user: User | None, asked: Attributes) -> None:
        pass

    def decided(self, decision: Decision) -> None:
        pass

    def answered(self, answer: Answer | Streaming) -> Answer | Streaming:
        return answer


_NO_TRAIL: Final = _NoTrail()
NO_AUDIT: Final = NoAudit()
