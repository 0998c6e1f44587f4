"""Fields of pods about names, addresses, ports and mounts that depend on the machine.

Every pod has the machine's network. So its /etc/hosts and /etc/resolv.conf are the machine's, with
what the pod adds; its ports are the machine's ports. A field that would need more is refused.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from moorage.api.core import Container, Pod
from moorage.api.runtime_class import RuntimeClass
from moorage.kit.go_quote import go_quote
from moorage.node.errors import ConfigError, SandboxError
from moorage.node.pods.container_environment import ObjectClient
from moorage.node.runtime.contract import READ_ONLY_ALL, READ_ONLY_ALL_IF_POSSIBLE, SHARED

HOSTS, RESOLV_CONF = "hosts", "resolv.conf"
ETC_FILES: Final = {HOSTS: "/etc/hosts", RESOLV_CONF: "/etc/resolv.conf"}
HOST_NAME_MAX: Final = 63
FILE_BYTES_MAX: Final = 1024 * 1024
_PROPAGATIONS: Final = {"None": (), "HostToContainer": ("rslave",), "Bidirectional": (SHARED,)}
_RECURSIVE: Final = {"Enabled": READ_ONLY_ALL, "IfPossible": READ_ONLY_ALL_IF_POSSIBLE}
# Nothing that could begin another word or line of these files.
_WORD: Final = re.compile(r"[A-Za-z0-9._:%/-]{1,255}")


def wanted_files(pod: Pod) -> tuple[str, ...]:
    """Return which files of /etc the containers of a pod have of their own."""
    has_dns = pod.spec.dns_config or pod.spec.dns_policy == "None"
    return (*((HOSTS,) if pod.spec.host_aliases else ()), *((RESOLV_CONF,) if has_dns else ()))


def etc_files(pod: Pod) -> dict[str, bytes]:
    """Return the content of these files, from the machine's and the pod's, or raise ConfigError."""
    found = {}
    for name in wanted_files(pod):
        machine = _read(ETC_FILES[name])
        lines = _hosts(pod, machine) if name == HOSTS else _resolv_conf(pod, machine)
        found[name] = "".join(f"{line}\n" for line in lines).encode()
    return found


def host_name(pod: Pod) -> str:
    """Return the host name of a pod, or raise ConfigError if it would need a cluster domain."""
    if pod.spec.set_hostname_as_fqdn and pod.spec.subdomain:
        raise ConfigError("setHostnameAsFQDN: this node has no cluster domain")
    name = pod.spec.hostname_override or pod.spec.hostname or pod.metadata.name
    return name[:HOST_NAME_MAX].rstrip("-.")


async def check_sandbox(pod: Pod, client: ObjectClient) -> None:
    """Raise SandboxError for a user namespace or a runtime class: there is one handler."""
    if pod.spec.host_users is False:
        text = "can't set `spec.hostUsers: false`, runtime does not support user namespaces"
        raise SandboxError(text)
    if not (name := pod.spec.runtime_class_name):
        return
    found = await client.get(RuntimeClass, "", name)
    if found is None:
        raise SandboxError(f'runtimeclass.node.k8s.io "{name}" not found')
    raise SandboxError(f'no runtime for "{found.handler}" is configured')


def check_machine_fields(container: Container) -> None:
    """Raise ConfigError for ports and devices that a container cannot have."""
    for port in container.ports:
        if port.host_port and port.host_port != port.container_port:
            raise ConfigError(
                f"hostPort {port.host_port}: containers have the machine's ports, so it must equal "
                f"containerPort {port.container_port}"
            )
    if container.volume_devices:
        raise ConfigError("volumeDevices: this node has no block volumes")


def mount_options(mount: Mapping[str, Any], name: str) -> Iterator[str]:
    """Yield the options of a mount for propagation and for mounts within it, or ConfigError."""
    propagation = mount.get("mountPropagation") or "None"
    if propagation not in _PROPAGATIONS:
        raise ConfigError(f'volumeMounts: unknown mountPropagation "{str(propagation)[:64]}"')
    yield from _PROPAGATIONS[propagation]
    mode = mount.get("recursiveReadOnly") or "Disabled"
    if mode == "Disabled":
        return
    asked = f'volume "{name}" requested recursive read-only mode, but it is not'
    if not mount.get("readOnly"):
        raise ConfigError(f"failed to resolve recursive read-only mode: {asked} read-only")
    if propagation != "None":
        fact = f'compatible with propagation "{propagation}"'
        raise ConfigError(f"failed to resolve recursive read-only mode: {asked} {fact}")
    if mode not in _RECURSIVE:
        raise ConfigError(f'unknown recursive read-only mode "{str(mode)[:64]}"')
    yield _RECURSIVE[mode]


def _hosts(pod: Pod, machine: str) -> Iterator[str]:
    yield from machine.splitlines()
    yield "# Entries added by HostAliases."
    for each in pod.spec.host_aliases:
        fields = each if isinstance(each, Mapping) else {}
        names = _words("hostAliases.hostnames", fields.get("hostnames"))
        yield "\t".join((_address("hostAliases.ip", fields.get("ip")), *names))


def _resolv_conf(pod: Pod, machine: str) -> Iterator[str]:
    config = pod.spec.dns_config if isinstance(pod.spec.dns_config, Mapping) else {}
    lines = [] if pod.spec.dns_policy == "None" else _split(machine)
    addresses = _list("dnsConfig.nameservers", config.get("nameservers"))
    own = [_address("dnsConfig.nameservers", each) for each in addresses]
    servers = [word for key, *rest in lines if key == "nameserver" for word in rest[:1]]
    searches = [words for key, *words in lines if key == "search"]  # the last one counts
    searched = [*(searches[-1] if searches else ()), *_words("searches", config.get("searches"))]
    options = [word for key, *rest in lines if key == "options" for word in rest]
    yield from (f"nameserver {each}" for each in dict.fromkeys((*servers, *own)))
    if searched:
        yield f"search {' '.join(dict.fromkeys(searched))}"
    chosen = {each.partition(":")[0]: each for each in (*options, *_options(config))}
    if chosen:
        yield f"options {' '.join(chosen.values())}"


def _options(config: Mapping[str, Any]) -> Iterator[str]:
    for each in _list("dnsConfig.options", config.get("options")):
        fields = each if isinstance(each, Mapping) else {}
        (name,) = _words("dnsConfig.options", [fields.get("name") or ""])
        value = fields.get("value")
        yield name if value is None else f"{name}:{_words('dnsConfig.options', [value])[0]}"


def _split(text: str) -> list[list[str]]:
    lines = (line.split() for line in text.splitlines() if not line.startswith(("#", ";")))
    return [words for words in lines if words]


def _list(place: str, values: Any) -> Iterable[Any]:
    if values is not None and not isinstance(values, list | tuple):
        raise ConfigError(f"{place}: it must be a list")
    return values or ()


def _words(place: str, values: Any) -> list[str]:
    found = [str(each) for each in _list(place, values)]
    for each in found:
        if not _WORD.fullmatch(each):
            raise ConfigError(f"{place}: {go_quote(each[:128])} cannot be in a file of /etc")
    return found


def _address(place: str, value: Any) -> str:
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        raise ConfigError(f"{place}: {go_quote(str(value)[:128])} is no IP address") from None


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(FILE_BYTES_MAX)
    except OSError:
        return ""  # a machine without one
