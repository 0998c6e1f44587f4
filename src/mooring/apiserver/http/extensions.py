"""Extensions of the server: paths that another package answers, with bounds and rights of its own.

An extension learns who sends a request by asking for it: it may have credentials of its own, such
as cookies, which the server does not know. Queries of its paths may hold what no log may have, so
the audit log has the paths alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from mooring.apiserver.audit.auditor import Trail
from mooring.apiserver.auth.authorizer import AccessControl, Sender
from mooring.apiserver.auth.users import User
from mooring.apiserver.http.messages import Request, Response, StreamingResponse
from mooring.apiserver.http.non_resource import path_attributes


class Extension(Protocol):
    """Answers requests below a path of its own, for whoever it lets in."""

    prefix: str

    async def answer(
        self, request: Request, authenticate: Callable[[], Awaitable[User | None]]
    ) -> Response | StreamingResponse:
        """Return the response; `authenticate` returns who sends the request, as for any other."""
        ...


def extension_for(extensions: list[Extension], path: str) -> Extension | None:
    """Return the extension that a path belongs to."""
    for each in extensions:
        if path == each.prefix or path.startswith(f"{each.prefix}/"):
            return each
    return None


async def answer_extension(
    extension: Extension, access_control: AccessControl, request: Request, trail: Trail
) -> Response | StreamingResponse:
    """Return the response of an extension."""
    attributes = path_attributes(request)
    trail.authenticated(None, attributes)

    async def authenticate() -> User | None:
        headers = request.all_headers or tuple(request.headers.items())
        sender = Sender(request.certificate, headers)
        user = await access_control.authenticate(request.headers, sender)
        trail.authenticated(user, attributes)
        return user

    return await extension.answer(request, authenticate)
