"""The door to what nodes answer."""

from __future__ import annotations

from mooring.apiserver.exchange import Answer, Request, Streaming
from mooring.apiserver.paths import Target
from mooring.apiserver.reaching.logs import read_log
from mooring.apiserver.reaching.tunnels import open_tunnel
from mooring.apiserver.service import Service

LOG = "log"
CONVERSATIONS = ("attach", "exec")


def is_of_node(target: Target) -> bool:
    """Return whether it is the node of a pod that answers."""
    is_pod = (target.group, target.resource) == ("", "pods")
    return is_pod and target.subresource in (LOG, *CONVERSATIONS)


def is_conversation(target: Target | None) -> bool:
    """Return whether the connection is to be one to a container."""
    return target is not None and is_of_node(target) and target.subresource != LOG


async def answer_by_node(service: Service, target: Target, request: Request) -> Answer | Streaming:
    """Return what the node of a pod answers, or raise why it does not."""
    if target.subresource == LOG:
        return await read_log(service, target, request)
    return await open_tunnel(service, target, request)
