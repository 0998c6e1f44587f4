"""A pod as the checks read it, and the words that their details share.

Checks read the pod as it is stored: JSON. What has not the type that it should have counts as
absent, as validation refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
Tree = dict[str, Any]

_NOTHING: Final[Tree] = {}
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")


class Violation(NamedTuple):
    """What a check forbids in a pod: in short, and which values or containers."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class EvaluatedContainer(NamedTuple):
    """A container of any kind, and its security context."""

    name: str
    tree: Tree
    security: Tree


class _Found(NamedTuple):
    names: list[str]
    values: list[str]


class EvaluatedPod:
    """The annotations and the spec of a pod or a pod template, given as JSON."""

    def __init__(self, tree: Any) -> None:
        self.spec = tree_at(tree, "spec")
        annotations = tree_at(tree, "metadata", "annotations").items()
        self.annotations = {key: text for key, text in annotations if isinstance(text, str)}

    @cached_property
    def security(self) -> Tree:
        """The security context of the pod."""
        return tree_at(self.spec, "securityContext")

    @cached_property
    def containers(self) -> list[EvaluatedContainer]:
        """All containers: init containers, containers, and ephemeral ones."""
        trees = (tree for name in _CONTAINER_LISTS for tree in trees_at(self.spec, name))
        return [
            EvaluatedContainer(str(tree.get("name", "")), tree, tree_at(tree, "securityContext"))
            for tree in trees
        ]

    @property
    def is_windows(self) -> bool:
        """Whether the pod says that it runs on Windows, which has no such fields."""
        return tree_at(self.spec, "os").get("name") == "windows"

    @property
    def runtime_class(self) -> str:
        """The runtime class that the pod names; "" if it names none."""
        name = self.spec.get("runtimeClassName")
        return name if isinstance(name, str) else ""

    @property
    def has_user_namespace(self) -> bool:
        """Whether root in the pod is not root on its node."""
        return self.spec.get("hostUsers") is False

    def each(self, read: Callable[[EvaluatedContainer], T]) -> list[tuple[str, T]]:
        """Return the name of each container with what is read of it."""
        return [(container.name, read(container)) for container in self.containers]

    def found(self, read: Callable[[EvaluatedContainer], Iterable[str]]) -> _Found:
        """Return the containers of which something bad is read, and all that is."""
        names, values = [], set[str]()
        for container in self.containers:
            if bad := read(container):
                names.append(container.name)
                values.update(bad)
        return _Found(names, sorted(values))

    def names(self, is_bad: Callable[[EvaluatedContainer], bool]) -> list[str]:
        """Return the names of the containers that are bad."""
        return [container.name for container in self.containers if is_bad(container)]


Check = Callable[[EvaluatedPod], Violation | None]


# --- reading JSON ---------------------------------------------------------------------------------


def tree_at(tree: Any, *names: str) -> Tree:
    """Return the object below some names; an empty one if there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else _NOTHING


def trees_at(tree: Tree, name: str) -> list[Tree]:
    """Return the objects of a list."""
    found = tree.get(name) or ()
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def texts_at(tree: Tree, name: str) -> list[str]:
    """Return the strings of a list."""
    found = tree.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


# --- words ----------------------------------------------------------------------------------------


def plural(count: int, singular: str, many: str) -> str:
    """Return the form of a word for a count."""
    return singular if count == 1 else many


def quoted(texts: Iterable[str]) -> str:
    """Return texts in quotes, unescaped as Kubernetes has them."""
    return ", ".join(f'"{text}"' for text in texts)


def containers_text(names: Collection[str]) -> str:
    """Return the names of one or more containers."""
    return f"{plural(len(names), 'container', 'containers')} {quoted(names)}"


def setters_text(is_pod: bool, containers: Collection[str]) -> str:
    """Return who sets something: the pod, containers, or both."""
    found = ["pod"] if is_pod else []
    return " and ".join([*found, containers_text(containers)] if containers else found)
