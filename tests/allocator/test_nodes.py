"""Node selectors: which nodes they match, and the errors of invalid ones."""

from __future__ import annotations

import pytest

from moorage.allocator.errors import AllocationError
from moorage.allocator.pools import matches_node
from moorage.api.core.node import Node
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.meta import ObjectMeta

LABELS = {"zone": "a", "empty": "", "cores": "64", "word": "many", "least": str(-(2**63))}
NODE = Node(metadata=ObjectMeta(name="node-1", labels=LABELS))


def requirement(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def labelled(*requirements: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=requirements)


def with_field(*requirements: NodeSelectorRequirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_fields=requirements)


def matches(*terms: NodeSelectorTerm, node: Node = NODE) -> bool:
    selector = NodeSelector(node_selector_terms=terms)
    return matches_node(node, node_name=None, all_nodes=None, selector=selector)


# --- which nodes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "operator", "values", "is_match"),
    [
        ("zone", "In", ["a"], True),
        ("zone", "In", ["b", "a"], True),
        ("zone", "In", ["b"], False),
        ("zone", "In", [""], False),
        ("empty", "In", [""], True),
        ("missing", "In", ["a"], False),
        ("missing", "In", [""], False),
        ("zone", "NotIn", ["b"], True),
        ("zone", "NotIn", ["a", "b"], False),
        ("empty", "NotIn", [""], False),
        ("missing", "NotIn", ["a"], True),
        ("missing", "NotIn", [""], True),
        ("zone", "Exists", [], True),
        ("empty", "Exists", [], True),
        ("missing", "Exists", [], False),
        ("zone", "DoesNotExist", [], False),
        ("empty", "DoesNotExist", [], False),
        ("missing", "DoesNotExist", [], True),
        ("cores", "Gt", ["63"], True),
        ("cores", "Gt", ["64"], False),
        ("cores", "Lt", ["65"], True),
        ("cores", "Lt", ["64"], False),
        ("cores", "Gt", ["0063"], True),
        ("cores", "Gt", ["00000000000000000000000000000063"], True),
        ("cores", "Lt", [str(2**63 - 1)], True),
        ("least", "Lt", ["0"], True),
        ("word", "Gt", ["1"], False),
        ("word", "Lt", ["1"], False),
        ("empty", "Gt", ["1"], False),
        ("missing", "Gt", ["1"], False),
        ("missing", "Lt", ["1"], False),
    ],
)
def test_a_label_is_compared_as_the_operator_says(
    key: str, operator: str, values: list[str], is_match: bool
) -> None:
    assert matches(labelled(requirement(key, operator, *values))) is is_match


@pytest.mark.parametrize(
    "label", ["1.5", "1e3", "0x40", "1_000", " 64", "٦٤", str(2**63), "1" + 40 * "0", "-", "+"]
)
def test_a_label_that_is_no_int64_is_neither_greater_nor_less(label: str) -> None:
    node = Node(metadata=ObjectMeta(name="node-1", labels={"cores": label}))
    assert not matches(labelled(requirement("cores", "Gt", "0")), node=node)
    assert not matches(labelled(requirement("cores", "Lt", "0")), node=node)


def test_a_sign_is_part_of_a_number() -> None:
    node = Node(metadata=ObjectMeta(name="node-1", labels={"up": "+5", "down": "-5"}))
    assert matches(labelled(requirement("up", "Gt", "4")), node=node)
    assert matches(labelled(requirement("down", "Lt", "4")), node=node)


@pytest.mark.parametrize(
    ("key", "operator", "value", "is_match"),
    [
        ("metadata.name", "In", "node-1", True),
        ("metadata.name", "In", "node-2", False),
        ("metadata.name", "NotIn", "node-1", False),
        ("metadata.name", "NotIn", "node-2", True),
        ("metadata.uid", "In", "node-1", False),
        ("metadata.uid", "NotIn", "node-1", True),
    ],
)
def test_a_field_is_the_name_of_the_node_or_empty(
    key: str, operator: str, value: str, is_match: bool
) -> None:
    assert matches(with_field(requirement(key, operator, value))) is is_match


def test_all_requirements_of_a_term_must_hold() -> None:
    here, elsewhere = requirement("zone", "In", "a"), requirement("zone", "In", "b")
    named = requirement("metadata.name", "In", "node-1")
    assert not matches(labelled(here, elsewhere))
    assert matches(NodeSelectorTerm(match_expressions=(here,), match_fields=(named,)))
    assert not matches(NodeSelectorTerm(match_expressions=(elsewhere,), match_fields=(named,)))


def test_one_term_that_holds_is_enough() -> None:
    here, elsewhere = requirement("zone", "In", "a"), requirement("zone", "In", "b")
    assert matches(labelled(elsewhere), labelled(here))
    assert not matches(labelled(elsewhere), labelled(elsewhere))


def test_an_empty_term_matches_nothing() -> None:
    assert not matches(NodeSelectorTerm())
    assert matches(NodeSelectorTerm(), labelled(requirement("zone", "Exists")))


def test_no_terms_match_nothing() -> None:
    assert not matches()
    unset = NodeSelector(node_selector_terms=None)
    assert not matches_node(NODE, node_name=None, all_nodes=None, selector=unset)


