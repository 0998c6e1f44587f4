"""RBAC policy rules: what a rule allows, whether rules cover others, and aggregation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from moorage.api.labels import Selector, read_selector
from moorage.api.rbac import ClusterRole, PolicyRule
from moorage.apiserver.auth.access import Access, PathAccess, ResourceAccess
from moorage.kit.go_quote import go_quote_list

ALL = "*"
ATOMS_MAX = 20_000  # a rule with a few lists can expand to billions

EVERYTHING = (
    PolicyRule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)),
    PolicyRule(verbs=(ALL,), non_resource_urls=(ALL,)),
)


def allows(rule: PolicyRule, access: Access) -> bool:
    """Return whether a rule allows an access."""
    if isinstance(access, PathAccess):
        is_below = any(_is_below(url, access.path) for url in rule.non_resource_urls)
        return is_below and _has(rule.verbs or (), access.verb)
    return allows_some(rule, access) and names(rule, access.name)


def allows_some(rule: PolicyRule, access: ResourceAccess) -> bool:
    """Return whether a rule allows an access to at least some object."""
    return (
        _has(rule.verbs or (), access.verb)
        and _has(rule.api_groups, access.group)
        and _has_resource(rule.resources, access.combined)
    )


def names(rule: PolicyRule, name: str) -> bool:
    """Return whether a rule applies to objects of a name."""
    return not rule.resource_names or name in rule.resource_names


def _has(wanted: Sequence[str], value: str) -> bool:
    return ALL in wanted or value in wanted


def _has_resource(resources: Sequence[str], combined: str) -> bool:
    """Return whether a rule names a resource; `*/scale` is that subresource of any."""
    if _has(resources, combined):
        return True
    _, slash, part = combined.partition("/")
    return bool(slash) and f"*/{part}" in resources


def _is_below(url: str, path: str) -> bool:
    return url == path or (url.endswith(ALL) and path.startswith(url.rstrip(ALL)))


# --- comparing ------------------------------------------------------------------------------------


def missing(held: Sequence[PolicyRule], wanted: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the atoms of `wanted` that the held rules do not cover."""
    atoms = (atom for rule in wanted for atom in atoms_of(rule))
    return [atom for atom in atoms if not any(_covers(rule, atom) for rule in held)]


def size_of(rule: PolicyRule) -> int:
    """Return how many atoms a rule has."""
    verbs = len(rule.verbs or ())
    names = max(1, len(rule.resource_names))
    resources = len(rule.api_groups) * len(rule.resources) * names
    return verbs * (resources + len(rule.non_resource_urls))


def atoms_of(rule: PolicyRule) -> Iterator[PolicyRule]:
    """Yield the atoms of a rule: one verb on one resource, object or path."""
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
    """Return atoms as Kubernetes lists them: verbs on the same resource together."""
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
    return f"{{{', '.join(f'{name}:{go_quote_list(values)}' for name, values in parts if values)}}}"


# --- aggregation ----------------------------------------------------------------------------------

Roles = Mapping[str, ClusterRole]  # by name


def aggregated(role: ClusterRole, roles: Roles) -> tuple[PolicyRule, ...]:
    """Return the rules of a role: its own, or those of all roles that it aggregates.

    Aggregated roles may aggregate others in turn, even in a cycle.
    """
    rules = {_content(rule): rule for rule in _Gathering(roles).rules_of(role)}
    return tuple(rules.values())


def stale(roles: Roles) -> list[ClusterRole]:
    """Return the aggregated roles whose stored rules are stale, with the right rules."""
    found = []
    for _, role in sorted(roles.items()):
        if role.aggregation_rule is None:
            continue
        rules = aggregated(role, roles)
        if rules != (role.rules or ()):
            found.append(replace(role, rules=rules))
    return found


class _Gathering:
    """One walk from a role to all its parts; visits no role twice."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._seen: set[str] = set()

    def rules_of(self, role: ClusterRole) -> Iterable[PolicyRule]:
        self._seen.add(role.metadata.name)
        if role.aggregation_rule is None:
            yield from role.rules or ()
            return
        for part in self._parts(role):
            if part.metadata.name not in self._seen:
                yield from self.rules_of(part)

    def _parts(self, role: ClusterRole) -> list[ClusterRole]:
        rule = role.aggregation_rule
        read = () if rule is None else map(read_selector, rule.cluster_role_selectors)
        selectors = [selector for selector in read if isinstance(selector, Selector)]
        return [
            part
            for _, part in sorted(self._roles.items())
            if any(selector.matches(part.metadata.labels) for selector in selectors)
        ]


def _content(rule: PolicyRule) -> tuple[object, ...]:
    return (
        rule.verbs,
        rule.api_groups,
        rule.resources,
        rule.resource_names,
        rule.non_resource_urls,
    )
