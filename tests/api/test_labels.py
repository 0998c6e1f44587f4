"""Label selectors and node selectors: matches and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import labels
from moorage.api.codec import decode_tree
from moorage.api.core.placement import NodeSelector
from moorage.api.labels import (
    DOES_NOT_EXIST,
    EVERYTHING,
    EXISTS,
    IN,
    NOT_IN,
    NOTHING,
    LabelRule,
    RulesByLabel,
    Selector,
    SelectorFault,
    read_selector,
)
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.api.node_affinity import read_node_selector


def selector(tree: Any) -> Selector | SelectorFault:
    return read_selector(decode_tree(tree, LabelSelector).value)


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


WEB = {"app": "web", "tier": "1"}

SELECTED: list[tuple[dict[str, Any], dict[str, str], bool]] = [
    ({}, {}, True),
    ({}, WEB, True),
    ({"matchLabels": {"app": "web"}}, WEB, True),
    ({"matchLabels": {"app": "web", "tier": "2"}}, WEB, False),
    ({"matchLabels": {"app": ""}}, {}, False),
    ({"matchExpressions": [expression("app", "In", "web", "api")]}, WEB, True),
    ({"matchExpressions": [expression("app", "In", "web")]}, {}, False),
    ({"matchExpressions": [expression("app", "NotIn", "web")]}, WEB, False),
    ({"matchExpressions": [expression("app", "NotIn", "web")]}, {}, True),
    ({"matchExpressions": [expression("app", "Exists")]}, WEB, True),
    ({"matchExpressions": [expression("app", "Exists")]}, {}, False),
    ({"matchExpressions": [expression("app", "DoesNotExist")]}, WEB, False),
    (
        {"matchLabels": {"app": "web"}, "matchExpressions": [expression("tier", "In", "2")]},
        WEB,
        False,
    ),
]

FAULTS = [
    ({"matchExpressions": [expression("a", "Gt", "1")]}, '"Gt" is not a valid label selector'),
    ({"matchExpressions": [expression("a", "In")]}, "values: Invalid value: []: for 'in', 'notin'"),
    (
        {"matchExpressions": [expression("a", "Exists", "b")]},
        'values: Invalid value: ["b"]: values',
    ),
    ({"matchExpressions": [expression("-", "Exists")]}, 'key: Invalid value: "-": name part'),
    ({"matchLabels": {"a": "-"}}, 'values[0][a]: Invalid value: "-": a valid label must be'),
    ({"matchLabels": {"a b": "-"}}, '[key: Invalid value: "a b": name part'),
]


@pytest.mark.parametrize(("tree", "labels", "expected"), SELECTED)
def test_what_a_selector_selects(
    tree: dict[str, Any], labels: dict[str, str], expected: bool
) -> None:
    found = selector(tree)
    assert isinstance(found, Selector)
    assert found.matches(labels) is expected


def test_no_selector_selects_nothing() -> None:
    assert read_selector(None) == NOTHING
    assert not NOTHING.matches({})
    assert not NOTHING.is_empty
    assert EVERYTHING.is_empty


@pytest.mark.parametrize(("tree", "beginning"), FAULTS)
def test_a_selector_that_cannot_be_read_says_why(tree: dict[str, Any], beginning: str) -> None:
    found = selector(tree)
    assert isinstance(found, SelectorFault)
    assert found.text.startswith(beginning)


NODE_SELECTED: list[tuple[list[dict[str, Any]], bool]] = [
    ([], False),
    ([{}], False),
    ([{"matchExpressions": [expression("zone", "In", "a")]}], True),
    ([{"matchExpressions": [expression("zone", "In", "b")]}, {}], False),
    ([{"matchExpressions": [expression("cores", "Gt", "7")]}], True),
    ([{"matchExpressions": [expression("cores", "Gt", "8")]}], False),
    ([{"matchExpressions": [expression("cores", "Lt", "9")]}], True),
    ([{"matchExpressions": [expression("zone", "Lt", "9")]}], False),
    ([{"matchExpressions": [expression("absent", "Gt", "0")]}], False),
    ([{"matchFields": [expression("metadata.name", "In", "node-1")]}], True),
    ([{"matchFields": [expression("metadata.name", "NotIn", "node-1")]}], False),
    (
        [
            {
                "matchExpressions": [expression("zone", "In", "a")],
                "matchFields": [expression("metadata.name", "In", "node-2")],
            }
        ],
        False,
    ),
    # A term that cannot be read matches nothing, and does not spoil the others.
    ([{"matchExpressions": [expression("zone", "Near", "a")]}], False),
    (
        [
            {"matchExpressions": [expression("zone", "Near", "a")]},
            {"matchExpressions": [expression("zone", "Exists")]},
        ],
        True,
    ),
]


@pytest.mark.parametrize(("terms", "expected"), NODE_SELECTED)
def test_which_nodes_a_node_selector_means(terms: list[dict[str, Any]], expected: bool) -> None:
    query = read_node_selector(decode_tree({"nodeSelectorTerms": terms}, NodeSelector).value)
    assert query.matches("node-1", {"zone": "a", "cores": "8"}) is expected


def test_faults_of_a_node_selector_have_their_place() -> None:
    terms = [{}, {"matchFields": [expression("metadata.name", "In", "a", "b")]}]
    query = read_node_selector(decode_tree({"nodeSelectorTerms": terms}, NodeSelector).value)
    assert query.fault == (
        "nodeSelectorTerms[1].matchFields[0].values: "
        'Invalid value: ["a","b"]: must have one element'
    )


RULES = st.lists(
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from("abcd"),
        operator=st.sampled_from((IN, NOT_IN)),
        values=st.lists(st.sampled_from("xyz"), min_size=1).map(tuple),
    )
    | st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from("abcd"),
        operator=st.sampled_from((EXISTS, DOES_NOT_EXIST)),
    ),
    max_size=30,
)


@given(RULES, st.dictionaries(st.sampled_from("abcde"), st.sampled_from("wxyz")))
def test_a_long_selector_selects_what_all_its_rules_do(
    requirements: list[LabelSelectorRequirement], labels: dict[str, str]
) -> None:
    selector = EVERYTHING.and_requirements(requirements)
    each = (EVERYTHING.and_requirements((one,)).matches(labels) for one in requirements)
    assert selector.matches(labels) == all(each)
    assert selector == EVERYTHING.and_requirements(requirements)
    assert hash(selector) == hash(EVERYTHING.and_requirements(requirements))


def test_an_object_costs_its_labels_and_not_the_selector(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [LabelRule("a", NOT_IN, frozenset((f"v{n}",))) for n in range(500)]
    rules += [LabelRule(f"k{n}", DOES_NOT_EXIST, frozenset()) for n in range(500)]
    found, looks, holds = RulesByLabel(rules), list[LabelRule](), LabelRule.holds

    def counted(rule: LabelRule, labels: Mapping[str, str]) -> bool:
        looks.append(rule)
        return holds(rule, labels)

    monkeypatch.setattr(LabelRule, "holds", counted)
    assert found.hold({"a": "b", "c": "d"})
    assert not found.hold({"a": "v7"})
    assert len(looks) == 2


@given(
    st.text("aZ0-_./ä\n", max_size=4) | st.sampled_from(("a" * 63, "a" * 64)),
    st.sampled_from((IN, NOT_IN, EXISTS, DOES_NOT_EXIST, "Odd")),
    st.lists(st.text("aZ0-_./ä\n", max_size=3), max_size=2).map(tuple),
)
def test_a_requirement_that_is_plain_has_no_errors(
    key: str, operator: str, values: tuple[str, ...]
) -> None:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=values)
    with pytest.MonkeyPatch.context() as patch:
        found = labels.requirement_faults(requirement, "")
        patch.setattr(labels, "_PLAIN_NAME", lambda _: None)
        assert found == labels.requirement_faults(requirement, "")
