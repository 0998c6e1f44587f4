"""Writes carried out, one after the other: what plans return, done.

That there is an object already, or none any more to delete, is no error: the plan wanted it so. Any
other refusal is raised, and what comes after is not done; whoever asked plans anew and tries again.
What is told (events) never fails and is never waited for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from mooring.client.contract import Client
from mooring.client.errors import AlreadyExistsError, NotFoundError
from mooring.client.writes import Create, Delete, Tell, Write

LOG = logging.getLogger(__name__)


def _untold(tell: Tell) -> None:
    LOG.info("event: %s: %s", tell.reason, tell.message)


async def act(
    client: Client, writes: Iterable[Write], *, tell: Callable[[Tell], None] = _untold
) -> list[Any]:
    """Carry out writes in order, and return for each the object as it is stored now, or None."""
    results: list[Any] = []
    for write in writes:
        if isinstance(write, Tell):
            tell(write)
            results.append(None)
            continue
        try:
            results.append(await client.write(write))
        except AlreadyExistsError:
            if not isinstance(write, Create):
                raise
            results.append(None)
        except NotFoundError:
            if not isinstance(write, Delete):
                raise
            results.append(None)
    return results
