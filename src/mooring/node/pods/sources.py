"""What pods are given from other objects: config maps, secrets, tokens of their accounts.

Which of them a pod or container needs is worked out first (pure); a `Library` reads them, and keeps
what it read for a while, so that many pods that need the same ask once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from mooring.api.authentication import BoundObjectReference, TokenRequest, TokenRequestSpec
from mooring.api.core import ConfigMap, Container, Pod, Secret
from mooring.api.meta import ObjectMeta
from mooring.client.errors import ClientError
from mooring.client.writes import Apply, Create, Delete, Patch, Update
from mooring.kit.clock import Clock

T = TypeVar("T")

CONFIG_MAP, SECRET = "configmap", "secret"
FRESH_S = 30.0  # how long what was read is taken for true
KEPT_MAX = 500
TOKEN_S = 3600
REFRESHED_PART = 0.8  # of its life a token is replaced after


class SourceError(Exception):
    """Something that a pod needs cannot be read; the text says why."""


class Source(NamedTuple):
    """An object that a pod is given something of, in its namespace."""

    kind: str
    name: str


class Wish(NamedTuple):
    """A token that a pod is to have."""

    audience: str
    seconds: int


Content = Mapping[str, bytes]
Contents = Mapping[Source, Content | None]  # None: there is no such object
Tokens = Mapping[Wish, str]


def needed_by_container(container: Container) -> Iterator[Source]:
    """Yield what the environment of a container needs."""
    for each in (*container.env_from, *(e.get("valueFrom") or {} for e in container.env)):
        for key, kind in (
            ("configMapRef", CONFIG_MAP),
            ("configMapKeyRef", CONFIG_MAP),
            ("secretRef", SECRET),
            ("secretKeyRef", SECRET),
        ):
            if (reference := each.get(key)) is not None:
                yield Source(kind, str(reference.get("name", "")))


def needed_by_volumes(pod: Pod) -> Iterator[Source]:
    """Yield what the volumes of a pod need."""
    for volume in pod.spec.volumes:
        if (secret := volume.get("secret")) is not None:
            yield Source(SECRET, str(secret.get("secretName", "")))
        if (config := volume.get("configMap")) is not None:
            yield Source(CONFIG_MAP, str(config.get("name", "")))
        for part in projections(volume):
            for key, kind in (("secret", SECRET), ("configMap", CONFIG_MAP)):
                if (found := part.get(key)) is not None:
                    yield Source(kind, str(found.get("name", "")))


def wishes_of(pod: Pod) -> Iterator[Wish]:
    """Yield the tokens that the volumes of a pod need."""
    for volume in pod.spec.volumes:
        for part in projections(volume):
            if (token := part.get("serviceAccountToken")) is not None:
                yield wish_of(token)


def wish_of(token: Mapping[str, Any]) -> Wish:
    """Return the token that a volume asks for."""
    return Wish(str(token.get("audience") or ""), int(token.get("expirationSeconds") or TOKEN_S))


def projections(volume: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return what a volume is put together from."""
    return (volume.get("projected") or {}).get("sources") or ()


class Caller(Protocol):
    """What is needed of a client."""

    async def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, or None when it is not there."""

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write and return the object as it is stored now."""


class Library:
    """Reads what pods need."""

    def __init__(self, client: Caller, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[tuple[str, Source], tuple[float, Content | None]] = {}

    async def read(self, namespace: str, sources: Iterable[Source]) -> Contents:
        """Return what these objects have, or raise SourceError."""
        wanted = tuple(dict.fromkeys(sources))
        found = await asyncio.gather(*(self._read(namespace, each) for each in wanted))
        return dict(zip(wanted, found, strict=True))

    async def _read(self, namespace: str, source: Source) -> Content | None:
        key, now_s = (namespace, source), self._clock.monotonic()
        at_s, content = self._kept.get(key, (-FRESH_S, None))
        if now_s - at_s < FRESH_S and content is not None:
            return content
        content = await self._get(namespace, source)
        self._kept.pop(key, None)
        self._kept[key] = (now_s, content)
        while len(self._kept) > KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return content

    async def _get(self, namespace: str, source: Source) -> Content | None:
        struct: type[Any] = ConfigMap if source.kind == CONFIG_MAP else Secret
        try:
            value = await self._client.get(struct, namespace, source.name)
            return None if value is None else content_of(value)
        except (ClientError, ValueError) as error:
            raise SourceError(f'{source.kind} "{source.name}": {error}') from None

    async def tokens(self, pod: Pod, wishes: Iterable[Wish]) -> Tokens:
        """Return tokens of the account of a pod, or raise SourceError."""
        return {wish: await self._token(pod, wish) for wish in dict.fromkeys(wishes)}

    async def _token(self, pod: Pod, wish: Wish) -> str:
        metadata = pod.metadata
        account = pod.spec.service_account_name or "default"
        bound = BoundObjectReference(
            kind="Pod", api_version="v1", name=metadata.name, uid=metadata.uid
        )
        spec = TokenRequestSpec(
            audiences=(wish.audience,) if wish.audience else None,
            expiration_seconds=wish.seconds,
            bound_object_ref=bound,
        )
        asked = ObjectMeta(name=account, namespace=metadata.namespace)
        try:
            granted = await self._client.write(Create(TokenRequest(metadata=asked, spec=spec)))
        except ClientError as error:
            raise SourceError(f"failed to fetch token: {error}") from None
        return str(granted.status.token)


def content_of(value: ConfigMap | Secret) -> dict[str, bytes]:
    """Return all that an object has, by key; raises ValueError for what is no base64."""
    encoded = value.data if isinstance(value, Secret) else value.binary_data
    found = {}
    for key, text in encoded.items():
        try:
            found[key] = base64.b64decode(text, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{key}: {error}") from None
    if isinstance(value, ConfigMap):
        found |= {key: text.encode() for key, text in value.data.items()}
    return found
