"""Roles and bindings that a cluster starts with, against lists of them in YAML.

The target is a folder with `cluster-roles.yaml` and its like, as Kubernetes keeps them beside its
tests, or one such file. They have the gates that Kubernetes has by default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from conformance.runner import Apart, Case, Outcome, Suite, UnreadableError, compared
from moorage.api.codec import to_tree
from moorage.api.gates import Gates, Preset
from moorage.apiserver.auth.bootstrap_policy import bootstrap_objects

PATTERN = "*-role*.yaml"
LISTS = ("apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs")


def open_suite() -> Suite:
    """Return the suite."""
    return RolesSuite()


class RolesSuite(Suite):
    """A case is a role or a binding; its rules are compared in any order."""

    def __init__(self) -> None:
        gates = Gates.parse(preset=Preset.KUBERNETES)
        trees = [to_tree(value) for value in bootstrap_objects(gates)]
        self._ours = {_id(tree): tree for tree in trees}

    def fits(self, case: Case) -> bool:  # noqa: ARG002 - no files of JSON lines
        """Return that no file of JSON lines belongs to the suite."""
        return False

    def cases(self, target: Path) -> Iterator[Case] | None:
        """Yield the objects of a folder or a file, if there are any."""
        files = sorted(target.glob(PATTERN)) if target.is_dir() else [target]
        files = [file for file in files if "featuregates" not in file.name]
        return _cases(files) if files and all(f.suffix == ".yaml" for f in files) else None

    def compare(self, case: Case) -> Outcome:
        """Compare what we start with, if we do, in rules, subjects, labels and annotations."""
        ours = self._ours.get(case.id)
        if ours is None:
            return Apart("a role or binding that Moorage does not start with")
        return compared(_compared(case.fields), _compared(ours))


def _cases(files: list[Path]) -> Iterator[Case]:
    for file in files:
        for item in _items(file):
            yield Case(_id(item), item, json.dumps(item).encode())


def _items(file: Path) -> list[dict[str, Any]]:
    try:
        items: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))["items"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError) as fault:
        raise UnreadableError(f"{file}: not a list of objects in YAML: {fault}") from fault
    return items


def _id(tree: Mapping[str, Any]) -> str:
    metadata = tree["metadata"]
    return "/".join((tree["kind"], metadata.get("namespace", ""), metadata["name"]))


def _compared(tree: Mapping[str, Any]) -> dict[str, Any]:
    metadata = tree["metadata"]
    rules = (
        {key: sorted(rule[key]) for key in LISTS if rule.get(key)}
        for rule in tree.get("rules") or ()
    )
    return {
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "rules": sorted(rules, key=json.dumps),
        "subjects": tree.get("subjects") or [],
        "roleRef": tree.get("roleRef"),
        "aggregationRule": tree.get("aggregationRule"),
    }
