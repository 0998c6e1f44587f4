"""metrics.k8s.io/v1beta1: the current resource usage of nodes and pods, for `kubectl top`.

Nothing is stored. A request reads /stats/summary of each node concerned. Nodes that do not respond
in time are omitted, and so are simulated nodes, on which nothing uses resources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from moorage.api.core import Node, Pod
from moorage.api.meta import ObjectMeta
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import JSON, Request, Response, Target
from moorage.apiserver.http.status import (
    About,
    StatusError,
    method_not_allowed,
    not_found,
    unknown_resource,
)
from moorage.apiserver.node_proxy.connection import SIMULATED
from moorage.apiserver.node_proxy.node_paths import read_page
from moorage.apiserver.resources import Review
from moorage.apiserver.server_context import ServerContext
from moorage.apiserver.verbs.dispatch import list_page
from moorage.apiserver.verbs.resource_request import ResourceRequest

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
METRICS: Final = (GROUP, VERSION)
VERBS: Final = ("get", "list")
SERVED: Final = (
    Review(GROUP, "nodes", "NodeMetrics", version=VERSION, verbs=VERBS),
    Review(GROUP, "pods", "PodMetrics", True, VERSION, VERBS),
)
NODES_AT_ONCE: Final = 16
SUMMARY: Final = "/stats/summary"

Tree = dict[str, Any]


async def answer_metrics(
    server: ServerContext, target: Target, request: Request, user: User, verb: str
) -> Response:
    """Return the usage of nodes or pods, or raise StatusError."""
    if target.subresource or target.resource not in ("nodes", "pods"):
        raise unknown_resource()
    if verb not in VERBS:
        raise method_not_allowed()
    plain = Target("", "v1", target.resource, target.namespace)
    query = dict(request.query)
    if target.name:
        query["fieldSelector"] = f"metadata.name={target.name}"
    listed = await _objects(server, plain, query, user)
    if target.resource == "nodes":
        kind, items = "NodeMetrics", await _of_nodes(server, listed)
    else:
        kind, items = "PodMetrics", await _of_pods(server, listed, user)
    head = {"kind": kind, "apiVersion": f"{GROUP}/{VERSION}"}
    if not target.name:
        head["kind"] += "List"
        return Response(msgspec.json.encode({**head, "metadata": {}, "items": items}), 200, JSON)
    if not items:
        place = "/".join(filter(None, (target.namespace, target.name)))
        raise not_found(About(kind.lower(), kind, GROUP), place)
    return Response(msgspec.json.encode({**head, **items[0]}), 200, JSON)


async def _objects(
    server: ServerContext, target: Target, query: Mapping[str, str], user: User
) -> list[Any]:
    """Return the nodes or pods that a request selects."""
    resource = server.resources.of("", target.resource)
    selected = {key: query[key] for key in ("labelSelector", "fieldSelector") if query.get(key)}
    page = await list_page(server, ResourceRequest(target, resource, user, selected))
    found = (server.registry.find_readable(resource, entry) for entry in page.entries)
    return [each for each in found if each is not None]


async def _of_nodes(server: ServerContext, nodes: Iterable[Node]) -> list[Tree]:
    summaries = await _summaries(server, nodes)
    items = []
    for node, summary in summaries:
        own = _map(summary.get("node"))
        if (usage := _usage(own)) is not None:
            items.append({"metadata": _metadata(node.metadata), **_times(own), "usage": usage})
    return items


async def _of_pods(server: ServerContext, pods: Iterable[Pod], user: User) -> list[Tree]:
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    if not by_node:
        return []
    known: list[Node] = await _objects(server, Target("", "v1", "nodes"), {}, user)
    summaries = await _summaries(server, (n for n in known if n.metadata.name in by_node))
    items = []
    for node, summary in summaries:
        stats = {_map(each.get("podRef")).get("uid"): each for each in _list(summary.get("pods"))}
        for pod in by_node[node.metadata.name]:
            found = _pod_item(pod, stats.get(pod.metadata.uid, {}))
            items += [found] if found is not None else []
    return sorted(items, key=lambda each: (each["metadata"]["namespace"], each["metadata"]["name"]))


def _pod_item(pod: Pod, stats: Tree) -> Tree | None:
    measured = ((each, _usage(each)) for each in _list(stats.get("containers")))
    containers = [
        {"name": str(each.get("name", "")), "usage": usage}
        for each, usage in measured
        if usage is not None
    ]
    if not containers:
        return None
    return {"metadata": _metadata(pod.metadata), **_times(stats), "containers": containers}


async def _summaries(server: ServerContext, nodes: Iterable[Node]) -> list[tuple[Node, Tree]]:
    """Return the summaries of the nodes that respond."""
    slots = asyncio.Semaphore(NODES_AT_ONCE)

    async def read(node: Node) -> tuple[Node, Tree] | None:
        async with slots:
            try:
                page = await read_page(server, node, SUMMARY)
                tree = msgspec.json.decode(page.body) if page.status == 200 else None
            except (StatusError, msgspec.DecodeError):
                return None
        return (node, tree) if isinstance(tree, dict) else None

    real = [node for node in nodes if SIMULATED not in node.metadata.annotations]
    found = await asyncio.gather(*map(read, real))
    return [each for each in found if each is not None]


def _metadata(metadata: ObjectMeta) -> Tree:
    found: Tree = {"name": metadata.name}
    if metadata.namespace:
        found["namespace"] = metadata.namespace
    if metadata.creation_timestamp is not None:
        found["creationTimestamp"] = str(metadata.creation_timestamp)
    return {**found, "labels": metadata.labels} if metadata.labels else found


def _times(stats: Tree) -> Tree:
    cpu = _map(stats.get("cpu"))
    window_s = cpu.get("windowSeconds")
    window = f"{window_s:.3f}s" if isinstance(window_s, int | float) else "0s"
    return {"timestamp": str(cpu.get("time", "")), "window": window}


def _usage(stats: Tree) -> dict[str, str] | None:
    """Return CPU and memory as quantities, or None if the node does not know both."""
    cores = _map(stats.get("cpu")).get("usageNanoCores")
    memory = _map(stats.get("memory")).get("workingSetBytes")
    if not isinstance(cores, int) or not isinstance(memory, int):
        return None
    return {"cpu": f"{cores}n", "memory": f"{memory // 1024}Ki"}


def _map(value: Any) -> Tree:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Tree]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
