"""Fetches a new link to the page of a running cluster."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from mooring.client.client_factory import RestConfig, http_client
from mooring.client.contract import Request
from mooring.client.errors import ClientError

PATH: Final = "/ui/link"


class _Link(Struct, frozen=True):
    url: str


async def fetch_link(config: RestConfig) -> str:
    """Return a link that signs in as the user of a config, once.

    Raises ClientError if the server cannot be reached or has no page.
    """
    request = Request("POST", PATH, body=b"{}")
    async with http_client(config) as client:
        response = await client.send(request)
    try:
        return msgspec.json.decode(response.body, type=_Link).url
    except msgspec.DecodeError:
        raise ClientError(f"{config.server} has no page") from None
