"""The environment and command of a container, and the objects that they come from.

$(NAME)     the value of a variable that is set before; unchanged if there is none
$$(NAME)    the text $(NAME)

Which ConfigMaps, Secrets and tokens a pod or container needs is worked out first. A `SourceCache`
reads them, and caches them for a while, so that many pods with the same needs read once.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from moorage.api.authentication import BoundObjectReference, TokenRequest, TokenRequestSpec
from moorage.api.core import ConfigMap, Container, Pod, Secret
from moorage.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from moorage.api.meta import ObjectMeta
from moorage.api.quantity import Quantity
from moorage.client.errors import ClientError
from moorage.client.writes import Apply, Create, Delete, Patch, Update
from moorage.kit.clock import Clock
from moorage.kit.go_quote import go_quote
from moorage.kit.lru import LRU
from moorage.node.errors import ConfigError, SourceError
from moorage.node.host_folders import HostFolders

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
CONFIG_ERROR = "CreateContainerConfigError"
NOTHING: Contents = {}
NO_VARIABLES: Mapping[str, str] = {}
CONFIG_MAP, SECRET = "configmap", "secret"
_WHOLE_REFERENCES = (("configMapRef", CONFIG_MAP), ("secretRef", SECRET))
_KEY_REFERENCES = (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET))
FRESH_S = 30.0  # how long an object is cached
CACHED_MAX = 500
TOKEN_S = 3600
REFRESHED_PART = 0.8  # of its lifetime, after which a token is replaced


class NodeContext(Struct, frozen=True):
    """The facts about its node that a pod can read."""

    node_name: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    allocatable: Mapping[str, Quantity] = {}
    host_folders: HostFolders = {}


def environment(
    pod: Pod,
    container: Container,
    node_context: NodeContext,
    contents: Contents = NOTHING,
    services: Mapping[str, str] = NO_VARIABLES,
) -> dict[str, str]:
    """Return the environment of a container, or raise ConfigError.

    The variables of services are there unless the container sets them.
    """
    found: dict[str, str] = {}
    for source in container.env_from:
        found |= _all_from(source, contents)
    for variable in container.env:
        name = str(variable.get("name", ""))
        source = variable.get("valueFrom")
        if source:
            value = _value_from(pod, container, source, node_context, name, contents)
            if value is not None:
                found[name] = value
        else:
            found[name] = expand(str(variable.get("value") or ""), {**services, **found})
    return {**services, **found}


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return a text with references to variables replaced."""

    def value(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return "$"
        return values.get(match.group(1), match.group(0))

    return _REFERENCE.sub(value, text)


def expand_all(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return texts with references to variables replaced."""
    return tuple(expand(text, values) for text in texts)


def _all_from(source: Mapping[str, Any], contents: Contents) -> dict[str, str]:
    prefix = str(source.get("prefix") or "")
    for key, kind in _WHOLE_REFERENCES:
        if (reference := source.get(key)) is not None:
            content = content_in(contents, kind, reference)
            return {f"{prefix}{name}": _text(data) for name, data in content.items()}
    return {}


def _value_from(
    pod: Pod,
    container: Container,
    source: Mapping[str, Any],
    node_context: NodeContext,
    name: str,
    contents: Contents,
) -> str | None:
    if reference := source.get("fieldRef"):
        path = str(reference.get("fieldPath", ""))
        value = field_value(pod, path, node_context)
        if value is None:
            raise ConfigError(f"env {name}: unsupported fieldPath: {path}")
        return value
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, container, reference, node_context)
    for key, kind in _KEY_REFERENCES:
        if (reference := source.get(key)) is not None:
            data = content_in(contents, kind, reference).get(str(reference.get("key", "")))
            if data is None and not reference.get("optional"):
                place = f"{pod.metadata.namespace}/{reference.get('name')}"
                kind_name = "ConfigMap" if kind == CONFIG_MAP else "Secret"
                raise ConfigError(
                    f"couldn't find key {reference.get('key')} in {kind_name} {place}"
                )
            return None if data is None else _text(data)
    kinds = ", ".join(sorted(source)) or "nothing"
    raise ConfigError(f"env {name}: a value from {kinds} is not supported by this node")


def content_in(contents: Contents, kind: str, reference: Mapping[str, Any]) -> Content:
    """Return an object's content, empty if it is optional and missing, or raise ConfigError."""
    name = str(reference.get("name") or reference.get("secretName") or "")
    content = contents.get(ObjectSource(kind, name))
    if content is not None:
        return content
    if reference.get("optional"):
        return {}
    raise ConfigError(f'{kind} "{name}" not found')


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def field_value(pod: Pod, path: str, node_context: NodeContext) -> str | None:
    """Return a field of a pod for the downward API; None if the API does not have it."""
    metadata = pod.metadata
    if match := _KEYED.fullmatch(path):
        values = metadata.labels if match.group(1) == "labels" else metadata.annotations
        return values.get(match.group(2), "")
    return {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "metadata.labels": _listed(metadata.labels),
        "metadata.annotations": _listed(metadata.annotations),
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.hostIP": node_context.host_ip,
        "status.hostIPs": node_context.host_ip,
        "status.podIP": node_context.pod_ip,
        "status.podIPs": node_context.pod_ip,
    }.get(path)


def _listed(values: Mapping[str, str]) -> str:
    """Return labels or annotations as lines of key="value"."""
    return "\n".join(f"{key}={go_quote(value)}" for key, value in sorted(values.items()))


def resource_value(
    pod: Pod, container: Container, reference: Mapping[str, Any], node_context: NodeContext
) -> str:
    """Return a request or limit of a container in units of the divisor, or raise ConfigError."""
    name = str(reference.get("containerName") or container.name)
    all_ = (*pod.spec.init_containers, *pod.spec.containers)
    found = next((each for each in all_ if each.name == name), None)
    if found is None:
        raise ConfigError(f"resourceFieldRef: container {name} not found")
    kind, _, resource = str(reference.get("resource", "")).partition(".")
    if kind not in ("limits", "requests") or not resource:
        raise ConfigError(f"resourceFieldRef: unsupported resource {reference.get('resource')!r}")
    amounts = found.resources.limits if kind == "limits" else found.resources.requests
    amount = amounts.get(resource)
    if amount is None and kind == "limits" and resource in (CPU, MEMORY, EPHEMERAL_STORAGE):
        amount = node_context.allocatable.get(resource)  # no limit: all that the node has
    return _divided(amount or Quantity.ZERO, reference.get("divisor"), resource)


def _divided(amount: Quantity, divisor: Any, resource: str) -> str:
    """Return an amount in units of a divisor, rounded up."""
    unit = Quantity.parse(str(divisor)) if divisor else Quantity.from_int(1)
    if unit.is_zero:
        unit = Quantity.from_int(1)
    if resource == CPU:
        return str(-(-amount.milli_value // unit.milli_value))
    return str(-(-amount.value // unit.value))


# --- sources --------------------------------------------------------------------------------------

ObjectT = TypeVar("ObjectT")


class ObjectSource(NamedTuple):
    """A ConfigMap or Secret in the pod's namespace."""

    kind: str
    name: str


class TokenSpec(NamedTuple):
    """A service account token that a pod needs."""

    audience: str
    seconds: int


Content = Mapping[str, bytes]
Contents = Mapping[ObjectSource, Content | None]  # None: there is no such object
Tokens = Mapping[TokenSpec, str]


def needed_by_container(container: Container) -> Iterator[ObjectSource]:
    """Yield the objects that the environment of a container needs."""
    for each in (*container.env_from, *(e.get("valueFrom") or {} for e in container.env)):
        for key, kind in (*_WHOLE_REFERENCES, *_KEY_REFERENCES):
            if (reference := each.get(key)) is not None:
                yield ObjectSource(kind, str(reference.get("name", "")))


def needed_by_volumes(pod: Pod) -> Iterator[ObjectSource]:
    """Yield the objects that the volumes of a pod need."""
    for volume in pod.spec.volumes:
        if (secret := volume.get("secret")) is not None:
            yield ObjectSource(SECRET, str(secret.get("secretName", "")))
        if (config := volume.get("configMap")) is not None:
            yield ObjectSource(CONFIG_MAP, str(config.get("name", "")))
        for part in projections(volume):
            for key, kind in (("secret", SECRET), ("configMap", CONFIG_MAP)):
                if (found := part.get(key)) is not None:
                    yield ObjectSource(kind, str(found.get("name", "")))


def token_specs(pod: Pod) -> Iterator[TokenSpec]:
    """Yield the tokens that the volumes of a pod need."""
    for volume in pod.spec.volumes:
        for part in projections(volume):
            if (token := part.get("serviceAccountToken")) is not None:
                yield token_spec(token)


def token_spec(token: Mapping[str, Any]) -> TokenSpec:
    """Return the token that a projection requests."""
    return TokenSpec(
        str(token.get("audience") or ""), int(token.get("expirationSeconds") or TOKEN_S)
    )


def projections(volume: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return the projections of a volume."""
    return (volume.get("projected") or {}).get("sources") or ()


class ObjectClient(Protocol):
    """The part of a client that workers use."""

    async def get(self, struct: type[ObjectT], namespace: str, name: str) -> ObjectT | None:
        """Return an object, or None if it does not exist."""

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write and return the stored object."""


class SourceCache:
    """Reads the objects that pods need."""

    def __init__(self, client: ObjectClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._cache: LRU[tuple[str, ObjectSource], tuple[float, Content]] = LRU(CACHED_MAX)

    async def read(self, namespace: str, sources: Iterable[ObjectSource]) -> Contents:
        """Return the contents of objects, or raise SourceError."""
        wanted = tuple(dict.fromkeys(sources))
        found = await asyncio.gather(*(self._read(namespace, each) for each in wanted))
        return dict(zip(wanted, found, strict=True))

    async def _read(self, namespace: str, source: ObjectSource) -> Content | None:
        key, now_s = (namespace, source), self._clock.monotonic()
        cached = self._cache.get(key)
        if cached is not None and now_s - cached[0] < FRESH_S:
            return cached[1]
        content = await self._get(namespace, source)
        if content is not None:
            self._cache.put(key, (now_s, content))
        return content

    async def _get(self, namespace: str, source: ObjectSource) -> Content | None:
        struct: type[Any] = ConfigMap if source.kind == CONFIG_MAP else Secret
        try:
            value = await self._client.get(struct, namespace, source.name)
            return None if value is None else _content_of(value)
        except (ClientError, ValueError) as error:
            raise SourceError(f'{source.kind} "{source.name}": {error}') from None

    async def tokens(self, pod: Pod, specs: Iterable[TokenSpec]) -> Tokens:
        """Return tokens of a pod's service account, or raise SourceError."""
        return {each: await self._token(pod, each) for each in dict.fromkeys(specs)}

    async def _token(self, pod: Pod, wanted: TokenSpec) -> str:
        metadata = pod.metadata
        account = pod.spec.service_account_name or "default"
        bound = BoundObjectReference(
            kind="Pod", api_version="v1", name=metadata.name, uid=metadata.uid
        )
        spec = TokenRequestSpec(
            audiences=(wanted.audience,) if wanted.audience else None,
            expiration_seconds=wanted.seconds,
            bound_object_ref=bound,
        )
        account_metadata = ObjectMeta(name=account, namespace=metadata.namespace)
        try:
            granted = await self._client.write(
                Create(TokenRequest(metadata=account_metadata, spec=spec))
            )
        except ClientError as error:
            raise SourceError(f"failed to fetch token: {error}") from None
        return str(granted.status.token)


def _content_of(value: ConfigMap | Secret) -> dict[str, bytes]:
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
