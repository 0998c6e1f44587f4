"""Objects that an operator creates from a custom resource, with the sources of their parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from moorage.api.custom_workloads.written import Written
from moorage.api.documents.document import Tree
from moorage.api.field_path import Place

OBJECTS_MAX: Final = 100_000  # of one custom resource


class MadeObject(NamedTuple):
    """An object as the operator creates it."""

    tree: dict[str, Tree]
    written: tuple[tuple[Place, Place], ...]  # a path in the tree: the path in the custom resource
    is_copy: bool = False  # it differs from an earlier one in names and labels only

    def written_place(self, place: Place) -> Place | None:
        """Return the path of a part in the custom resource, or None if the operator sets it."""
        for made, written in self.written:
            if place[: len(made)] == made:
                return (*written, *place[len(made) :])
        return None

    def within(self, outer: MadeObject) -> MadeObject:
        """Return the object with paths in the object from which its custom resource was created."""
        paths = ((made, outer.written_place(written)) for made, written in self.written)
        return self._replace(written=tuple((m, w) for m, w in paths if w is not None))


class CustomWorkload:
    """A custom resource, and the metadata of what its operator creates."""

    def __init__(self, tree: Mapping[str, Tree]) -> None:
        root = Written(dict(tree))
        metadata = root.at("metadata")
        self.spec = root.at("spec")
        self.root = root
        self.kind = root.at("kind").text()
        self.name = metadata.at("name").text() or f"{metadata.at('generateName').text()}0"
        self.api_version = root.at("apiVersion").text()
        self._namespace = metadata.at("namespace").text()
        self._uid = metadata.at("uid").text()

    def metadata(self, name: str, *more: Mapping[str, Tree], labels: Any = None) -> dict[str, Tree]:
        """Return the metadata of an object that the operator creates and controls."""
        found: dict[str, Tree] = {"name": name}
        if self._namespace:
            found["namespace"] = self._namespace
        for each in more:
            found |= {k: v for k, v in each.items() if k in ("annotations", "labels")}
        if labels:
            found["labels"] = {**_map(found.get("labels")), **labels}
        owner: dict[str, Tree] = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self._uid or f"{self.kind}/{self.name}",
            "controller": True,
        }
        found["ownerReferences"] = [owner]
        return found

    def pods(
        self, names: Iterator[str], template: Written, labels: Mapping[str, str]
    ) -> Iterator[MadeObject]:
        """Yield a pod of a template for each name."""
        written = (
            (("spec",), template.at("spec").place),
            (("metadata",), template.at("metadata").place),
        )
        for index, name in enumerate(names):
            tree: dict[str, Tree] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": self.metadata(name, template.at("metadata").mapping(), labels=labels),
                "spec": template.at("spec").value,
            }
            yield MadeObject(tree, written, is_copy=index > 0)


def with_template_labels(template: Written, labels: Mapping[str, str]) -> dict[str, Tree]:
    """Return a pod template with labels that an operator adds."""
    metadata = template.at("metadata")
    merged = {**metadata.at("labels").mapping(), **labels}
    return {**template.mapping(), "metadata": {**metadata.mapping(), "labels": merged}}


def _map(tree: Tree) -> dict[str, Tree]:
    return tree if isinstance(tree, dict) else {}
