"""What a URL asks for.

/api/v1/…                    the core group
/apis/GROUP/VERSION/…        any other
…/namespaces/NS/RESOURCE[/NAME[/SUBRESOURCE]]
…/RESOURCE[/NAME[/SUBRESOURCE]]
…/watch/…                    what is below, watched: the older way to say so
"""

from __future__ import annotations

from typing import NamedTuple

MISSING = "404 page not found\n"


class Target(NamedTuple):
    """A resource, an object of it, or a part of that."""

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_path(path: str) -> Target | None:
    """Return what a path below /api or /apis means; None if it means no resource."""
    match path.strip("/").split("/"):
        case ["api", version, *rest] if rest:
            return _target("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _target(group, version, rest)
    return None


def without_watch(path: str) -> str | None:
    """Return a path without the word that asks for a watch; None if it does not ask for one."""
    match path.strip("/").split("/"):
        case ["api", version, "watch", *rest] if rest:
            return "/".join(("", "api", version, *rest))
        case ["apis", group, version, "watch", *rest] if rest:
            return "/".join(("", "apis", group, version, *rest))
    return None


def _target(group: str, version: str, rest: list[str]) -> Target | None:
    match rest:
        case ["namespaces", namespace, resource, *more] if not _is_part(rest):
            return _named(Target(group, version, resource, namespace), more)
        case [resource, *more]:
            found = _named(Target(group, version, resource), more)
            if found is not None and found.resource == "namespaces" and found.name:
                # What is about a namespace counts as in it.
                return found._replace(namespace=found.name)
            return found
    return None


def _is_part(rest: list[str]) -> bool:
    """Tell whether a path below a namespace is about the namespace itself."""
    return len(rest) == 3 and rest[2] in ("status", "finalize")


def _named(target: Target, more: list[str]) -> Target | None:
    match more:
        case []:
            return target
        case [name]:
            return target._replace(name=name)
        case [name, subresource]:
            return target._replace(name=name, subresource=subresource)
    return None
