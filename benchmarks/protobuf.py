"""How long objects take from protobuf to a tree, on to an object, and back to bytes.

The slice comes from Kubernetes' own scheduling benchmark with as many devices as make 3 KB of
JSON; the pod is an everyday one. Goal: less than 300 µs to read either.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.slices import slice_json
from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.protobuf import decode, encode

DEVICES = 4
ROUNDS, TIMES = 50, 20

CONTAINER = {
    "name": "main",
    "image": "registry.example.com/train:1.2",
    "command": ["/train", "--epochs=10"],
    "env": [{"name": "LEVEL", "value": "info"}],
    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    "resources": {"requests": {"cpu": "4", "memory": "16Gi"}, "claims": [{"name": "gpu"}]},
    "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets", "readOnly": True}],
    "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10},
    "imagePullPolicy": "IfNotPresent",
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "train-0",
        "namespace": "team",
        "uid": "18db0e85-99e9-4746-8531-ffeb86328b39",
        "labels": {"app": "train"},
        "creationTimestamp": "2026-02-03T04:05:06Z",
    },
    "spec": {
        "containers": [CONTAINER],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "volumes": [{"name": "token", "projected": {"sources": [{"downwardAPI": {}}]}}],
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeName": "node-1",
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-02-03T04:05:09Z"}
        ],
        "podIP": "10.0.0.1",
    },
}


def slice_tree() -> dict[str, Any]:
    """Return a slice of some 3 KB of JSON."""
    tree: dict[str, Any] = json.loads(slice_json(1))
    tree["spec"]["devices"] = tree["spec"]["devices"][:DEVICES]
    return tree


def read_object(body: bytes, struct: type[Any]) -> object:
    """Return the object that a body holds."""
    return decode_tree(decode(body).tree, struct).value


def microseconds(work: Callable[[], object]) -> float:
    """Return the least time that a piece of work takes."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(TIMES):
            work()
        best = min(best, time.process_time() - started)
    return best / TIMES * 1e6


def main() -> None:
    """Print microseconds for one object each."""
    print(f"{'object':8} {'JSON':>7} {'protobuf':>9} {'read':>7} {'object':>7} {'write':>7}")
    for name, tree in (("slice", slice_tree()), ("pod", POD)):
        struct = CATALOGUE.find(tree["apiVersion"], tree["kind"]).struct
        text, body = json.dumps(tree, separators=(",", ":")), encode(tree)
        works: list[Callable[[], object]] = [
            partial(decode, body),
            partial(read_object, body, struct),
            partial(encode, tree),
        ]
        figures = map(microseconds, works)
        shown = " ".join(f"{figure:7.0f}" for figure in figures)
        print(f"{name:8} {len(text):7,} {len(body):9,} {shown}")
    print("bytes, then µs: read to a tree (goal: below 300), read to an object, written")
