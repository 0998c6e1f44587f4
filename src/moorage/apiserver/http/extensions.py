"""Extensions of the server: paths that another package serves, with its own bounds and rights.

An extension asks the server to authenticate a request only if necessary, because it may have its
own credentials, such as cookies. Queries may contain secrets, so the audit log has the paths only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from moorage.apiserver.audit.auditor import Trail
from moorage.apiserver.auth.authorizer import AccessControl, Sender
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import Request, Response, StreamingResponse
from moorage.apiserver.http.non_resource import path_attributes


class Extension(Protocol):
    """Handles requests below its path, and authorizes them itself."""

    prefix: str

    async def answer(
        self, request: Request, authenticate: Callable[[], Awaitable[User | None]]
    ) -> Response | StreamingResponse:
        """Return the response; `authenticate` returns the user as for other requests."""
        ...


def extension_for(extensions: list[Extension], path: str) -> Extension | None:
    """Return the extension that serves a path, if any."""
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
