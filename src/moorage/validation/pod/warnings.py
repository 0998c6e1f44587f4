"""Warnings about pods and pod templates that are accepted, with Kubernetes' words.

A response has room for a few dozen of them, so no more are made, and of many files or ports only
the first are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import AddressValueError, IPv6Address
from itertools import islice
from typing import Any

from moorage.api import names
from moorage.api.core.placement import Affinity, NodeSelectorTerm
from moorage.api.core.pod import Container, ContainerPort, Pod, PodSpec, PodTemplateSpec
from moorage.api.core.resources import EPHEMERAL_STORAGE, MEMORY, ResourceList
from moorage.kit.go_quote import go_quote
from moorage.validation.pod.annotations import (
    APP_ARMOR,
    CONTAINER_SECCOMP,
    SECCOMP,
    Annotations,
    app_armor_profile,
    app_armor_warning,
)
from moorage.validation.pod.field_rules import Tree
from moorage.validation.pod.volume_warnings import COMPARED_MAX, fraction_warning, volume_warnings

WARNINGS_MAX = 128

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR = "a null labelSelector results in matching no pod"
_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
    "security.alpha.kubernetes.io/unsafe-sysctls": (
        'non-functional in v1.11+; use the "sysctls" field instead'
    ),
}
_NO_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'


def pod_warnings(pod: Pod) -> list[str]:
    """Return the warnings about a new pod."""
    found: list[str] = []
    if faults := names.dns1123_label(pod.metadata.name):
        found.append(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            f"behavior; a DNS label is recommended: [{' '.join(faults)}]"
        )
    return [*found, *_bounded(pod.spec, pod.metadata.annotations, "")]


def template_warnings(template: PodTemplateSpec, place: str) -> list[str]:
    """Return the warnings about a pod template, new or changed."""
    return _bounded(template.spec, template.metadata.annotations, f"{place}.")


def address_warnings(place: str, text: str) -> Iterator[str]:
    """Yield that an address of IPv6 is not in its shortest form."""
    try:
        shortest = str(IPv6Address(text))
    except AddressValueError:
        return
    if shortest != text:
        yield (
            f"{place}: IPv6 address {go_quote(text)} should be in RFC 5952 canonical format "
            f"({go_quote(shortest)})"
        )


def _bounded(spec: PodSpec, annotations: Annotations, base: str) -> list[str]:
    return list(islice(_warnings(spec, annotations, base), WARNINGS_MAX))


def _warnings(spec: PodSpec, annotations: Annotations, base: str) -> Iterator[str]:
    """base: what stands before `spec` and `metadata` in a path."""
    at = f"{base}spec"
    yield from _of_labels(spec, at)
    if annotations:
        yield from _of_annotations(spec, annotations, base)
    if spec.volumes:
        yield from volume_warnings(spec.volumes, f"{at}.volumes")
    yield from _of_names(spec, at)
    yield from _fractions(spec.overhead, f"{at}.overhead")
    for container, place in _containers(spec, at):
        yield from _of_container(container, place)
    yield from _of_ports(spec, at)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{at}.terminationGracePeriodSeconds: {detail}"
    if spec.affinity is not None:
        yield from _of_pod_affinity(spec.affinity, f"{at}.affinity")
    yield from _of_addresses(spec, at)


def _containers(spec: PodSpec, at: str) -> Iterator[tuple[Container, str]]:
    for name, containers in (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    ):
        for position, container in enumerate(containers):
            yield container, f"{at}.{name}[{position}]"


# --- placement ----------------------------------------------------------------------------


def _of_labels(spec: PodSpec, at: str) -> Iterator[str]:
    for key in spec.node_selector:
        if key in _NODE_LABELS:
            yield f"{at}.nodeSelector[{key}]: {_NODE_LABELS[key]}"
    affinity = spec.affinity and spec.affinity.node_affinity
    if affinity:
        place = f"{at}.affinity.nodeAffinity"
        required = affinity.required_during_scheduling_ignored_during_execution
        terms = required.node_selector_terms if required is not None else None
        for position, term in enumerate(terms or ()):
            yield from _of_term(term, f"{place}.{_REQUIRED}.nodeSelectorTerms[{position}]")
        preferred = affinity.preferred_during_scheduling_ignored_during_execution
        for position, weighted in enumerate(preferred):
            where = f"{place}.{_PREFERRED}[{position}].preference"
            yield from _of_term(weighted.preference, where)
            yield from _of_values(weighted.preference, where)
    for position, constraint in enumerate(spec.topology_spread_constraints):
        place = f"{at}.topologySpreadConstraints[{position}]"
        key = constraint.topology_key
        if key in _NODE_LABELS:
            yield f"{place}.topologyKey: {key} is {_NODE_LABELS[key]}"
        if constraint.label_selector is None:
            yield f"{place}.labelSelector: {_NO_SELECTOR}"


def _of_term(term: NodeSelectorTerm, place: str) -> Iterator[str]:
    for position, expression in enumerate(term.match_expressions):
        if expression.key in _NODE_LABELS:
            why = _NODE_LABELS[expression.key]
            yield f"{place}.matchExpressions[{position}].key: {expression.key} is {why}"


def _of_values(term: NodeSelectorTerm, place: str) -> Iterator[str]:
    for position, expression in enumerate(term.match_expressions):
        for number, value in enumerate(expression.values):
            where = f"{place}.matchExpressions[{position}].values[{number}]"
            for fault in names.label_value(value):
                yield f"{where}: {value} is invalid, {fault}"


def _of_pod_affinity(affinity: Affinity, place: str) -> Iterator[str]:
    for name, terms in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        if terms is None:
            continue
        required = terms.required_during_scheduling_ignored_during_execution
        for position, term in enumerate(required):
            if term.label_selector is None:
                yield f"{place}.{name}.{_REQUIRED}[{position}].labelSelector: {_NO_SELECTOR}"
        preferred = terms.preferred_during_scheduling_ignored_during_execution
        for position, weighted in enumerate(preferred):
            if weighted.pod_affinity_term.label_selector is None:
                where = f"{place}.{name}.{_PREFERRED}[{position}].podAffinityTerm.labelSelector"
                yield f"{where}: {_NO_SELECTOR}"


# --- annotations --------------------------------------------------------------------------


def _of_annotations(spec: PodSpec, annotations: Annotations, base: str) -> Iterator[str]:
    at = f"{base}metadata.annotations"
    for key, why in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{at}[{key}]: {why}"
    whole: Tree = spec.security_context or {}
    if SECCOMP in annotations and "seccompProfile" not in whole:
        yield f"{at}[{SECCOMP}]: {_NO_SECCOMP}"
    for container, _ in _containers(spec, base):
        own: Tree = container.security_context or {}
        key = f"{CONTAINER_SECCOMP}{container.name}"
        if key in annotations and "seccompProfile" not in own:
            yield f"{at}[{key}]: {_NO_SECCOMP}"
        key = f"{APP_ARMOR}{container.name}"
        # A new pod gets the field, and its warning, before this.
        if base and key in annotations and "appArmorProfile" not in own:
            profile = whole.get("appArmorProfile")
            if profile is None or profile != app_armor_profile(annotations[key]):
                yield app_armor_warning(f"{at}[{key}]")


# --- names, amounts, addresses ------------------------------------------------------------


def _of_names(spec: PodSpec, at: str) -> Iterator[str]:
    taken: set[str] = set()
    for position, alias in enumerate(spec.host_aliases):
        address = alias.get("ip", "")
        if address in taken:
            yield f"{at}.hostAliases[{position}].ip: duplicate ip {go_quote(address)}"
        taken.add(address)
    taken = set()
    for position, secret in enumerate(spec.image_pull_secrets):
        place = f"{at}.imagePullSecrets[{position}].name"
        if secret.name in taken:
            yield f"{place}: duplicate name {go_quote(secret.name)}"
        if not secret.name:
            yield f'{place}: invalid empty name ""'
        taken.add(secret.name)


def _fractions(amounts: ResourceList, place: str) -> Iterator[str]:
    for name in (MEMORY, EPHEMERAL_STORAGE) if amounts else ():
        if name in amounts and amounts[name].milli_value % 1000:
            yield fraction_warning(f"{place}[{name}]", amounts[name])


def _of_addresses(spec: PodSpec, at: str) -> Iterator[str]:
    config: Mapping[str, Any] = spec.dns_config or {}
    for position, server in enumerate(config.get("nameservers", ())):
        yield from address_warnings(f"{at}.dnsConfig.nameservers[{position}]", server)
    for position, alias in enumerate(spec.host_aliases):
        yield from address_warnings(f"{at}.hostAliases[{position}].ip", alias.get("ip", ""))


# --- containers ---------------------------------------------------------------------------


def _of_container(container: Container, place: str) -> Iterator[str]:
    yield from _fractions(container.resources.limits, f"{place}.resources.limits")
    yield from _fractions(container.resources.requests, f"{place}.resources.requests")
    taken: set[str] = set()
    for position, variable in enumerate(container.env):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        hides = "valueFrom" in variable or value == reference or reference not in value
        if name in taken and hides:
            yield (
                f"{place}.env[{position}]: hides previous definition of {go_quote(name)}, "
                "which may be dropped when using apply"
            )
        taken.add(name)


def _of_ports(spec: PodSpec, at: str) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[ContainerPort, str]]] = {}
    titles: dict[str, str] = {}
    for container, where in _containers(spec, at):
        for position, port in enumerate(container.ports):
            place = f"{where}.ports[{position}]"
            if port.host_ip and port.host_port == 0:
                yield f"{place}: hostIP set without hostPort: {_shown(port)}"
            others = seen.setdefault((port.container_port, port.protocol), [])
            for other, other_place in others:
                if how := _clash(port, other):
                    yield f"{place}: {how} port definition with {other_place}"
            if len(others) < COMPARED_MAX:
                others.append((port, place))
            if port.name in titles:
                first = titles[port.name]
                yield (
                    f"{place}: duplicate port name {go_quote(port.name)} with {first}, services "
                    f"and probes that select ports by name will use {first}"
                )
            elif port.name:
                titles[port.name] = place


def _clash(port: ContainerPort, other: ContainerPort) -> str:
    """Return how two ports of one number and protocol clash, or ""."""
    if (port.host_ip, port.host_port) == (other.host_ip, other.host_port):
        return "duplicate"
    if port.host_port == 0 or other.host_port == 0:
        return "overlapping"
    is_ambiguous = (port.host_ip == "") != (other.host_ip == "")
    return "dangerously ambiguous" if is_ambiguous and port.host_port == other.host_port else ""


def _shown(port: ContainerPort) -> str:
    return (
        f"{{Name:{port.name} HostPort:{port.host_port} ContainerPort:{port.container_port} "
        f"Protocol:{port.protocol} HostIP:{port.host_ip}}}"
    )
