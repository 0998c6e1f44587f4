"""A cluster that is asked over the network, as one more source of objects."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from mooring.client.apiclient import ApiClient
from mooring.client.connecting import find_access, http_client
from mooring.client.contract import Page
from mooring.client.errors import ClientError, ForbiddenError, NotFoundError
from mooring.client.paging import list_all
from mooring.insight.clusters.intake import Intake
from mooring.insight.clusters.snapshot import FIELDS
from mooring.insight.concerns import Concern


class Live(NamedTuple):
    """The cluster of a kubeconfig, as it is now."""

    kubeconfig: str = ""  # empty: where kubectl would look
    context: str = ""

    def give(self, intake: Intake) -> None:
        """Give all objects that decide anything; a cluster that cannot be asked is noted."""
        try:
            access = find_access(self.kubeconfig, context=self.context)
            pages = asyncio.run(_lists(http_client(access)))
        except ClientError as error:
            intake.unreadable.append(f"cluster: {error}")
            return
        for struct, page in pages.items():
            if isinstance(page, ForbiddenError):
                fact = f"objects of kind {struct.__name__} may not be listed: {page}"
                intake.add_concerns(
                    [Concern("forbidden-kind", fact, "nothing of it is in the answer")]
                )
            elif page is not None:
                for value in page.values:
                    intake.add_object(value, access.server)


async def _lists(client: ApiClient) -> dict[type[Any], Page | ForbiddenError | None]:
    """Return all objects of each kind; None for a kind that the server does not have."""
    async with client:
        answers = await asyncio.gather(*(_list(client, struct) for struct in FIELDS))
    return dict(zip(FIELDS, answers, strict=True))


async def _list(client: ApiClient, struct: type[Any]) -> Page | ForbiddenError | None:
    try:
        return await list_all(client, struct)
    except NotFoundError:
        return None
    except ForbiddenError as error:
        return error
