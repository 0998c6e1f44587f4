"""Which container is meant, by the status of its pod; Kubernetes' words where there is none."""

from __future__ import annotations

from http import HTTPStatus

from mooring.api.core import Container, Pod
from mooring.api.core.podstatus import ContainerStatus
from mooring.node.kubelet_server.contract import Pods
from mooring.node.runtime.contract import ContainerId

_PULLING = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


class NoContainerError(Exception):
    """There is no such container, or it has not what is asked for; the text says why."""

    def __init__(self, code: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.code = code


def log_container(
    pods: Pods, namespace: str, name: str, container: str, *, previous: bool
) -> ContainerId:
    """Return the container whose log is wanted, or raise NoContainerError."""
    pod = _pod(pods, namespace, name, f'pod "{name}" does not exist')
    if container not in _containers(pod):
        text = f'container "{container}" not found in pod "{name}"'
        raise NoContainerError(HTTPStatus.NOT_FOUND, text)
    attempt = _attempt(pod, container, previous=previous)
    return ContainerId(pod.metadata.uid, container, attempt)


def running_container(pods: Pods, namespace: str, name: str, container: str) -> ContainerId:
    """Return a container that runs, or raise NoContainerError."""
    pod = _pod(pods, namespace, name, "pod does not exist")
    status = _status(pod, container)
    if status is None or status.state.running is None:
        text = f'container not found ("{container}")'
        raise NoContainerError(HTTPStatus.INTERNAL_SERVER_ERROR, text)
    return ContainerId(pod.metadata.uid, container, status.restart_count)


def container_spec(pods: Pods, namespace: str, name: str, container: str) -> Container:
    """Return how a container is specified, or raise NoContainerError."""
    pod = _pod(pods, namespace, name, "pod does not exist")
    for each in (*pod.spec.containers, *pod.spec.init_containers):
        if each.name == container:
            return each
    text = f'container "{container}" not found in pod "{name}"'
    raise NoContainerError(HTTPStatus.NOT_FOUND, text)


def _pod(pods: Pods, namespace: str, name: str, missing: str) -> Pod:
    pod = pods.find(namespace, name)
    if pod is None:
        raise NoContainerError(HTTPStatus.NOT_FOUND, missing)
    return pod


def _containers(pod: Pod) -> list[str]:
    spec = pod.spec
    listed = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
    return [container.name for container in listed]


def _status(pod: Pod, container: str) -> ContainerStatus | None:
    status = pod.status
    for listed in (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    ):
        for each in listed or ():
            if each.name == container:
                return each
    return None


def _attempt(pod: Pod, container: str, *, previous: bool) -> int:
    status = _status(pod, container)
    where = f'container "{container}" in pod "{pod.metadata.name}"'
    if status is None:
        raise _refusal(f"{where} is not available")
    state, has_ended_before = status.state, status.last_state.terminated is not None
    is_there = state.running is not None or state.terminated is not None
    if previous:
        if not has_ended_before:
            raise _refusal(f"previous terminated {where} not found")
        # While it waits to be started again, the one that ended last is still the newest.
        return status.restart_count - 1 if is_there else status.restart_count
    if is_there or has_ended_before:
        return status.restart_count
    if state.waiting is None:
        raise _refusal(f"{where} is waiting to start - no logs yet")
    reason = state.waiting.get("reason", "") if isinstance(state.waiting, dict) else ""
    raise _refusal(f"{where} is waiting to start: {_PULLING.get(reason, reason)}")


def _refusal(text: str) -> NoContainerError:
    return NoContainerError(HTTPStatus.BAD_REQUEST, text)
