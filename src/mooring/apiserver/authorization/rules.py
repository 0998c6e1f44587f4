"""What a rule allows, and whether rules hold all that others give."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from mooring.api.rbac import PolicyRule
from mooring.apiserver.authorization.access import (
    Access,
    PathAccess,
    ResourceAccess,
    quoted_list,
)

ALL = "*"
ATOMS_MAX = 20_000  # a rule of a few lists can mean billions

EVERYTHING = (
    PolicyRule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)),
    PolicyRule(verbs=(ALL,), non_resource_urls=(ALL,)),
)


def allows(rule: PolicyRule, access: Access) -> bool:
    """Return whether a rule allows something."""
    if isinstance(access, PathAccess):
        is_below = any(_is_below(url, access.path) for url in rule.non_resource_urls)
        return is_below and _has(rule.verbs or (), access.verb)
    return allows_some(rule, access) and names(rule, access.name)


def allows_some(rule: PolicyRule, access: ResourceAccess) -> bool:
    """Return whether a rule allows it for some object at least, whatever its name."""
    return (
        _has(rule.verbs or (), access.verb)
        and _has(rule.api_groups, access.group)
        and _has_resource(rule.resources, access.combined)
    )


def names(rule: PolicyRule, name: str) -> bool:
    """Return whether what a rule allows is allowed for objects of this name."""
    return not rule.resource_names or name in rule.resource_names


def _has(wanted: Sequence[str], value: str) -> bool:
    return ALL in wanted or value in wanted


def _has_resource(resources: Sequence[str], combined: str) -> bool:
    """Return whether a resource is among those of a rule; `*/scale` is any with that part."""
    if _has(resources, combined):
        return True
    _, slash, part = combined.partition("/")
    return bool(slash) and f"*/{part}" in resources


def _is_below(url: str, path: str) -> bool:
    return url == path or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


# --- comparing ------------------------------------------------------------------------------------


def missing(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return what of the wanted rules is not held, each with one verb on one thing."""
    atoms = (atom for rule in wanted for atom in atoms_of(rule))
    return [atom for atom in atoms if not any(_covers(rule, atom) for rule in held)]


def size_of(rule: PolicyRule) -> int:
    """Return how many parts a rule has."""
    verbs = len(rule.verbs or ())
    names = max(1, len(rule.resource_names))
    resources = len(rule.api_groups) * len(rule.resources) * names
    return verbs * (resources + len(rule.non_resource_urls))


def atoms_of(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Yield a rule in parts: one verb, and one resource of one group, one name, or one path."""
    verbs = rule.verbs or ()
    for group in rule.api_groups:
        for resource in rule.resources:
            for verb in verbs:
                atom = PolicyRule(verbs=(verb,), api_groups=(group,), resources=(resource,))
                if not rule.resource_names:
                    yield atom
                for name in rule.resource_names:
                    yield replace(atom, resource_names=(name,))
    for url in rule.non_resource_urls:
        for verb in verbs:
            yield PolicyRule(verbs=(verb,), non_resource_urls=(url,))


def _covers(rule: PolicyRule, atom: PolicyRule) -> bool:
    verb = (atom.verbs or ("",))[0]
    if not _has(rule.verbs or (), verb):
        return False
    if atom.non_resource_urls:
        return any(_is_below(url, atom.non_resource_urls[0]) for url in rule.non_resource_urls)
    if rule.resource_names and not (
        atom.resource_names and atom.resource_names[0] in rule.resource_names
    ):
        return False
    return _has(rule.api_groups, atom.api_groups[0]) and _has_resource(
        rule.resources, atom.resources[0]
    )


# --- in words -------------------------------------------------------------------------------------


def described(atoms: Iterable[PolicyRule]) -> str:
    """Return parts of rules as Kubernetes lists them: verbs on the same thing together."""
    return "\n".join(sorted({_shown(rule) for rule in _together(atoms)}))


def _together(atoms: Iterable[PolicyRule]) -> list[PolicyRule]:
    found: dict[tuple[str, ...], PolicyRule] = {}
    others = []
    for atom in atoms:
        if atom.non_resource_urls:
            others.append(atom)
            continue
        key = (*atom.api_groups, *atom.resources, *atom.resource_names)
        known = found.get(key)
        verbs = (*((known and known.verbs) or ()), *(atom.verbs or ()))
        found[key] = replace(atom, verbs=verbs)
    return [*others, *found.values()]


def _shown(rule: PolicyRule) -> str:
    parts = (
        ("APIGroups", rule.api_groups),
        ("Resources", rule.resources),
        ("NonResourceURLs", rule.non_resource_urls),
        ("ResourceNames", rule.resource_names),
        ("Verbs", rule.verbs or ()),
    )
    return f"{{{', '.join(f'{name}:{quoted_list(values)}' for name, values in parts if values)}}}"
