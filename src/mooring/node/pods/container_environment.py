"""What a container finds in its environment, and in its command (pure).

$(NAME)     the value of a variable that is set before; left as it is if there is none
$$(NAME)    the text $(NAME)
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from mooring.api.authentication import BoundObjectReference, TokenRequest, TokenRequestSpec
from mooring.api.core import ConfigMap, Container, Pod, Secret
from mooring.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from mooring.api.meta import ObjectMeta
from mooring.api.quantity import Quantity
from mooring.client.errors import ClientError
from mooring.client.writes import Apply, Create, Delete, Patch, Update
from mooring.kit.clock import Clock
from mooring.node.errors import ConfigError, SourceError

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
CONFIG_ERROR = "CreateContainerConfigError"
NOTHING: Contents = {}


class NodeContext(Struct, frozen=True):
    """What a pod is told of its node."""

    node_name: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    allocatable: Mapping[str, Quantity] = {}


def environment(
    pod: Pod, container: Container, around: NodeContext, contents: Contents = NOTHING
) -> dict[str, str]:
    """Return the environment of a container, or raise ConfigError."""
    found: dict[str, str] = {}
    for source in container.env_from:
        found |= _all_from(source, contents)
    for variable in container.env:
        name = str(variable.get("name", ""))
        source = variable.get("valueFrom")
        if source:
            value = _value_from(pod, container, source, around, name, contents)
            if value is not None:
                found[name] = value
        else:
            found[name] = expand(str(variable.get("value") or ""), found)
    return found


def expand(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its references to variables replaced."""

    def value(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return "$"
        return values.get(match.group(1), match.group(0))

    return _REFERENCE.sub(value, text)


def expand_all(texts: Iterable[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """Return texts with their references replaced."""
    return tuple(expand(text, values) for text in texts)


def _all_from(source: Mapping[str, Any], contents: Contents) -> dict[str, str]:
    """Return all that an object has, as variables."""
    prefix = str(source.get("prefix") or "")
    for key, kind in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
        if (reference := source.get(key)) is not None:
            content = content_in(contents, kind, reference)
            return {f"{prefix}{name}": _text(data) for name, data in content.items()}
    return {}


def _value_from(
    pod: Pod,
    container: Container,
    source: Mapping[str, Any],
    around: NodeContext,
    name: str,
    contents: Contents,
) -> str | None:
    if reference := source.get("fieldRef"):
        path = str(reference.get("fieldPath", ""))
        value = field_value(pod, path, around)
        if value is None:
            raise ConfigError(f"env {name}: unsupported fieldPath: {path}")
        return value
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, container, reference, around)
    for key, kind in (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)):
        if (reference := source.get(key)) is not None:
            data = content_in(contents, kind, reference).get(str(reference.get("key", "")))
            if data is None and not reference.get("optional"):
                place = f"{pod.metadata.namespace}/{reference.get('name')}"
                told = "ConfigMap" if kind == CONFIG_MAP else "Secret"
                raise ConfigError(f"couldn't find key {reference.get('key')} in {told} {place}")
            return None if data is None else _text(data)
    kinds = ", ".join(sorted(source)) or "nothing"
    raise ConfigError(f"env {name}: a value from {kinds} is not supported by this node")


def content_in(contents: Contents, kind: str, reference: Mapping[str, Any]) -> Content:
    """Return what an object has, or raise ConfigError; nothing, if it may be missing."""
    name = str(reference.get("name") or reference.get("secretName") or "")
    content = contents.get(ObjectSource(kind, name))
    if content is not None:
        return content
    if reference.get("optional"):
        return {}
    raise ConfigError(f'{kind} "{name}" not found')


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def field_value(pod: Pod, path: str, around: NodeContext) -> str | None:
    """Return a field of a pod as the downward API has it; None for one that it does not have."""
    metadata = pod.metadata
    if match := _KEYED.fullmatch(path):
        values = metadata.labels if match.group(1) == "labels" else metadata.annotations
        return values.get(match.group(2), "")
    match path:
        case "metadata.name":
            return metadata.name
        case "metadata.namespace":
            return metadata.namespace
        case "metadata.uid":
            return metadata.uid
        case "metadata.labels":
            return listed(metadata.labels)
        case "metadata.annotations":
            return listed(metadata.annotations)
        case "spec.nodeName":
            return pod.spec.node_name
        case "spec.serviceAccountName":
            return pod.spec.service_account_name
        case "status.hostIP" | "status.hostIPs":
            return around.host_ip
        case "status.podIP" | "status.podIPs":
            return around.pod_ip
    return None


def listed(values: Mapping[str, str]) -> str:
    """Return labels or annotations as lines of key="value"."""
    return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(values.items()))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + '"'


