"""A cluster for users who may not read all of it, and users who lack one right each."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from moorage.api.core import Namespace, Pod
from moorage.api.core.pod import Container, PodResourceClaim, PodSpec
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.api.resource.v1 import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Create, Patch, Target
from moorage.hardware.catalogue import Catalogue

NODE: Final = "dgx-h100-0"
GROUP: Final = "rbac.authorization.k8s.io"
READABLE: Final = (
    "nodes",
    "namespaces",
    "resourceslices",
    "deviceclasses",
    "resourceclaims",
    "resourceclaimtemplates",
    "pods",
    "priorityclasses",
    "runtimeclasses",
    "storageclasses",
    "persistentvolumes",
    "persistentvolumeclaims",
    "resourcequotas",
    "devicetaintrules",
    "podgroups",
    "compositepodgroups",
    "workloads",
    "services",
    "replicationcontrollers",
    "daemonsets",
    "deployments",
    "jobs",
    "cronjobs",
    "replicasets",
    "statefulsets",
    "poddisruptionbudgets",
)
MISSING: Final = (
    "nodes",
    "resourceslices",
    "deviceclasses",
    "resourceclaims",
    "pods",
    "resourceclaimtemplates",
    "namespaces",
    "resourcequotas",
    "devicetaintrules",
    "priorityclasses",
)


async def furnish(kubeconfig: str) -> None:
    """Create a machine, two teams with claims and pods, and users who may read parts of that."""
    fleet = Catalogue().fleet("dgx-h100")
    spaces = (Namespace(metadata=ObjectMeta(name=name)) for name in ("team-a", "team-b"))
    claims = (claim("team-a", "ours"), claim("team-b", "theirs"))
    pods = (pod("busy", NODE, name="ours"), pod("waiting", template="one-gpu"))
    template = ResourceClaimTemplate(
        metadata=ObjectMeta(name="one-gpu", namespace="team-a"),
        spec=ResourceClaimTemplateSpec(spec=_one_gpu()),
    )
    users = [*_in_namespace("guest", "team-a"), *_without("none")]
    for each in MISSING:
        users += _without(each)
    async with http_client(load_rest_config(kubeconfig)) as client:
        for each in (
            *fleet.nodes,
            *fleet.classes,
            *fleet.slices,
            *spaces,
            *claims,
            template,
            *pods,
            *users,
        ):
            await client.write(Create(each))
        for number, held in enumerate(claims):
            await client.write(
                Patch(Target.of(held), {"status": _allocated(fleet, number)}, "status")
            )


def _allocated(fleet: Any, number: int) -> dict[str, Any]:
    published = next(s for s in fleet.slices if s.spec.driver == "gpu.nvidia.com")
    device = sorted(d.name for d in published.spec.devices or ())[number]
    result = {
        "request": "gpu",
        "driver": published.spec.driver,
        "pool": published.spec.pool.name,
        "device": device,
    }
    return {"allocation": {"devices": {"results": [result]}}}


def _one_gpu() -> ResourceClaimSpec:
    exactly = ExactDeviceRequest(device_class_name="gpu.nvidia.com")
    request = DeviceRequest(name="gpu", exactly=exactly)
    return ResourceClaimSpec(devices=DeviceClaim(requests=(request,)))


def claim(namespace: str, name: str) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name=name, namespace=namespace), spec=_one_gpu())


def pod(own: str, node: str = "", *, name: str | None = None, template: str | None = None) -> Pod:
    entry = PodResourceClaim(
        name="gpu", resource_claim_name=name, resource_claim_template_name=template
    )
    container = Container(name="main", image="registry.example.com/app:1")
    spec = PodSpec(containers=(container,), node_name=node, resource_claims=(entry,))
    return Pod(metadata=ObjectMeta(name=own, namespace="team-a"), spec=spec)


def _in_namespace(user: str, namespace: str) -> tuple[Any, ...]:
    metadata = ObjectMeta(name=user, namespace=namespace)
    rule = PolicyRule(verbs=("get", "list", "watch"), api_groups=("*",), resources=("*",))
    reference = RoleRef(api_group=GROUP, kind="Role", name=user)
    return Role(metadata=metadata, rules=(rule,)), RoleBinding(
        metadata=metadata, subjects=(_subject(user),), role_ref=reference
    )


def _without(resource: str) -> tuple[Any, ...]:
    user = f"no-{resource}"
    allowed = tuple(each for each in READABLE if each != resource)
    metadata = ObjectMeta(name=user)
    rule = PolicyRule(verbs=("get", "list", "watch"), api_groups=("*",), resources=allowed)
    reference = RoleRef(api_group=GROUP, kind="ClusterRole", name=user)
    return ClusterRole(metadata=metadata, rules=(rule,)), ClusterRoleBinding(
        metadata=metadata, subjects=(_subject(user),), role_ref=reference
    )


def _subject(user: str) -> Subject:
    return Subject(kind="User", name=user, api_group=GROUP)


def as_user(kubeconfig: str, folder: Path, user: str, namespace: str = "team-a") -> str:
    """Return a kubeconfig by which a user acts in a namespace."""
    tree = yaml.safe_load(Path(kubeconfig).read_text(encoding="utf-8"))
    tree["users"][0]["user"]["as"] = user
    tree["contexts"][0]["context"]["namespace"] = namespace
    path = folder / f"kubeconfig-{user}"
    path.write_text(yaml.safe_dump(tree), encoding="utf-8")
    return str(path)
