"""Every kind that Moorage can read.

Kinds without a plural exist only in files or as bodies of subresources. A server answers reviews
but never stores them.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api import (
    admissionregistration,
    api_registration,
    apiextensions,
    apps,
    authentication,
    authorization,
    autoscaling,
    batch,
    certificates,
    coordination,
    core,
    csi,
    device_metadata,
    discovery,
    events,
    flow_control,
    networking,
    policy,
    rbac,
    runtime_class,
    scheduler_config,
    scheduling,
    storage,
    storage_migration,
)
from moorage.api.built_in_kinds import BUILT_IN_KINDS
from moorage.api.core.kinds import KINDS as CORE_KINDS
from moorage.api.custom_resource import CustomResource
from moorage.api.kinds import Catalogue, Kind
from moorage.api.resource import versions
from moorage.api.resource.v1 import GROUP as RESOURCE_GROUP
from moorage.api.resource.versions import KINDS as RESOURCE_KINDS

KINDS: tuple[Kind, ...] = (
    *RESOURCE_KINDS,
    *CORE_KINDS,
    *apps.KINDS,
    *autoscaling.KINDS,
    *batch.KINDS,
    *scheduling.KINDS,
    *coordination.KINDS,
    *discovery.KINDS,
    *policy.KINDS,
    *rbac.KINDS,
    *runtime_class.KINDS,
    *storage.KINDS,
    *admissionregistration.KINDS,
    *apiextensions.KINDS,
    *csi.KINDS,
    *authentication.KINDS,
    *authorization.KINDS,
    *events.KINDS,
    *networking.KINDS,
    *certificates.KINDS,
    *flow_control.KINDS,
    *storage_migration.KINDS,
    *api_registration.KINDS,
    *scheduler_config.KINDS,
    *device_metadata.KINDS,
)

SERVED: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.plural and not kind.is_asked)
ASKED: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind.is_asked)

# The kinds that Kubernetes 1.37 serves besides, by version.
_NAMES = {(kind.api_version, kind.name) for kind in KINDS}
OTHER_KINDS: dict[str, tuple[str, ...]] = {}
for _kind in BUILT_IN_KINDS:
    for _version in _kind.api_versions:
        if (_version, _kind.name) not in _NAMES:
            OTHER_KINDS[_version] = (*OTHER_KINDS.get(_version, ()), _kind.name)

CATALOGUE = Catalogue(KINDS, OTHER_KINDS)


def to_hub(value: Any, kind: Kind | None = None) -> Any:
    """Return an object of any kind in the version that it is stored in."""
    if isinstance(value, CustomResource):
        return value if kind is None else type(value).definition.converted(value, kind.hub_version)
    kind = kind or CATALOGUE.find(value.api_version, value.kind)
    if value.api_version == kind.hub_version:
        return value
    if kind.group == RESOURCE_GROUP:
        return versions.to_hub(value, kind.hub_version)
    if kind.group == scheduling.GROUP:
        return scheduling.to_hub(value)
    if isinstance(value, events.Event):
        return events.to_hub(value)
    if kind.name == autoscaling.HorizontalPodAutoscaler.__name__:
        return autoscaling.to_hub(value)
    return replace(value, api_version=kind.hub_version)


def from_hub(value: Any, api_version: str) -> Any:
    """Return a stored object in another version of its kind."""
    if value.api_version == api_version:
        return value
    if isinstance(value, CustomResource):
        return type(value).definition.converted(value, api_version)
    group = CATALOGUE.find(api_version, value.kind).group
    if group == RESOURCE_GROUP:
        return versions.from_hub(value, api_version)
    if group == scheduling.GROUP:
        return scheduling.from_hub(value, api_version)
    if isinstance(value, autoscaling.HorizontalPodAutoscaler):
        return autoscaling.from_hub(value, api_version)
    if isinstance(value, core.Event):
        return events.from_hub(value)
    return replace(value, api_version=api_version)
