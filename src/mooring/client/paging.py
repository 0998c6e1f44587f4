"""Long lists, page by page; from the start again when the server has forgotten where we were."""

from __future__ import annotations

from typing import Any

from mooring.client.contract import Client, Page
from mooring.client.errors import ExpiredError

PAGE = 2000
RESTARTS_MAX = 2  # then the list is asked for as a whole
PAGES_MAX = 100_000


async def list_all(
    client: Client,
    struct: type[Any],
    namespace: str = "",
    *,
    fields: str = "",
    labels: str = "",
    limit: int = PAGE,
) -> Page:
    """Return all objects of a kind, at one resource version."""
    for _ in range(RESTARTS_MAX):
        try:
            return await _pages(
                client, struct, namespace, fields=fields, labels=labels, limit=limit
            )
        except ExpiredError:
            continue
    return await client.list(struct, namespace, fields=fields, labels=labels)


async def _pages(
    client: Client, struct: type[Any], namespace: str, *, fields: str, labels: str, limit: int
) -> Page:
    values: list[Any] = []
    rest = ""
    for _ in range(PAGES_MAX):
        page = await client.list(
            struct, namespace, limit=limit, rest=rest, fields=fields, labels=labels
        )
        if not rest and not page.rest:
            return page
        values.extend(page.values)
        rest = page.rest
        if not rest:
            return Page(tuple(values), page.revision)
    raise ExpiredError(f"{struct.__name__}: the list does not end")
