"""Node selectors and node affinities that keep a pod from the nodes that would do.

    node selector, node affinity ─► wishes ─ those that the nodes do not fulfil ─► cause and repairs

Devices of a claim are a reason by themselves to choose a node: a label that is wanted beside them
is one reason too many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from moorage.api.go_integers import parse_int64
from moorage.api.labels import GREATER, LESS, LabelRule
from moorage.insight.answer.changes.edits import Edit, EditPath, change_of
from moorage.insight.answer.changes.sources import Source
from moorage.insight.answer.finding import Case, Finding, FixRank, Proposal
from moorage.insight.answer.nodes.extended import IMPLICIT, container_amounts
from moorage.insight.messages import CAUSE_LENGTH_MAX, counted, listed, natural_order, nearest
from moorage.kit.similar_names import similar

HOSTNAME: Final = "kubernetes.io/hostname"
NAME_FIELD: Final = "metadata.name"
NODES_SHOWN_MAX: Final = 2
REQUIRED: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
# What an image can run on is no matter of spelling.
_PLATFORM: Final = ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch")
Labels = Mapping[str, str]


class _Wish(NamedTuple):
    """One thing that a pod wants of a node, and where it is written."""

    where: str
    key: str
    operator: str
    values: tuple[str, ...]
    path: EditPath  # of the value of a node selector, or of the expression
    removal: EditPath
    others: int = 0  # terms that would do instead

    @property
    def text(self) -> str:
        if self.operator == "In":
            values = listed(self.values)
            return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in {values}"
        return " ".join((self.key, self.operator, ", ".join(self.values))).strip()

    def holds(self, name: str, labels: Labels) -> bool:
        """Return whether a node fulfils the wish."""
        limit = parse_int64(self.values[0]) if self.operator in (GREATER, LESS) else None
        rule = LabelRule(self.key, self.operator, frozenset(self.values), limit)
        return rule.holds({NAME_FIELD: name} if self.key == NAME_FIELD else labels)

    def other_value(self, value: str) -> Edit:
        """Return the edit that wants another value."""
        if self.where == "node selector":
            return Edit(self.path, value)
        return Edit((*self.path, "values"), [value])

    def other_key(self, key: str) -> list[Edit]:
        """Return the edits that want another label."""
        if self.where == "node selector":
            return [Edit(("nodeSelector", key), self.values[0]), Edit(self.path)]
        return [Edit((*self.path, "key"), key)]


def label_findings(case: Case, nodes: Sequence[str]) -> Iterator[Finding]:
    """Find what the pod wants of nodes that would do otherwise, and that these do not have."""
    states = case.cluster.snapshot.nodes
    node = states[nodes[0]].facts
    unmet = [wish for wish in _wishes(case) if not wish.holds(node.name, node.labels)]
    if not unmet:
        return
    known: dict[str, set[str]] = {NAME_FIELD: set(states)}
    for state in states.values():
        for key, value in state.facts.labels.items():
            known.setdefault(key, set()).add(value)
    source = case.sources.of_pod(case.pod)
    wish = unmet[0]
    proposals: list[Proposal] = []
    if source is not None:
        proposals += _repairs(source, wish, known)
        proposals += _removal(case, source, unmet)
    if not any(each.rank is FixRank.REPAIR for each in proposals):  # No node gets a mistyped label.
        proposals += _labelled(case, unmet, nodes)
    yield Finding(_cause(case, wish, known, nodes), tuple(proposals))


def _wishes(case: Case) -> Iterator[_Wish]:
    """Yield what a node must be like; of several alternative terms, the first."""
    spec = case.pod.spec
    for key, value in sorted(spec.node_selector.items()):
        path: EditPath = ("nodeSelector", key)
        removal: EditPath = path if len(spec.node_selector) > 1 else path[:1]
        yield _Wish("node selector", key, "In", (value,), path, removal)
    affinity = spec.affinity and spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    terms = (required and required.node_selector_terms) or ()
    for term in terms[:1]:
        count = len(term.match_expressions) + len(term.match_fields)
        for field, rules in (
            ("matchExpressions", term.match_expressions),
            ("matchFields", term.match_fields),
        ):
            for index, rule in enumerate(rules):
                path = (*REQUIRED, "nodeSelectorTerms", 0, field, index)
                removal = path if count > 1 or len(terms) > 1 else REQUIRED
                wanted = (rule.key, rule.operator, rule.values)
                yield _Wish("node affinity", *wanted, path, removal, len(terms) - 1)


# --- the cause ------------------------------------------------------------------------------


def _cause(case: Case, wish: _Wish, known: Mapping[str, set[str]], nodes: Sequence[str]) -> str:
    instead = f" or {counted(wish.others, 'other term')}" if wish.others else ""
    wants = f"the {wish.where} wants {wish.text}{instead}"
    states = case.cluster.snapshot.nodes
    matching = sorted(
        (n for n, state in states.items() if wish.holds(n, state.facts.labels)), key=natural_order
    )
    here = listed(list(nodes), shown_max=2)
    if matching:
        what = "its devices are" if _device_source(case) else "it would fit"
        value = states[nodes[0]].facts.labels.get(wish.key, "no such label")
        verb = "has" if len(nodes) == 1 else "have"
        those = f"{', '.join(matching)} {'has' if len(matching) == 1 else 'have'}"
        there = f", which {those}" if len(matching) <= NODES_SHOWN_MAX else ""
        return f"{wants}{there}, but {what} on {here}, which {verb} {value}"
    if wish.key not in known:
        meant = near_label(wish.key, known)
        return f"{wants}, a label that no node has" + (f": did you mean {meant}?" if meant else "")
    if wish.operator != "In":
        return f"{wants}, which no node fulfils: node {nodes[0]} has {_label(case, wish, nodes[0])}"
    meant = nearest(wish.values[0], known[wish.key])
    hint = f": did you mean {meant}?" if meant and wish.key not in _PLATFORM else ""
    values = sorted(known[wish.key])
    for shown_max in (3, 1):
        text = f"{wants}; nodes have {listed(values, shown_max=shown_max)}{hint}"
        if len(text) <= CAUSE_LENGTH_MAX:
            return text
    return f"{wants}{hint}"


def _label(case: Case, wish: _Wish, node: str) -> str:
    value = case.cluster.snapshot.nodes[node].facts.labels.get(wish.key)
    return "no such label" if value is None else f"{wish.key}={value}"


def _device_source(case: Case) -> str:
    """Return what of the pod asks for devices: claims, or an extended resource of a class."""
    if case.pod.spec.resource_claims:
        return "claims"
    known = {each.spec.extended_resource_name for each in case.snapshot.classes}
    asked = (name for _, amounts in container_amounts(case) for name in amounts)
    return next((name for name in asked if name in known or name.startswith(IMPLICIT)), "")


# --- what to do -----------------------------------------------------------------------------


def _repairs(source: Source, wish: _Wish, known: Mapping[str, set[str]]) -> Iterator[Proposal]:
    """Yield the wish with the value or label that was meant."""
    if wish.operator != "In" or not wish.values:
        return
    value = wish.values[0]
    meant = nearest(value, known.get(wish.key, ()))
    if meant is not None and value not in known.get(wish.key, ()):
        rank = FixRank.LESS if wish.key in _PLATFORM else FixRank.REPAIR
        change = source.change(wish.other_value(meant))
        image = ", if the image runs there" if wish.key in _PLATFORM else ""
        yield Proposal(f"let the {wish.where} want {wish.key}={meant}{image}", rank, (change,))
    other = near_label(wish.key, known) if wish.key not in known else None
    if other is not None and value in known[other]:
        change = source.change(*wish.other_key(other))
        yield Proposal(f"let the {wish.where} want {other}={value}", FixRank.REPAIR, (change,))


def _removal(case: Case, source: Source, unmet: Sequence[_Wish]) -> Iterator[Proposal]:
    """Yield the pod without the wishes; where claims choose nodes, nothing is given up."""
    removals = dict.fromkeys(wish.removal for wish in unmet)
    whole = ("nodeSelector",)
    selected = [wish for wish in unmet if wish.where == "node selector"]
    if len(selected) == len(case.pod.spec.node_selector) and selected:
        kept = [path for path in removals if path[:1] != whole]
        removals = dict.fromkeys([*kept, whole])
    # The last of a list first, so that the others keep their places.
    edits = [Edit(path) for path in sorted(removals, key=str, reverse=True)]
    keys = listed(list(dict.fromkeys(wish.key for wish in unmet)))
    places = " and ".join(dict.fromkeys(wish.where for wish in unmet))
    text = f"remove {keys} from the {places}"
    rank = FixRank.GIVE_UP
    asking = _device_source(case)
    if asking and not any(wish.key in _PLATFORM for wish in unmet):
        verb = "choose" if asking == "claims" else "chooses"
        text, rank = f"{text}: {asking} already {verb} nodes with the devices", FixRank.GIVE
    yield Proposal(text, rank, (source.change(*edits),))


def _labelled(case: Case, unmet: Sequence[_Wish], nodes: Sequence[str]) -> Iterator[Proposal]:
    """Yield a node with the labels that are wanted."""
    node = next((n for n in case.snapshot.nodes if n.metadata.name in nodes), None)
    labels = {
        wish.key: (wish.values or ("true",))[0]
        for wish in unmet
        if wish.operator in ("In", "Exists") and wish.key not in (NAME_FIELD, HOSTNAME)
    }
    if node is None or len(labels) < len(unmet) or any(map(_is_of_kubernetes, labels)):
        return
    edits = (Edit(("metadata", "labels", key), value) for key, value in labels.items())
    said = listed([f"{key}={value}" for key, value in labels.items()])
    text = f"label node {node.metadata.name} {said} (an administrator's change)"
    yield Proposal(text, FixRank.ADMINISTRATOR, (change_of(node, *edits),))


def near_label(key: str, known: Iterable[str]) -> str | None:
    """Return the label that was meant: one of the same or a similar name, whatever its prefix.

    A prefix alone says nothing: kubernetes.io/os is not kubernetes.io/zone. Of labels with as
    similar a name, that with the more similar prefix was meant.
    """
    labels = sorted(set(known) - {key})
    for name in (_name(key), *similar(_name(key), map(_name, labels))):
        of_name = [each for each in labels if _name(each) == name]
        if of_name:
            return nearest(key, of_name) or of_name[0]
    return None


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _is_of_kubernetes(key: str) -> bool:
    """Return whether Kubernetes or a cloud sets a label, such as a zone, which says what is so."""
    return key.partition("/")[0].endswith("kubernetes.io")
