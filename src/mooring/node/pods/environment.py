"""What a container finds in its environment, and in its command (pure).

$(NAME)     the value of a variable that is set before; left as it is if there is none
$$(NAME)    the text $(NAME)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from mooring.api.core import Container, Pod
from mooring.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from mooring.api.quantity import Quantity
from mooring.node.pods.sources import CONFIG_MAP, SECRET, Content, Contents, Source

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")
_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
CONFIG_ERROR = "CreateContainerConfigError"
NOTHING: Contents = {}


class ConfigError(Exception):
    """A container cannot be made as its spec has it; the text says why."""


class Surroundings(Struct, frozen=True):
    """What a pod is told of its node."""

    node_name: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    allocatable: Mapping[str, Quantity] = {}


def environment(
    pod: Pod, container: Container, around: Surroundings, contents: Contents = NOTHING
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
    around: Surroundings,
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
    content = contents.get(Source(kind, name))
    if content is not None:
        return content
    if reference.get("optional"):
        return {}
    raise ConfigError(f'{kind} "{name}" not found')


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def field_value(pod: Pod, path: str, around: Surroundings) -> str | None:
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
    pod: Pod, container: Container, reference: Mapping[str, Any], around: Surroundings
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
