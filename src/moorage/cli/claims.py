"""`moor claims`: which claims have which devices, where, and for whom?"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click

from moorage.api.labels import (
    DOES_NOT_EXIST,
    EXISTS,
    IN,
    NOT_IN,
    Selector,
    SelectorFault,
    read_selector,
)
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.api.resource.v1 import GROUP
from moorage.api.timestamp import Timestamp
from moorage.claims.leftovers import HOW_TO_FREE, UNRESERVED, is_unreserved
from moorage.cli import CONTEXT
from moorage.cli.cluster_options import ClusterInput, cluster_options
from moorage.cli.command_classes import option_with_default
from moorage.cli.errors import FITS
from moorage.cli.output import (
    Cell,
    age,
    output_option,
    print_answer,
    print_table,
)
from moorage.cli.terminal import echo
from moorage.insight.devices import ClaimState, ClaimUsage, usage_in
from moorage.insight.devices.document import claim_tree
from moorage.insight.devices.model import RequestSummary
from moorage.insight.messages import counted, natural_order
from moorage.insight.object_names import kubectl_name
from moorage.insight.rows import CLAIM_COLUMNS, claim_rows
from moorage.insight.snapshot.unread import unread_tree

COLOURS = {
    ClaimState.PENDING: "yellow",
    ClaimState.ALLOCATED: "cyan",
    ClaimState.RESERVED: "green",
    ClaimState.DELETING: "red",
}
ORDER = {state: place for place, state in enumerate(ClaimState)}

SORTS: dict[str, Callable[[ClaimUsage], Any]] = {
    "namespace": lambda each: natural_order(each.id.namespace),
    "name": lambda each: natural_order(each.id.name),
    "node": lambda each: natural_order(",".join(each.nodes)),
    "state": lambda each: ORDER[each.state],
    "devices": lambda each: -len(each.devices),
    "age": lambda each: str(each.claim.metadata.creation_timestamp or ""),
}


class ClaimFilter(NamedTuple):
    """Filters on claims: one value of each kind must match; a kind without values matches all."""

    namespace: str | None
    labels: Selector
    states: tuple[str, ...]
    nodes: tuple[str, ...]
    pods: tuple[str, ...]

    @property
    def where(self) -> str:
        """The namespace, as part of a sentence."""
        return f" in {self.namespace} namespace" if self.namespace else ""

    def takes(self, claim: ClaimUsage) -> bool:
        """Return whether all filters let a claim pass."""
        return (
            self.namespace in (None, claim.id.namespace)
            and (not self.states or claim.state in self.states)
            and (not self.nodes or not set(self.nodes).isdisjoint(claim.nodes))
            and (not self.pods or any(self._is_of(claim, pod) for pod in self.pods))
            and self.labels.matches(claim.claim.metadata.labels)
        )

    def _is_of(self, claim: ClaimUsage, pod: str) -> bool:
        people = (*claim.consumers, *([claim.owner] if claim.owner else []))
        return any(each.kind == "pod" and each.name == pod for each in people)


@click.command(
    context_settings=CONTEXT,
    epilog="Exit status: 0 done, even if nothing was found; 1 an object was invalid; 2 "
    "usage error; 3 an input could not be read.",
)
@click.option(
    "-A", "--all-namespaces", "is_everywhere", is_flag=True, help="List claims in all namespaces."
)
@click.option(
    "-l", "--selector", "label_text", default="", metavar="KEY=VALUE,…", help="Label selector."
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in ClaimState]),
    help="Only those in this state.",
)
@click.option(
    "--node", "nodes", multiple=True, metavar="NAME", help="Only claims allocated on this node."
)
@click.option("--pod", "pods", multiple=True, metavar="NAME", help="Only claims of this pod.")
@option_with_default(
    "--sort-by",
    "sort",
    type=click.Choice(list(SORTS)),
    default="namespace",
    help="Sort order.",
)
@output_option(wide="adds requests, owner, template and conditions", names="the claims")
@cluster_options
def command(
    given: ClusterInput,
    is_everywhere: bool,
    label_text: str,
    states: tuple[str, ...],
    nodes: tuple[str, ...],
    pods: tuple[str, ...],
    sort: str,
    output: str,
) -> None:
    """List claims: which devices they have, where, and for whom.

    The command lists the claims of one namespace, like kubectl; -A lists all of them. A claim is
    pending until devices are allocated to it, then allocated, and reserved while pods may use it.
    The list marks allocated devices that no ResourceSlice contains any more, and devices that are
    allocated beyond their capacity.

    \b
    moor claims --on cluster.yaml -A
    moor claims --on cluster.yaml -n team-a --state reserved --node n1 -o wide
    """
    wanted = ClaimFilter(
        namespace=None if is_everywhere else given.namespace,
        labels=_labels(label_text),
        states=states,
        nodes=nodes,
        pods=pods,
    )
    found = usage_in(given.everything, given.context)
    claims = [each for each in found.claims if wanted.takes(each)]
    claims.sort(key=lambda each: list(map(natural_order, each.id)))
    claims.sort(key=SORTS[sort])
    hidden = given.unread.hidden(("ResourceClaim",), wanted.namespace or "")
    if not claims and hidden:
        given.end_unknown(hidden, f"which claims there are{wanted.where}")
    if not claims and output in ("table", "wide"):
        if not given.is_unknown:
            _say_none(wanted, len(found.claims))
    else:
        _print(claims, output, given, with_namespace=is_everywhere)
    sys.exit(given.exit_status(FITS))


def _labels(text: str) -> Selector:
    try:
        return read_labels(text)
    except ValueError as error:
        raise click.UsageError(f"-l: {error}") from None


def _say_none(wanted: ClaimFilter, total: int) -> None:
    is_plain = wanted._replace(namespace=None) == ClaimFilter(None, Selector(), (), (), ())
    hint = f" {counted(total, 'claim')} in others: use -A." if is_plain and total else ""
    echo(f"No claims found{wanted.where}.{hint}", err=True)


def _print(
    claims: list[ClaimUsage], output: str, given: ClusterInput, *, with_namespace: bool
) -> None:
    now = given.context.now
    print_answer(
        output,
        table=lambda is_wide: _print_table(
            claims, now, with_namespace=with_namespace, is_wide=is_wide
        ),
        document=lambda: {
            "claims": [claim_tree(each) for each in claims],
            **unread_tree(given.unread),
        },
        rows=lambda: claim_rows(claims),
        names=lambda: (kubectl_name("ResourceClaim", each.id.name, GROUP) for each in claims),
        columns=CLAIM_COLUMNS,
    )


def _print_table(
    claims: list[ClaimUsage], now: Timestamp, *, with_namespace: bool, is_wide: bool
) -> None:
    namespace = ("NAMESPACE",) if with_namespace else ()
    header = ("NAME", "STATE", "NODE", "DEVICES", "CONSUMERS", "AGE", "DETAIL")
    wide = ("REQUESTS", "OWNER", "TEMPLATE", "ALLOCATED", "CONDITIONS") if is_wide else ()
    rows = [
        [*([each.id.namespace] if with_namespace else []), *_row(each, now, is_wide=is_wide)]
        for each in claims
    ]
    print_table((*namespace, *header, *wide), rows, is_wide=is_wide)


def _row(claim: ClaimUsage, now: Timestamp, *, is_wide: bool) -> list[str | Cell]:
    cells: list[str | Cell] = [
        claim.id.name,
        Cell(claim.state.value, COLOURS[claim.state]),
        ",".join(claim.nodes),
        _devices(claim, is_wide=is_wide),
        ",".join(map(str, claim.consumers)),
        age(claim.claim.metadata.creation_timestamp, now),
        "; ".join(_details(claim)),
    ]
    return [*cells, *_wide_cells(claim, now)] if is_wide else cells


def _devices(claim: ClaimUsage, *, is_wide: bool) -> str:
    """Return the devices, without their pool if it is named after the node."""
    return ",".join(
        str(held.id) if is_wide else held.id.device + (" (admin)" if held.is_admin else "")
        for held in claim.devices
    )


def _details(claim: ClaimUsage) -> Iterator[str]:
    if is_unreserved(claim.claim) and claim.state is not ClaimState.DELETING:
        yield f"{UNRESERVED}: {HOW_TO_FREE}"
    for held in claim.devices:
        if held.is_published is None:
            yield f"whether {held.id} is in a slice is not known"
        elif not held.is_published:
            yield f"{held.id} is in no slice"
        if held.conflict:
            yield f"conflict on {held.id}: {held.conflict}"


def _wide_cells(claim: ClaimUsage, now: Timestamp) -> Iterator[str]:
    allocation = claim.claim.status.allocation
    then = allocation.allocation_timestamp if allocation is not None else None
    yield "; ".join(map(_request, claim.requests))
    yield str(claim.owner or "")
    yield claim.template
    yield age(then, now) if then is not None else ""
    yield "; ".join(
        f"{held.id.device}: {', '.join(f'{c.type}={c.status}' for c in held.conditions)}"
        for held in claim.devices
        if held.conditions
    )


def _request(wanted: RequestSummary) -> str:
    chosen = f" (chose {wanted.chosen})" if wanted.chosen else ""
    return f"{wanted.name}: {wanted.number} × {' or '.join(wanted.classes)}{chosen}"


# --- label selectors as kubectl's -l takes them ---------------------------------------------------
#
# selector    = requirement { "," requirement }
# requirement = key | "!" key | key ( "=" | "==" | "!=" ) value
#             | key ( "in" | "notin" ) "(" values ")"
# values      = value { "," value }

TEXT_MAX = 4096

_SEPARATORS = re.compile(r",(?![^(]*\))")
_EQUALITY = re.compile(r"([^\s=!,()]+)\s*(==|=|!=)\s*([^\s=!,()]*)")
_SET = re.compile(r"([^\s=!,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_EXISTENCE = re.compile(r"(!?)\s*([^\s=!,()]+)")


def read_labels(text: str) -> Selector:
    """Return the selector that a text describes, or raise ValueError."""
    if len(text) > TEXT_MAX:
        raise ValueError(f"longer than {TEXT_MAX:,} characters")
    if not text.strip():
        return Selector()
    parts = [part.strip() for part in _SEPARATORS.split(text)]
    selector = LabelSelector(match_expressions=tuple(map(_requirement, parts)))
    found = read_selector(selector)
    if isinstance(found, SelectorFault):
        raise ValueError(found.text)
    return found


def _requirement(text: str) -> LabelSelectorRequirement:
    if match := _EQUALITY.fullmatch(text):
        operator = NOT_IN if match[2] == "!=" else IN
        return LabelSelectorRequirement(key=match[1], operator=operator, values=(match[3],))
    if match := _SET.fullmatch(text):
        values = tuple(value.strip() for value in match[3].split(","))
        operator = IN if match[2] == "in" else NOT_IN
        return LabelSelectorRequirement(key=match[1], operator=operator, values=values)
    if match := _EXISTENCE.fullmatch(text):
        operator = DOES_NOT_EXIST if match[1] else EXISTS
        return LabelSelectorRequirement(key=match[2], operator=operator)
    raise ValueError(f'"{text}" is not a label selector such as app=web or app in (a,b)')
