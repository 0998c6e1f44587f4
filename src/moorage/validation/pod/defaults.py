"""Defaults of pods.

Pods get all of them; pod templates only those of `default_pod_spec`. One table has the defaults of
types that the structs keep as JSON (volumes, probes, environment variables), another the fields
that these types lose: those of features that Kubernetes 1.37 has off and Moorage does not have.
`filled` applies both to a tree and to everything in it; the protobuf table has the types of fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api.core.pod import (
    DEFAULT_SCHEDULER,
    Container,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodIP,
    PodSpec,
    PodStatus,
)
from moorage.api.core.resources import ResourceList, ResourceRequirements
from moorage.api.errors import QuantityError
from moorage.api.go_types import message_named
from moorage.api.quantity import Quantity
from moorage.api.repeated_trees import made_once
from moorage.validation.repeated_specs import RepeatedSpecs

GRACE_PERIOD_SECONDS = 30
TERMINATION_MESSAGE_PATH = "/dev/termination-log"

_MILLI_EXACT_MAX = Quantity.from_int((2**63 - 1) // 1000)

C = TypeVar("C", bound=Container)


def default_pod(pod: Pod) -> Pod:
    """Return the pod with every default."""
    return replace(pod, spec=_default_spec(pod.spec), status=_default_status(pod.status))


def default_new_pod(pod: Pod) -> Pod:
    """Return the same of a pod to be created; many have the spec of one template."""
    return replace(pod, spec=NEW_SPECS.defaulted(pod.spec), status=_default_status(pod.status))


def default_status_of(pod: Pod) -> Pod:
    """Return the pod with the defaults of its status."""
    return replace(pod, status=_default_status(pod.status))


def _default_spec(spec: PodSpec) -> PodSpec:
    spec = default_pod_spec(spec)
    grace_period = spec.termination_grace_period_seconds
    if grace_period is not None and grace_period < 0:
        spec = replace(spec, termination_grace_period_seconds=1)
    if spec.enable_service_links is None:
        spec = replace(spec, enable_service_links=True)
    return replace(
        spec,
        containers=tuple(_for_pod(c, spec) for c in spec.containers),
        init_containers=tuple(_for_pod(c, spec) for c in spec.init_containers),
    )


NEW_SPECS = RepeatedSpecs[PodSpec](_default_spec)


def default_pod_spec(spec: PodSpec) -> PodSpec:
    """Return the spec of a pod or pod template with the defaults that both get."""
    account = spec.service_account_name or spec.service_account
    grace_period = spec.termination_grace_period_seconds
    return replace(
        spec,
        volumes=filled_each(spec.volumes, "core/v1.Volume"),
        service_account_name=account,
        service_account=account,
        dns_policy=spec.dns_policy or "ClusterFirst",
        restart_policy=spec.restart_policy or "Always",
        security_context={} if spec.security_context is None else spec.security_context,
        termination_grace_period_seconds=(
            GRACE_PERIOD_SECONDS if grace_period is None else grace_period
        ),
        scheduler_name=spec.scheduler_name or DEFAULT_SCHEDULER,
        overhead=rounded(spec.overhead),
        resources=spec.resources and _default_resources(spec.resources),
        eviction_responders=(),  # EvictionRequestAPI
        containers=tuple(map(_default_container, spec.containers)),
        init_containers=tuple(map(_default_container, spec.init_containers)),
        ephemeral_containers=tuple(map(_default_container, spec.ephemeral_containers)),
    )


def _default_container(container: C) -> C:
    return replace(
        container,
        image_pull_policy=container.image_pull_policy or pull_policy(container.image),
        termination_message_path=container.termination_message_path or TERMINATION_MESSAGE_PATH,
        termination_message_policy=container.termination_message_policy or "File",
        ports=tuple(replace(p, protocol=p.protocol or "TCP") for p in container.ports),
        env=filled_each(container.env, "core/v1.EnvVar"),
        volume_mounts=filled_each(container.volume_mounts, "core/v1.VolumeMount"),
        liveness_probe=filled(container.liveness_probe, "core/v1.Probe"),
        readiness_probe=filled(container.readiness_probe, "core/v1.Probe"),
        startup_probe=filled(container.startup_probe, "core/v1.Probe"),
        lifecycle=_default_lifecycle(container.lifecycle),
        resources=_default_resources(container.resources),
    )


def _for_pod(container: Container, spec: PodSpec) -> Container:
    """Return the container with requests from its limits and, on the host network, host ports."""
    resources = container.resources
    if resources.limits.keys() - resources.requests.keys():
        resources = replace(resources, requests={**resources.limits, **resources.requests})
    ports = container.ports
    if spec.host_network:
        ports = tuple(map(_on_host, ports))
    return replace(container, resources=resources, ports=ports)


def _on_host(port: ContainerPort) -> ContainerPort:
    return replace(port, host_port=port.host_port or port.container_port)


def _default_resources(resources: ResourceRequirements) -> ResourceRequirements:
    limits, requests = rounded(resources.limits), rounded(resources.requests)
    if limits is resources.limits and requests is resources.requests:
        return resources
    return replace(resources, limits=limits, requests=requests)


def rounded(amounts: ResourceList) -> ResourceList:
    """Return the amounts rounded up to thousandths, the finest unit."""
    if all(amount.is_natural(-3) for amount in amounts.values()):
        return amounts  # Those too large for thousandths in an int64 stay as they are, too.
    return {name: _rounded_up(amount) for name, amount in amounts.items()}


def _rounded_up(amount: Quantity) -> Quantity:
    if amount > _MILLI_EXACT_MAX:
        return amount
    rounded = Quantity.from_milli(amount.milli_value, amount.format)
    return amount if rounded == amount else rounded


def _default_status(status: PodStatus) -> PodStatus:
    """Return the status with rounded amounts, and podIP and podIPs in agreement."""
    if status.container_statuses or status.init_container_statuses:
        status = replace(
            status,
            container_statuses=tuple(map(_default_container_status, status.container_statuses)),
            init_container_statuses=tuple(
                map(_default_container_status, status.init_container_statuses)
            ),
        )
    if status.allocated_resources or status.resources:
        status = replace(
            status,
            allocated_resources=rounded(status.allocated_resources),
            resources=status.resources and _default_resources(status.resources),
        )
    first = status.pod_ips[0].ip if status.pod_ips else ""
    if status.pod_ip == first:
        return status
    if not status.pod_ip:
        return replace(status, pod_ip=first)
    return replace(status, pod_ips=(PodIP(ip=status.pod_ip),))


def _default_container_status(status: ContainerStatus) -> ContainerStatus:
    if not status.allocated_resources and status.resources is None:
        return status
    return replace(
        status,
        allocated_resources=rounded(status.allocated_resources),
        resources=status.resources and _default_resources(status.resources),
    )


# --- defaults of parts that are kept as JSON ----------------------------------------------

Tree = dict[str, Any]

READABLE = 0o644  # the default mode of files in volumes
TOKEN_LIFETIME_S = 3600
REPOSITORY_MAX = 255
LIBRARY = "library/"  # where images without a folder are

_DEFAULTS: Mapping[str, Tree] = {
    "core/v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    "core/v1.ConfigMapVolumeSource": {"defaultMode": READABLE},
    "core/v1.DownwardAPIVolumeSource": {"defaultMode": READABLE},
    "core/v1.FileKeySelector": {"optional": False},
    "core/v1.GRPCAction": {"service": ""},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.HostPathVolumeSource": {"type": ""},
    "core/v1.ISCSIVolumeSource": {"iscsiInterface": "default"},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1.Probe": {
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    },
    "core/v1.ProjectedVolumeSource": {"defaultMode": READABLE},
    "core/v1.RBDVolumeSource": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "core/v1.ScaleIOVolumeSource": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
    "core/v1.SecretVolumeSource": {"defaultMode": READABLE},
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": TOKEN_LIFETIME_S},
}

_OFF: Mapping[str, tuple[str, ...]] = {
    # AtomicWriteVolumeUserFields
    "core/v1.ClusterTrustBundleProjection": ("user",),
    "core/v1.ConfigMapVolumeSource": ("defaultUser",),
    "core/v1.DownwardAPIVolumeFile": ("user",),
    "core/v1.DownwardAPIVolumeSource": ("defaultUser",),
    "core/v1.KeyToPath": ("user",),
    "core/v1.PodCertificateProjection": ("user",),
    "core/v1.ProjectedVolumeSource": ("defaultUser",),
    "core/v1.SecretVolumeSource": ("defaultUser",),
    "core/v1.ServiceAccountTokenProjection": ("user",),
    "core/v1.EmptyDirVolumeSource": ("mode",),  # EmptyDirVolumeMode
    "core/v1.GRPCAction": ("mode",),  # GRPCContainerProbeTLS
    "core/v1.HTTPGetAction": ("protocol",),  # H2CContainerProbe
    "core/v1.Lifecycle": ("stopSignal",),  # ContainerStopSignals
    "core/v1.VolumeMount": ("bindMountOptions",),  # VolumeBindMountOptions
}


def filled_each(trees: tuple[Any, ...], message: str) -> tuple[Any, ...]:
    """Return a list of trees of one type with their defaults."""
    return tuple(filled(tree, message) for tree in trees) if trees else trees


def filled(tree: Any, message: str) -> Any:
    """Return a tree with the defaults of its type, and of the types of everything in it."""
    return _filler(message)(tree) if isinstance(tree, dict) else tree


@lru_cache(maxsize=1024)
def _filler(message: str) -> Callable[[Tree], Tree]:
    """Return the function that gives trees of a type their defaults."""
    below, off = _fields_with_defaults(message), frozenset(_OFF.get(message, ()))
    defaults, computed = _DEFAULTS.get(message), _COMPUTED.get(message)

    def fill(tree: Tree) -> Tree:
        found = tree
        if not (below.keys().isdisjoint(tree) and off.isdisjoint(tree)):
            found = {
                name: _filled_field(value, below[name]) if name in below else value
                for name, value in tree.items()
                if name not in off
            }
        if defaults is not None:
            found = {**defaults, **found}
        return computed(found) if computed is not None else found

    return made_once(fill) if below or defaults or computed else fill


def _filled_field(value: Any, message: str) -> Any:
    if isinstance(value, list):
        return [filled(item, message) for item in value]
    return filled(value, message)


@lru_cache(maxsize=1024)
def _fields_with_defaults(message: str) -> dict[str, str]:
    """Return the fields of a type that have defaults somewhere in them, with their types."""
    fields = message_named(message).fields.items()
    return {name: f.type for name, f in fields if "." in f.type and _has_defaults(f.type)}


@lru_cache(maxsize=1024)
def _has_defaults(message: str) -> bool:
    tables: tuple[Mapping[str, Any], ...] = (_DEFAULTS, _OFF, _COMPUTED)
    return any(message in table for table in tables) or bool(_fields_with_defaults(message))


# --- defaults that depend on something ----------------------------------------------------


def _default_lifecycle(lifecycle: Any) -> Any:
    """Return hooks; where there was nothing but a stop signal, which is dropped, there are none."""
    found = filled(lifecycle, "core/v1.Lifecycle")
    return None if not found and lifecycle else found


def _default_projected(volume: Tree) -> Tree:
    """Return a projected volume as Go writes it: with sources, null if there are none."""
    return volume if "sources" in volume else {**volume, "sources": None}


def _default_amounts(tree: Tree) -> Tree:
    """Return the resources or the status of a claim with rounded amounts."""
    found = dict(tree)
    for name in ("limits", "requests", "capacity", "allocatedResources"):
        amounts = tree.get(name)
        if isinstance(amounts, dict):
            found[name] = {key: _rounded_text(amount) for key, amount in amounts.items()}
    return found


def _rounded_text(amount: Any) -> Any:
    try:
        return str(_rounded_up(Quantity.parse(amount)))
    except (QuantityError, TypeError):
        return amount


def _default_volume(volume: Tree) -> Tree:
    """Return the volume; without a source it is an emptyDir."""
    return volume if volume.keys() - {"name"} else {**volume, "emptyDir": {}}


def _default_image(image: Tree) -> Tree:
    reference = image.get("reference", "")
    if image.get("pullPolicy") or not isinstance(reference, str):
        return image
    return {**image, "pullPolicy": pull_policy(reference)}


def _default_claim(claim: Tree) -> Tree:
    """Return a claim template as Kubernetes prints it: with kind, and Pending."""
    status = claim.get("status") or {}
    if isinstance(status, dict):
        status = {"phase": "Pending", **status}
    return {**claim, "kind": "PersistentVolumeClaim", "apiVersion": "v1", "status": status}


_COMPUTED: Mapping[str, Callable[[Tree], Tree]] = {
    "core/v1.ImageVolumeSource": _default_image,
    "core/v1.PersistentVolumeClaim": _default_claim,
    "core/v1.PersistentVolumeClaimStatus": _default_amounts,
    "core/v1.ProjectedVolumeSource": _default_projected,
    "core/v1.Volume": _default_volume,
    "core/v1.VolumeResourceRequirements": _default_amounts,
}

_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_match_image = re.compile(
    r"(?:[a-zA-Z0-9][a-zA-Z0-9.-]*(?::[0-9]+)?/)?"
    rf"({_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::([a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}))?(?:@([a-zA-Z0-9+._-]+:[0-9a-fA-F]{32,}))?"
).fullmatch
_is_identifier = re.compile("[a-f0-9]{64}").fullmatch  # of an image, which is no name


def pull_policy(image: str) -> str:
    """Return Always for the tag latest, the default of an image without tag and digest."""
    reference = _match_image(image)
    if reference is None or _is_identifier(image):
        return "IfNotPresent"
    repository, tag, digest = reference.groups()
    if len(repository if "/" in image else f"{LIBRARY}{repository}") > REPOSITORY_MAX:
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
