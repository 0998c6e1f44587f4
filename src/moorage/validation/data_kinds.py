"""The strategies of kinds that no controller acts on: networking, storage, certificates, roles."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from moorage.api.flow_control import FlowSchema, PriorityLevelConfiguration
from moorage.validation.api_service import APIServiceStrategy
from moorage.validation.certificates import (
    ApprovalStrategy,
    CertificateSigningRequestStrategy,
    ClusterTrustBundleStrategy,
    PodCertificateRequestStrategy,
)
from moorage.validation.csi import (
    CSIDriverStrategy,
    CSINodeStrategy,
    VolumeAttachmentStrategy,
    VolumeAttributesClassStrategy,
)
from moorage.validation.ingress import IngressClassStrategy, IngressStrategy
from moorage.validation.networking import (
    IPAddressStrategy,
    NetworkPolicyStrategy,
    ServiceCIDRStrategy,
)
from moorage.validation.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from moorage.validation.replication_controller import (
    PodTemplateStrategy,
    ReplicationControllerStrategy,
)
from moorage.validation.strategy import Context, ObjectStrategy, Strategy

PRECEDENCE_DEFAULT: Final = 1000  # of flow schemas


class FlowSchemaStrategy(ObjectStrategy[FlowSchema]):
    """The strategy of FlowSchemas."""

    namespaced = False
    tracks_generation = True

    def default(self, value: FlowSchema, api_version: str, context: Context) -> FlowSchema:  # noqa: ARG002
        """Set the precedence."""
        precedence = value.spec.matching_precedence or PRECEDENCE_DEFAULT
        return replace(value, spec=replace(value.spec, matching_precedence=precedence))


class PriorityLevelStrategy(ObjectStrategy[PriorityLevelConfiguration]):
    """The strategy of PriorityLevelConfigurations."""

    namespaced = False
    tracks_generation = True


DATA_STRATEGIES: Final[dict[str, Strategy[Any]]] = {
    "APIService": APIServiceStrategy(),
    "CSIDriver": CSIDriverStrategy(),
    "CSINode": CSINodeStrategy(),
    "CertificateSigningRequest": CertificateSigningRequestStrategy(),
    "ClusterTrustBundle": ClusterTrustBundleStrategy(),
    "FlowSchema": FlowSchemaStrategy(),
    "IPAddress": IPAddressStrategy(),
    "Ingress": IngressStrategy(),
    "IngressClass": IngressClassStrategy(),
    "NetworkPolicy": NetworkPolicyStrategy(),
    "PodCertificateRequest": PodCertificateRequestStrategy(),
    "PodTemplate": PodTemplateStrategy(),
    "PriorityLevelConfiguration": PriorityLevelStrategy(),
    "ReplicationController": ReplicationControllerStrategy(),
    "ClusterRole": ClusterRoleStrategy(),
    "ClusterRoleBinding": ClusterRoleBindingStrategy(),
    "Role": RoleStrategy(),
    "RoleBinding": RoleBindingStrategy(),
    "ServiceCIDR": ServiceCIDRStrategy(),
    "VolumeAttachment": VolumeAttachmentStrategy(),
    "VolumeAttributesClass": VolumeAttributesClassStrategy(),
}
# By kind and subresource.
PART_STRATEGIES: Final[dict[tuple[str, str], Strategy[Any]]] = {
    ("CertificateSigningRequest", "approval"): ApprovalStrategy(),
}