def test_a_node_without_labels_lacks_them_all() -> None:
    node = Node(metadata=ObjectMeta(name="node-1"))
    assert matches(labelled(requirement("zone", "DoesNotExist")), node=node)


@pytest.mark.parametrize(
    ("node_name", "all_nodes", "is_match"),
    [
        ("node-1", None, True),
        ("node-2", None, False),
        ("node-2", True, False),
        (None, True, True),
        ("", True, True),
        (None, False, False),
        (None, None, False),
    ],
)
def test_a_name_comes_before_all_nodes_and_nothing_is_no_node(
    node_name: str | None, all_nodes: bool | None, is_match: bool
) -> None:
    found = matches_node(NODE, node_name=node_name, all_nodes=all_nodes, selector=None)
    assert found is is_match


# --- what cannot be read ----------------------------------------------------------------------

PLACE = "nodeSelectorTerms[0].matchExpressions[0]"
LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def fault(*terms: NodeSelectorTerm) -> str:
    with pytest.raises(AllocationError) as raised:
        matches(*terms)
    head, _, text = str(raised.value).partition("},}: ")
    assert head.startswith("failed to parse node selector &NodeSelector{NodeSelectorTerms:[]")
    return text


@pytest.mark.parametrize(
    ("key", "operator", "values", "text"),
    [
        (
            "zone",
            "Maybe",
            ["a"],
            (
                f'{PLACE}.operator: Unsupported value: "Maybe": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ),
        ),
        (
            "zone",
            "In",
            [],
            (
                f"{PLACE}.values: Invalid value: []: "
                "for 'in', 'notin' operators, values set can't be empty"
            ),
        ),
        (
            "zone",
            "Exists",
            ["a", "b"],
            (
                f'{PLACE}.values: Invalid value: ["a","b"]: '
                "values set must be empty for exists and does not exist"
            ),
        ),
        (
            "zone",
            "Gt",
            ["1", "2"],
            (
                f'{PLACE}.values: Invalid value: ["1","2"]: '
                "for 'Gt', 'Lt' operators, exactly one value is required"
            ),
        ),
        (
            "zone",
            "Lt",
            ["1.5"],
            (
                f'{PLACE}.values[0]: Invalid value: "1.5": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        (
            "zone",
            "Gt",
            [str(2**63)],
            (
                f'{PLACE}.values[0]: Invalid value: "{2**63}": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ),
        ),
        ("zone", "In", ["a b"], f'{PLACE}.values[0][zone]: Invalid value: "a b": {LABEL_RULE}'),
        (
            "zone",
            "In",
            [64 * "?"],
            (
                f'{PLACE}.values[0][zone]: Invalid value: "{64 * "?"}": '
                f"must be no more than 63 bytes; {LABEL_RULE}"
            ),
        ),
    ],
)
def test_an_unreadable_requirement_is_told_in_kubernetes_words(
    key: str, operator: str, values: list[str], text: str
) -> None:
    assert fault(labelled(requirement(key, operator, *values))) == text


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        (
            "Exists",
            [],
            'operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
        ),
        ("In", [], "values: Invalid value: []: must have one element"),
        ("NotIn", ["a", "b"], 'values: Invalid value: ["a","b"]: must have one element'),
    ],
)
def test_a_field_wants_in_or_not_in_and_one_value(
    operator: str, values: list[str], text: str
) -> None:
    found = fault(with_field(requirement("metadata.name", operator, *values)))
    assert found == f"nodeSelectorTerms[0].matchFields[0].{text}"


def test_all_faults_are_told_at_once() -> None:
    bad = requirement("zone", "In")
    detail = "Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    assert fault(labelled(requirement("zone", "Exists")), labelled(bad, bad)) == (
        f"[nodeSelectorTerms[1].matchExpressions[0].values: {detail}, "
        f"nodeSelectorTerms[1].matchExpressions[1].values: {detail}]"
    )


def test_a_selector_that_cannot_be_read_is_shown_whole() -> None:
    term = NodeSelectorTerm(
        match_expressions=(requirement("zone", "Maybe", "a", "b"),),
        match_fields=(requirement("metadata.name", "In", "node-1"),),
    )
    with pytest.raises(AllocationError) as raised:
        matches(term)
    assert str(raised.value).startswith(
        "failed to parse node selector &NodeSelector{NodeSelectorTerms:[]NodeSelectorTerm{"
        "NodeSelectorTerm{MatchExpressions:[]NodeSelectorRequirement{NodeSelectorRequirement{"
        "Key:zone,Operator:Maybe,Values:[a b],},},MatchFields:[]NodeSelectorRequirement{"
        "NodeSelectorRequirement{Key:metadata.name,Operator:In,Values:[node-1],},},},},}: "
    )


def test_a_selector_that_cannot_be_read_is_not_asked_when_the_name_decides() -> None:
    selector = NodeSelector(node_selector_terms=(labelled(requirement("zone", "Maybe")),))
    assert matches_node(NODE, node_name="node-1", all_nodes=None, selector=selector)
    assert matches_node(NODE, node_name=None, all_nodes=True, selector=selector)