def resource_value(
    pod: Pod, container: Container, reference: Mapping[str, Any], around: NodeContext
) -> str:
    """Return what a container asks for or may take, in the wanted unit, or raise ConfigError."""
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
        amount = around.allocatable.get(resource)  # without a limit, all that the node has
    return _divided(amount or Quantity.ZERO, reference.get("divisor"), resource)


def _divided(amount: Quantity, divisor: Any, resource: str) -> str:
    """Return an amount in units of a divisor, rounded up."""
    unit = Quantity.parse(str(divisor)) if divisor else Quantity.from_int(1)
    if unit.is_zero:
        unit = Quantity.from_int(1)
    if resource == CPU:
        return str(-(-amount.milli_value // unit.milli_value))
    return str(-(-amount.value // unit.value))


# ---- from mooring.node.pods.sources: What pods are given from other objects: config maps, secrets, tokens of their accounts.

ObjectT = TypeVar("ObjectT")

CONFIG_MAP, SECRET = "configmap", "secret"
FRESH_S = 30.0  # how long what was read is taken for true
KEPT_MAX = 500
TOKEN_S = 3600
REFRESHED_PART = 0.8  # of its life a token is replaced after


class ObjectSource(NamedTuple):
    """An object that a pod is given something of, in its namespace."""

    kind: str
    name: str


class TokenSpec(NamedTuple):
    """A token that a pod is to have."""

    audience: str
    seconds: int


Content = Mapping[str, bytes]
Contents = Mapping[ObjectSource, Content | None]  # None: there is no such object
Tokens = Mapping[TokenSpec, str]


def needed_by_container(container: Container) -> Iterator[ObjectSource]:
    """Yield what the environment of a container needs."""
    for each in (*container.env_from, *(e.get("valueFrom") or {} for e in container.env)):
        for key, kind in (
            ("configMapRef", CONFIG_MAP),
            ("configMapKeyRef", CONFIG_MAP),
            ("secretRef", SECRET),
            ("secretKeyRef", SECRET),
        ):
            if (reference := each.get(key)) is not None:
                yield ObjectSource(kind, str(reference.get("name", "")))


def needed_by_volumes(pod: Pod) -> Iterator[ObjectSource]:
    """Yield what the volumes of a pod need."""
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
    """Return the token that a volume asks for."""
    return TokenSpec(
        str(token.get("audience") or ""), int(token.get("expirationSeconds") or TOKEN_S)
    )


def projections(volume: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Return what a volume is put together from."""
    return (volume.get("projected") or {}).get("sources") or ()


class ObjectClient(Protocol):
    """What is needed of a client."""

    async def get(self, struct: type[ObjectT], namespace: str, name: str) -> ObjectT | None:
        """Return an object, or None when it is not there."""

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out a write and return the object as it is stored now."""


class SourceCache:
    """Reads what pods need."""

    def __init__(self, client: ObjectClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[tuple[str, ObjectSource], tuple[float, Content | None]] = {}

    async def read(self, namespace: str, sources: Iterable[ObjectSource]) -> Contents:
        """Return what these objects have, or raise SourceError."""
        wanted = tuple(dict.fromkeys(sources))
        found = await asyncio.gather(*(self._read(namespace, each) for each in wanted))
        return dict(zip(wanted, found, strict=True))

    async def _read(self, namespace: str, source: ObjectSource) -> Content | None:
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

    async def _get(self, namespace: str, source: ObjectSource) -> Content | None:
        struct: type[Any] = ConfigMap if source.kind == CONFIG_MAP else Secret
        try:
            value = await self._client.get(struct, namespace, source.name)
            return None if value is None else content_of(value)
        except (ClientError, ValueError) as error:
            raise SourceError(f'{source.kind} "{source.name}": {error}') from None

    async def tokens(self, pod: Pod, wishes: Iterable[TokenSpec]) -> Tokens:
        """Return tokens of the account of a pod, or raise SourceError."""
        return {wish: await self._token(pod, wish) for wish in dict.fromkeys(wishes)}

    async def _token(self, pod: Pod, wish: TokenSpec) -> str:
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
