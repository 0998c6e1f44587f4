"""The kinds of core/v1."""

from __future__ import annotations

from moorage.api.core.limit_range import LimitRange
from moorage.api.core.namespace import (
    Binding,
    ConfigMap,
    Event,
    Namespace,
    ResourceQuota,
    Secret,
    ServiceAccount,
)
from moorage.api.core.node import Node
from moorage.api.core.persistent_volume import PersistentVolume, PersistentVolumeClaim
from moorage.api.core.pod import Pod
from moorage.api.core.replication_controller import PodTemplate, ReplicationController
from moorage.api.core.service import Endpoints, Service
from moorage.api.kinds import Kind, declare_kind

KINDS: tuple[Kind, ...] = (
    declare_kind(Binding, "bindings"),
    declare_kind(ConfigMap, "configmaps", "cm"),
    declare_kind(Endpoints, "endpoints", "ep"),
    declare_kind(Event, "events", "ev"),
    declare_kind(LimitRange, "limitranges", "limits"),
    declare_kind(Namespace, "namespaces", "ns", namespaced=False, has_status=True),
    declare_kind(Node, "nodes", "no", namespaced=False, has_status=True),
    declare_kind(PersistentVolume, "persistentvolumes", "pv", namespaced=False, has_status=True),
    declare_kind(PersistentVolumeClaim, "persistentvolumeclaims", "pvc", has_status=True),
    declare_kind(Pod, "pods", "po", has_status=True),
    declare_kind(PodTemplate, "podtemplates"),
    declare_kind(ReplicationController, "replicationcontrollers", "rc", has_status=True),
    declare_kind(ResourceQuota, "resourcequotas", "quota", has_status=True),
    declare_kind(Secret, "secrets"),
    declare_kind(Service, "services", "svc", has_status=True),
    declare_kind(ServiceAccount, "serviceaccounts", "sa"),
)
