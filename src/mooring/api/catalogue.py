"""Every kind that Mooring can read.

Kinds without a plural exist only in files or as bodies of subresources. A server answers reviews
but never stores them. Foreign kinds are served by Kubernetes alone; of these, we read what decides
about pods.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mooring.api import (
    apps,
    authentication,
    authorization,
    batch,
    coordination,
    core,
    device_metadata,
    events,
    rbac,
    runtime_class,
    scheduler_config,
    scheduling,
)
from mooring.api.kinds import Catalogue, Kind
from mooring.api.resource import versions
from mooring.api.resource.v1 import GROUP as RESOURCE_GROUP
from mooring.api.resource.versions import KINDS as RESOURCE_KINDS

KINDS: tuple[Kind, ...] = (
    *RESOURCE_KINDS,
    *core.KINDS,
    *apps.KINDS,
    *batch.KINDS,
    *scheduling.KINDS,
    *coordination.KINDS,
    *rbac.KINDS,
    *runtime_class.KINDS,
    *authentication.KINDS,
    *authorization.KINDS,
    *events.KINDS,
    *scheduler_config.KINDS,
    *device_metadata.KINDS,
)

SERVED: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.plural and not kind.is_asked)
ASKED: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.is_asked)
FOREIGN: tuple[Kind, ...] = core.FOREIGN_KINDS

# The kinds that Kubernetes 1.37 serves besides, as its discovery lists them.
OTHER_KINDS: dict[str, tuple[str, ...]] = {
    "v1": (
        *("ComponentStatus", "Endpoints", "LimitRange", "PersistentVolume"),
        *("PersistentVolumeClaim", "PodTemplate", "ReplicationController", "Service"),
    ),
    "admissionregistration.k8s.io/v1": (
        *("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
        *("MutatingWebhookConfiguration", "ValidatingAdmissionPolicy"),
        *("ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"),
    ),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "apiregistration.k8s.io/v1": ("APIService",),
    "apps/v1": ("ControllerRevision",),
    "autoscaling/v1": ("HorizontalPodAutoscaler",),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "batch/v1": ("CronJob",),
    "certificates.k8s.io/v1": (
        *("CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"),
    ),
    "discovery.k8s.io/v1": ("EndpointSlice",),
    "flowcontrol.apiserver.k8s.io/v1": ("FlowSchema", "PriorityLevelConfiguration"),
    "networking.k8s.io/v1": (
        *("IPAddress", "Ingress", "IngressClass", "NetworkPolicy", "ServiceCIDR"),
    ),
    "policy/v1": ("PodDisruptionBudget",),
    "storage.k8s.io/v1": (
        *("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass"),
        *("VolumeAttachment", "VolumeAttributesClass"),
    ),
    "storagemigration.k8s.io/v1": ("StorageVersionMigration",),
}

CATALOGUE = Catalogue(KINDS, OTHER_KINDS)


def to_hub(value: Any, kind: Kind | None = None) -> Any:
    """Return an object of any kind in the version that it is stored in."""
    kind = kind or CATALOGUE.find(value.api_version, value.kind)
    if kind.group == RESOURCE_GROUP:
        return versions.to_hub(value, kind.hub_version)
    if kind.group == scheduling.GROUP:
        return scheduling.to_hub(value)
    if isinstance(value, events.Event):
        return events.to_hub(value)
    return replace(value, api_version=kind.hub_version)


def from_hub(value: Any, api_version: str) -> Any:
    """Return a stored object in another version of its kind."""
    if value.api_version == api_version:
        return value
    group = CATALOGUE.find(api_version, value.kind).group
    if group == RESOURCE_GROUP:
        return versions.from_hub(value, api_version)
    if group == scheduling.GROUP:
        return scheduling.from_hub(value, api_version)
    if isinstance(value, core.Event):
        return events.from_hub(value)
    return replace(value, api_version=api_version)
