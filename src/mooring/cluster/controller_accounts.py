"""Clients with which each controller acts as its own service account.

    clients = ControllerClients(manager, connect)
    ControllerProgram(manager, context, client_of=clients.client_of)

As in kube-controller-manager, the manager's user reads all kinds and requests tokens for the
service accounts in kube-system. A controller writes as its account, so it can do no more than its
role allows. A token is requested when it is first needed, and again when a fifth of its lifetime is
left or the server rejects it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from mooring.api.authentication import TokenRequest, TokenRequestSpec
from mooring.api.core import ServiceAccount
from mooring.api.meta import ObjectMeta
from mooring.client.api_client import ApiClient
from mooring.client.client_factory import Token, Tokens
from mooring.client.contract import Client
from mooring.client.errors import AlreadyExistsError, ClientError, NotFoundError
from mooring.client.writes import Create
from mooring.kit.clock import REAL, Clock

NAMESPACE = "kube-system"
TOKEN_S = 3600
USED_SHARE = 0.8  # of a token's time

# Controllers whose account has another name than they themselves, as Kubernetes has them.
_ACCOUNTS = {
    "daemonset-controller": "daemon-set-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "node-lifecycle-controller": "node-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "resourceclaim-controller": "resource-claim-controller",
    "resourceclaim-controller-groups": "resource-claim-controller",
    "resourceclaim-controller-releases": "resource-claim-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "taint-eviction-controller": "node-controller",
}

Connect = Callable[[Tokens], ApiClient]  # returns a client that shows these tokens


def account_of(controller: str) -> str:
    """Return the name of a controller's service account."""
    return _ACCOUNTS.get(controller, controller)


class ControllerClients:
    """The clients of service accounts; close them after use."""

    def __init__(self, manager: Client, connect: Connect, *, clock: Clock = REAL) -> None:
        self._manager, self._connect, self._clock = manager, connect, clock
        self._clients: dict[str, ApiClient] = {}

    def client_of(self, controller: str) -> ApiClient:
        """Return the client of a controller's account; controllers of one account share it."""
        account = account_of(controller)
        if account not in self._clients:
            self._clients[account] = self._connect(lambda: self._token(account))
        return self._clients[account]

    async def close(self) -> None:
        """Close all clients."""
        for client in self._clients.values():
            await client.close()

    async def check(self) -> None:
        """Raise ClientError if no token can be requested."""
        await self._token(account_of("deployment-controller"))

    async def _token(self, account: str) -> Token:
        try:
            try:
                granted = await self._ask(account)
            except NotFoundError:
                await self._make(account)
                granted = await self._ask(account)
        except ClientError as error:
            message = f"no token for {NAMESPACE}/{account}: {error.message}"
            raise type(error)(message, code=error.code, reason=error.reason) from None
        lasts_s = granted.spec.expiration_seconds or TOKEN_S
        # By our own clock from now on: the server's may show another time.
        until = self._clock.now() + timedelta(seconds=lasts_s * USED_SHARE)
        return Token(granted.status.token, until)

    async def _ask(self, account: str) -> TokenRequest:
        metadata = ObjectMeta(name=account, namespace=NAMESPACE)
        wish = TokenRequest(metadata=metadata, spec=TokenRequestSpec(expiration_seconds=TOKEN_S))
        granted: TokenRequest = await self._manager.write(Create(wish))
        return granted

    async def _make(self, account: str) -> None:
        metadata = ObjectMeta(name=account, namespace=NAMESPACE)
        with suppress(AlreadyExistsError):  # someone else made it just now
            await self._manager.write(Create(ServiceAccount(metadata=metadata)))
