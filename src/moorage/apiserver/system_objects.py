"""Objects that the server itself maintains, besides namespaces and roles.

The ConfigMap extension-apiserver-authentication in kube-system contains the CA of client
certificates, which kube-scheduler, kube-controller-manager and other API servers use to
authenticate their clients. Another ConfigMap says since when tokens in Secrets are tracked: from
the start, because the server accepts none. There is an APIService for each API version that is
served.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.api_registration import (
    GROUP,
    APIService,
    APIServiceCondition,
    APIServiceSpec,
    APIServiceStatus,
)
from moorage.api.core import ConfigMap
from moorage.api.meta import ObjectMeta
from moorage.apiserver.auth.credentials import Credentials
from moorage.apiserver.discovery import version_order
from moorage.apiserver.resources import Resource
from moorage.apiserver.server_context import ServerContext

AUTHENTICATION: Final = "extension-apiserver-authentication"
TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"
FRONT_PROXY_CLIENT: Final = "front-proxy-client"
SYSTEM: Final = "kube-system"


async def ensure_system_objects(server: ServerContext, credentials: Credentials | None) -> None:
    """Store objects that are missing or differ; without TLS, there are no CAs to publish."""
    if credentials is not None:
        await _ensure_config_map(server, AUTHENTICATION, authentication_data(credentials))
    since = {"since": server.now().instant.strftime("%Y-%m-%d")}
    await _ensure_config_map(server, TRACKING, since, is_kept=True)
    await _ensure_api_services(server)


def authentication_data(credentials: Credentials) -> dict[str, str]:
    """Return the CAs of clients and of authenticating proxies."""
    data = {"client-ca-file": credentials.authority.certificate.decode()}
    if credentials.front_proxy is None:
        return data
    return data | {
        "requestheader-client-ca-file": credentials.front_proxy.certificate.decode(),
        "requestheader-allowed-names": f'["{FRONT_PROXY_CLIENT}"]',
        "requestheader-username-headers": '["X-Remote-User"]',
        "requestheader-uid-headers": '["X-Remote-Uid"]',
        "requestheader-group-headers": '["X-Remote-Group"]',
        "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
    }


async def _ensure_config_map(
    server: ServerContext, name: str, data: dict[str, str], *, is_kept: bool = False
) -> None:
    """Store a ConfigMap in kube-system; an existing one is updated unless it `is_kept`."""
    resource = server.resources.of("", "configmaps")
    if await server.registry.find(resource, SYSTEM, name) is None:
        metadata = _new(server, ObjectMeta(name=name, namespace=SYSTEM))
        await server.registry.create(resource, ConfigMap(metadata=metadata, data=data))
    elif not is_kept:
        await server.registry.change(resource, SYSTEM, name, partial(_with_data, data))


async def _with_data(data: dict[str, str], stored: ConfigMap) -> ConfigMap:
    """Return the ConfigMap with the server's data; other data stays."""
    return replace(stored, data={**stored.data, **data})


def _new(server: ServerContext, metadata: ObjectMeta) -> ObjectMeta:
    return replace(metadata, uid=server.new_uid(), creation_timestamp=server.now())


# --- APIServices ----------------------------------------------------------------------------------

MANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
ON_START: Final = "onstart"
AVAILABLE: Final = "Available"

# The order in which clients search the groups, as in Kubernetes: the highest first.
_GROUP_PRIORITIES: Final = {
    "": 18000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "storagemigration.k8s.io": 15800,
}
_VERSION_PRIORITY_FIRST: Final = 15  # of the first version of a group; later ones have lower ones


async def _ensure_api_services(server: ServerContext) -> None:
    """Store an APIService for each served version; remove those of versions no longer served."""
    resource = server.resources.of(GROUP, "apiservices")
    wanted = {each.metadata.name: each for each in local_api_services(server.resources)}
    for name, value in wanted.items():
        stored = await server.registry.find(resource, "", name)
        if stored is None:
            metadata = _new(server, value.metadata)
            await server.registry.create(resource, _available(replace(value, metadata=metadata)))
    for value in await _managed(server, resource):
        if value.metadata.name not in wanted:
            await server.registry.remove(resource, value)


def local_api_services(resources: Iterable[Resource]) -> Iterable[APIService]:
    """Yield an APIService for each version of a built-in group."""
    versions: dict[str, set[str]] = {}
    for each in resources:
        versions.setdefault(each.group, set()).update(each.kinds)
    for group, priority in _GROUP_PRIORITIES.items():
        for place, version in enumerate(sorted(versions.get(group, ()), key=version_order)):
            yield APIService(
                metadata=ObjectMeta(name=f"{version}.{group}", labels={MANAGED: ON_START}),
                spec=APIServiceSpec(
                    group=group,
                    version=version,
                    group_priority_minimum=priority,
                    version_priority=_VERSION_PRIORITY_FIRST - place,
                ),
            )


def _available(value: APIService) -> APIService:
    condition = APIServiceCondition(
        type=AVAILABLE,
        status="True",
        last_transition_time=value.metadata.creation_timestamp,
        reason="Local",
        message="Local APIServices are always available",
    )
    return replace(value, status=APIServiceStatus(conditions=(condition,)))


async def _managed(server: ServerContext, resource: Resource) -> list[Any]:
    page = await server.registry.store.list(resource.prefix)
    found = server.registry.readable(resource, page.entries)
    return [each for each in found.values if each.metadata.labels.get(MANAGED) == ON_START]
