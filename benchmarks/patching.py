"""How long patches and applies of a pod take: processor time, without HTTP and the store."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.apiserver.patching import STRATEGIC_MERGE_PATCH, FieldManager, apply_patch

POD = CATALOGUE.find("v1", "Pod")
ROUNDS = 300
NOW = "2026-01-01T00:00:00Z"


def main() -> None:
    """Print the median of each operation for a small pod and for a large one."""
    for name, containers in (("small", 1), ("large", 2)):
        _measure(name, _pod(containers, is_large=name == "large"))


def _measure(name: str, applied: Any) -> None:
    manager, status = FieldManager(POD), FieldManager(POD, "status")
    live = _stored(manager.apply(None, applied, manager="m", force=False, now=NOW))
    running = {**live, "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}}
    live = _stored(status.update(live, running, manager="kubelet", now=NOW))
    fewer = {**applied, "metadata": {"name": "p"}}
    patch = b'{"spec":{"containers":[{"name":"c0","image":"other"}]}}'

    def apply(tree: Any) -> Any:
        return manager.apply(live, tree, manager="m", force=False, now=NOW)

    cases: dict[str, Callable[[], Any]] = {
        "apply, nothing changed": lambda: apply(applied),
        "apply, labels dropped": lambda: apply(fewer),
        "create by apply": lambda: manager.apply(None, applied, manager="m", force=False, now=NOW),
        "update of status": lambda: status.update(live, running, manager="k", now=NOW),
        "strategic merge patch": lambda: apply_patch(POD, STRATEGIC_MERGE_PATCH, patch, live),
    }
    for case, run in cases.items():
        print(f"{name} pod, {case:24} {_median_ms(run):6.2f} ms")


def _median_ms(run: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        run()
        times.append(process_time() - start)
    return sorted(times)[ROUNDS // 2] * 1e3


def _stored(tree: Any) -> Any:
    written = to_tree(decode_tree(tree, POD.struct).value)
    written["metadata"]["uid"] = "1"
    return written


def _pod(containers: int, *, is_large: bool) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {
            "containers": [_container(n, is_large=is_large) for n in range(containers)],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
    }


def _container(number: int, *, is_large: bool) -> Any:
    container: dict[str, Any] = {"name": f"c{number}", "image": "x"}
    container["resources"] = {"claims": [{"name": "gpu"}]}
    if is_large:
        container["args"] = ["a", "b", "c"]
        container["env"] = [{"name": f"E{n}", "value": str(n)} for n in range(10)]
        container["ports"] = [{"containerPort": 80 + n, "protocol": "TCP"} for n in range(3)]
        container["volumeMounts"] = [{"name": "v", "mountPath": f"/m{n}"} for n in range(4)]
        container["livenessProbe"] = {"httpGet": {"path": "/healthz", "port": 80}}
    return container
