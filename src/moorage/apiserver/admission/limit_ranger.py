"""LimitRanger: default resources of containers, and limits for pods and volume claims.

A namespace may have any number of ranges, so what takes long runs in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from msgspec.structs import replace

from moorage.api.core.limit_range import LimitRange, LimitRangeItem
from moorage.api.core.persistent_volume import PersistentVolumeClaim
from moorage.api.core.pod import Container, Pod, PodSpec, resources_at_once
from moorage.api.core.resources import ResourceList
from moorage.api.field_path import root
from moorage.api.quantity import Quantity
from moorage.apiserver.admission.cache import AdmissionCache
from moorage.apiserver.http.status import forbidden, invalid
from moorage.apiserver.verbs.resource_request import ResourceRequest
from moorage.apiserver.worker_threads import WorkerThreads
from moorage.validation.errors import ErrorList
from moorage.validation.pod.resources import qos_class, validate_resources

ANNOTATION: Final = "kubernetes.io/limit-ranger"
BOUND_BYTES: Final = 10  # of an input that takes as long as one bound of one container
LARGE_BYTES: Final = 2**20  # a large step; larger ones would not find room to wait
CONTAINER, POD, CLAIM = "Container", "Pod", "PersistentVolumeClaim"


class LimitRanger:
    """Applies the LimitRanges of a namespace."""

    def __init__(self, cache: AdmissionCache, workers: WorkerThreads) -> None:
        self._cache = cache
        self._workers = workers

    async def mutate(self, request: ResourceRequest, pod: Pod) -> Pod:
        """Return a new pod with default requests and limits, or raise why these do not suit it."""
        ranges = self._of(pod.metadata.namespace)
        if not ranges:
            return pod
        size = _size(ranges, pod)
        new, faults = await self._workers.run(request.user.name, size, _defaulted, pod, ranges)
        if faults:
            raise invalid(request.resource.about, pod.metadata.name, faults)
        return new

    async def validate(self, request: ResourceRequest, new: object, old: object) -> None:
        """Raise 403 if a pod or claim exceeds a bound; only new and resized pods can."""
        if not isinstance(new, (Pod, PersistentVolumeClaim)):
            return
        subresource = request.target.subresource
        is_resized = isinstance(new, Pod) and subresource == "resize"
        is_checked = old is None or isinstance(new, PersistentVolumeClaim)
        if not is_resized and (subresource or not is_checked):
            return
        ranges = self._of(new.metadata.namespace)
        if not ranges:
            return
        size = _size(ranges, new)
        faults = await self._workers.run(request.user.name, size, _first_faults, new, ranges)
        if faults:
            why = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
            name = new.metadata.name or new.metadata.generate_name
            raise forbidden(request.resource.about, name, why)

    def _of(self, namespace: str) -> list[LimitRange]:
        found = self._cache.limit_ranges.get(namespace, {})
        return [found[name] for name in sorted(found)]


def _size(ranges: list[LimitRange], value: Pod | PersistentVolumeClaim) -> int:
    """Return the size of an input that takes as long as the ranges for an object."""
    spec, amounts = value.spec, 1
    if isinstance(spec, PodSpec):
        amounts += len(spec.containers) + len(spec.init_containers)
    bounds = sum(map(_count, chain.from_iterable(each.spec.limits for each in ranges)))
    return min(BOUND_BYTES * amounts * bounds, LARGE_BYTES)


def _count(item: LimitRangeItem) -> int:
    maps = (item.default, item.default_request, item.min, item.max, item.max_limit_request_ratio)
    return sum(map(len, maps))


def _first_faults(new: Pod | PersistentVolumeClaim, ranges: list[LimitRange]) -> list[str]:
    """Return the faults of the first range that an object exceeds, each once."""
    for each in ranges:
        found = _pod_faults(new, each) if isinstance(new, Pod) else _claim_faults(new, each)
        if faults := list(dict.fromkeys(found)):
            return faults
    return []


# --- defaults ----------------------------------------------------------------------------------


def _defaulted(pod: Pod, ranges: list[LimitRange]) -> tuple[Pod, ErrorList]:
    """Return a pod with the defaults of all ranges, and what is wrong with them."""
    new = pod
    for each in ranges:
        new = _with_defaults(new, each)
    return new, [] if new is pod else validate_resources(new.spec, root("spec"))


def _with_defaults(pod: Pod, limit_range: LimitRange) -> Pod:
    requests: ResourceList = {}
    limits: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            requests.update(item.default_request)
            limits.update(item.default)
    if not requests and not limits:
        return pod
    notes: list[str] = []

    def filled(container: Container, what: str) -> Container:
        own = container.resources
        added_requests = sorted(set(requests) - set(own.requests))
        added_limits = sorted(set(limits) - set(own.limits))
        for names, field in ((added_requests, "request"), (added_limits, "limit")):
            if names:
                notes.append(f"{', '.join(names)} {field} for {what} {container.name}")
        resources = replace(
            own, requests={**requests, **own.requests}, limits={**limits, **own.limits}
        )
        return replace(container, resources=resources)

    spec = replace(
        pod.spec,
        containers=tuple(filled(c, "container") for c in pod.spec.containers),
        init_containers=tuple(filled(c, "init container") for c in pod.spec.init_containers),
    )
    if not notes:
        return pod
    annotations = {
        **pod.metadata.annotations,
        ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}",
    }
    return replace(
        pod,
        metadata=replace(pod.metadata, annotations=annotations),
        spec=spec,
        status=replace(pod.status, qos_class=qos_class(spec)),
    )


# --- bounds ------------------------------------------------------------------------------------


def _pod_faults(pod: Pod, limit_range: LimitRange) -> Iterator[str]:
    for item in limit_range.spec.limits:
        if item.type == CONTAINER:
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                resources = container.resources
                yield from _faults(item, resources.requests, resources.limits)
        elif item.type == POD:
            yield from _faults(
                item,
                _of_pod(pod, lambda container: container.resources.requests, "requests"),
                _of_pod(pod, lambda container: container.resources.limits, "limits"),
            )


def _of_pod(pod: Pod, source: Callable[[Container], ResourceList], name: str) -> ResourceList:
    found = resources_at_once(pod, source)
    if pod.spec.resources is not None:
        found |= getattr(pod.spec.resources, name)
    return found


def _claim_faults(claim: PersistentVolumeClaim, limit_range: LimitRange) -> Iterator[str]:
    requests = claim.spec.resources.requests
    for item in limit_range.spec.limits:
        if item.type != CLAIM:
            continue
        for name, least in item.min.items():
            yield from _too_little(item.type, name, least, requests, {})
        for name, most in item.max.items():
            request = requests.get(name)
            bound = f"maximum {name} usage per {item.type} is {most}"
            if request is None:
                yield f"{bound}.  No request is specified"
            elif request > most:
                yield f"{bound}, but request is {request}"


def _faults(item: LimitRangeItem, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    for name, least in item.min.items():
        yield from _too_little(item.type, name, least, requests, limits)
    for name, most in item.max.items():
        yield from _too_much(item.type, name, most, requests, limits)
    for name, ratio in item.max_limit_request_ratio.items():
        yield from _too_far(item.type, name, ratio, requests, limits)


def _too_little(
    kind: str, name: str, least: Quantity, requests: ResourceList, limits: ResourceList
) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    bound = f"minimum {name} usage per {kind} is {least}"
    if request is None:
        yield f"{bound}.  No request is specified"
    elif request < least:
        yield f"{bound}, but request is {request}"
    elif limit is not None and limit < least:
        yield f"{bound}, but limit is {limit}"


def _too_much(
    kind: str, name: str, most: Quantity, requests: ResourceList, limits: ResourceList
) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    if limit is not None and limit <= most and (request is None or request <= most):
        return
    bound = f"maximum {name} usage per {kind} is {most}"
    if limit is None:
        yield f"{bound}.  No limit is specified"
    elif limit > most:
        yield f"{bound}, but limit is {limit}"
    elif request is not None and request > most:
        yield f"{bound}, but request is {request}"


def _too_far(
    kind: str, name: str, ratio: Quantity, requests: ResourceList, limits: ResourceList
) -> Iterator[str]:
    request, limit = requests.get(name), limits.get(name)
    bound = f"{name} max limit to request ratio per {kind} is {ratio}"
    if request is None or request.is_zero:
        yield f"{bound}, but no request is specified or request is 0"
    elif limit is None or limit.is_zero:
        yield f"{bound}, but no limit is specified or limit is 0"
    elif limit.nano * 10**9 > ratio.nano * request.nano:
        yield f"{bound}, but provided ratio is {limit.nano / request.nano:.6f}"
