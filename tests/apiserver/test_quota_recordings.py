"""What a real cluster answered and counted, step by step.

The scheduler and the controllers of the recording are played: after each step the claims and pods
are brought to what was recorded. What is refused, and what quotas then count, must be ours.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from tests.apiserver.client import CLASSES, MERGE_PATCH, NAMESPACES, SLICES, Client
from tests.corpus import corpus

Tree = dict[str, Any]

CORE = ("Pod", "ResourceQuota", "Node")
PLURALS = {
    "DeviceClass": CLASSES,
    "ResourceSlice": SLICES,
    "Node": "/api/v1/nodes",
    "Pod": "pods",
    "ResourceQuota": "resourcequotas",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}
NODES = ("node-a", "node-b")


class Replay:
    """A server that is led through a recording."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        client.post(NAMESPACES, {"metadata": {"name": namespace}})
        for name in NODES:
            client.post("/api/v1/nodes", {"metadata": {"name": name}})

    def url(self, kind: str, name: str = "") -> str:
        plural = PLURALS[kind]
        if not plural.startswith("/"):
            group = "/api/v1" if kind in CORE else "/apis/resource.k8s.io/v1"
            plural = f"{group}/namespaces/{self._namespace}/{plural}"
        return f"{plural}/{name}" if name else plural

    def do(self, step: Tree) -> Tree | None:
        """Do what a step does, and return what is refused of it."""
        for reply in self._replies(step):
            if reply.status >= 400:
                return {k: v for k, v in reply.json.items() if k != "metadata"}
        return None

    def _replies(self, step: Tree) -> Any:
        target = step.get("target", {})
        match step["verb"]:
            case "create":
                for tree in step.get("objects") or [step["object"]]:
                    yield self._client.post(self.url(tree["kind"]), tree)
            case "delete":
                yield self._client.delete(self.url(**target))
            case "patch-status":
                url = f"{self.url(**target)}/status"
                yield self._client.patch(url, step["patch"], MERGE_PATCH)
            case verb:
                raise AssertionError(verb)

    def play(self, state: Tree) -> None:
        """Do what controllers and scheduler did: make and delete claims."""
        listed = self._client.get(self.url("ResourceClaim")).json["items"]
        have = {tree["metadata"]["name"] for tree in listed}
        want = {_name(name): tree for name, tree in state["resourceclaims"].items()}
        for name in have - want.keys():
            self._client.delete(self.url("ResourceClaim", name))
        for name in want.keys() - have:
            tree = self._claim(name, want[name])
            # What has gone may count for a moment; then controllers try again, too.
            self._client.until(partial(self._is_made, tree))

    def _is_made(self, tree: Tree) -> bool:
        return self._client.post(self.url("ResourceClaim"), tree).status == 201

    def _claim(self, name: str, tree: Tree) -> Tree:
        metadata = {k: v for k, v in tree["metadata"].items() if k in ("annotations", "labels")}
        owners = tree["metadata"].get("ownerReferences", [])
        for owner in owners:
            pod = self._client.get(self.url("Pod", owner["name"])).json
            owner["uid"] = pod["metadata"]["uid"]
        metadata |= {"name": name, "ownerReferences": owners}
        return {"metadata": metadata, "spec": tree["spec"]}

    def counts(self, wanted: Tree) -> bool:
        """Return whether quotas say what they should."""
        listed = self._client.get(self.url("ResourceQuota")).json["items"]
        return {tree["metadata"]["name"]: tree["status"] for tree in listed} == wanted


def _name(recorded: str) -> str:
    return recorded.replace("<", "").replace(">", "")


@pytest.mark.parametrize("name", ["quota-count", "quota-extended"])
def test_quotas_refuse_and_count_as_recorded(client: Client, name: str) -> None:
    recording = json.loads(corpus("lifecycle", f"{name}.json").read_text())
    replay = Replay(client, recording["namespace"])
    for number, step in enumerate(recording["steps"]):
        assert replay.do(step["do"]) == step["expectError"], number
        replay.play(step["state"])
        wanted = {q: tree["status"] for q, tree in step["state"]["resourcequotas"].items()}
        client.until(partial(replay.counts, wanted))
