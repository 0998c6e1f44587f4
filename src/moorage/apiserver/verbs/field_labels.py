"""Fields of objects by which clients select them, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.api.batch import Job
from moorage.api.certificates import GROUP as CERTIFICATES
from moorage.api.certificates import (
    CertificateSigningRequest,
    ClusterTrustBundle,
    PodCertificateRequest,
)
from moorage.api.core import Event, Namespace, Node, Pod, ReplicationController, Secret
from moorage.api.custom_resource import CustomResource, is_custom
from moorage.api.kinds import Kind
from moorage.api.resource.v1 import ResourceSlice
from moorage.apiserver.custom_resources.fields import selectable_fields, values_of_fields

Fields = Mapping[str, str]  # values by field

NAME, NAMESPACE = "metadata.name", "metadata.namespace"

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def field_of(kind: Kind, label: str) -> str | None:
    """Return the field of a label for a kind; None if the label is not supported."""
    if is_custom(kind.struct):
        return label if label in (NAME, NAMESPACE, *selectable_fields(kind)) else None
    more = _LABELS.get((kind.group, kind.name))
    if more is None:
        return label if label in (NAME, NAMESPACE) else None
    if label == NAME or (kind.namespaced and label == NAMESPACE):
        return label
    return more.get(label)


def unknown_label(kind: Kind, label: str) -> str:
    """Return the error message for an unsupported label."""
    if is_custom(kind.struct):
        return f"field label not supported: {label}"
    if (kind.group, kind.name) not in _LABELS:
        return f'"{label}" is not a known field selector: only "{NAME}", "{NAMESPACE}"'
    if kind.name == "ResourceSlice":
        return f"field label not supported for {kind.api_version}, Kind={kind.name}: {label}"
    if kind.name == "Job":
        return f'field label "{label}" not supported for Job'
    return f"field label not supported: {label}"


def fields_of(value: Any, *, namespaced: bool) -> Fields:
    """Return the selectable fields of an object."""
    fields = {NAME: value.metadata.name}
    if namespaced:
        fields[NAMESPACE] = value.metadata.namespace
    if isinstance(value, CustomResource):
        return {**fields, **values_of_fields(value)}
    more = _FIELDS.get(type(value))
    return fields if more is None else {**fields, **more(value)}


def _of_slice(value: ResourceSlice) -> Fields:
    spec = value.spec
    return {
        "spec.nodeName": spec.node_name or "",
        "spec.driver": spec.driver,
        "spec.pool.name": spec.pool.name,
    }


def _of_pod(value: Pod) -> Fields:
    spec, status = value.spec, value.status
    return {
        "spec.nodeName": spec.node_name,
        "spec.restartPolicy": spec.restart_policy,
        "spec.schedulerName": spec.scheduler_name,
        "spec.serviceAccountName": spec.service_account_name,
        "spec.hostNetwork": str(bool(spec.host_network)).lower(),
        "status.phase": status.phase,
        "status.podIP": status.pod_ips[0].ip if status.pod_ips else "",
        "status.nominatedNodeName": status.nominated_node_name,
    }


def _of_node(value: Node) -> Fields:
    return {"spec.unschedulable": str(bool(value.spec.unschedulable)).lower()}


def _of_namespace(value: Namespace) -> Fields:
    return {"status.phase": value.status.phase}


def _of_secret(value: Secret) -> Fields:
    return {"type": value.type}


def _of_job(value: Job) -> Fields:
    return {"status.successful": str(value.status.succeeded)}


def _of_event(value: Event) -> Fields:
    about = value.involved_object
    return {
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace,
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": about.api_version,
        "involvedObject.resourceVersion": about.resource_version,
        "involvedObject.fieldPath": about.field_path,
        "reason": value.reason,
        "reportingComponent": value.reporting_controller,
        "source": value.source.component or value.reporting_controller,
        "type": value.type,
    }


def _of_signed(value: CertificateSigningRequest | ClusterTrustBundle) -> Fields:
    return {"spec.signerName": value.spec.signer_name}


def _of_pod_certificate(value: PodCertificateRequest) -> Fields:
    spec = value.spec
    return {
        "spec.signerName": spec.signer_name,
        "spec.podName": spec.pod_name,
        "spec.nodeName": spec.node_name,
    }


def _of_replication_controller(value: ReplicationController) -> Fields:
    return {"status.replicas": str(value.status.replicas)}


_FIELDS: Mapping[type, Callable[[Any], Fields]] = {
    CertificateSigningRequest: _of_signed,
    ClusterTrustBundle: _of_signed,
    Event: _of_event,
    Job: _of_job,
    Namespace: _of_namespace,
    Node: _of_node,
    Pod: _of_pod,
    PodCertificateRequest: _of_pod_certificate,
    ReplicationController: _of_replication_controller,
    ResourceSlice: _of_slice,
    Secret: _of_secret,
}


def _same(fields: Fields) -> dict[str, str]:
    return {field: field for field in fields}


# By group and kind. Every kind has the labels of metadata; other kinds have only those.
_LABELS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "Event"): _same(_of_event(Event())),
    ("", "Namespace"): _same(_of_namespace(Namespace())),
    ("", "Node"): _same(_of_node(Node())),
    ("", "Pod"): {
        **_same(_of_pod(Pod())),
        "spec.host": "spec.nodeName",
        "status.podIPs": "status.podIPs",  # Accepted, but no pod has it, as in Kubernetes.
    },
    ("", "ReplicationController"): _same(_of_replication_controller(ReplicationController())),
    ("", "Secret"): _same(_of_secret(Secret())),
    ("batch", "Job"): _same(_of_job(Job())),
    (CERTIFICATES, "CertificateSigningRequest"): _same(_of_signed(CertificateSigningRequest())),
    (CERTIFICATES, "ClusterTrustBundle"): _same(_of_signed(ClusterTrustBundle())),
    (CERTIFICATES, "PodCertificateRequest"): _same(_of_pod_certificate(PodCertificateRequest())),
    ("events.k8s.io", "Event"): {
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _INVOLVED},
        "reason": "reason",
        "reportingController": "reportingComponent",
        "type": "type",
    },
    ("resource.k8s.io", "ResourceSlice"): _same(_of_slice(ResourceSlice())),
}
