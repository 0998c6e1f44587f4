"""Which devices are asked for on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import click

from mooring.api.codec import to_tree
from mooring.api.core.node import Node
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import DeviceAttribute
from mooring.cli.cluster_options import ClusterInput
from mooring.insight.clusters.snapshot import Snapshot
from mooring.insight.expressions.inquiry import Refusal, compiler_for
from mooring.insight.holdings import DeviceHolding, State
from mooring.insight.holdings.selecting import (
    Selected,
    selected_by_class,
    selected_by_expression,
)
from mooring.insight.nearness import nearest


class DeviceFilter(NamedTuple):
    """Of each kind one must match; none given means all."""

    drivers: tuple[str, ...]
    pools: tuple[str, ...]
    nodes: tuple[str, ...]
    states: tuple[str, ...]
    attributes: tuple[str, ...]

    def selection(
        self,
        snapshot: Snapshot,
        given: ClusterInput,
        *,
        class_name: str | None,
        expression: str | None,
    ) -> Selected | None:
        """Return what class and expression select; None if neither is given."""
        compiler = compiler_for(given.gates, extensions=given.extensions)
        found: Selected | None = None
        if class_name is not None:
            known = {each.metadata.name: each for each in snapshot.classes}
            if class_name not in known:
                hint = nearest(class_name, known)
                more = f"; did you mean {hint}?" if hint else ""
                raise click.UsageError(f"--class: no DeviceClass {class_name} is given{more}")
            found = _checked(
                "--class", selected_by_class(snapshot.slices, known[class_name], compiler)
            )
        if expression is not None:
            chosen = _checked(
                "--select", selected_by_expression(snapshot.slices, expression, compiler)
            )
            found = chosen if found is None else found & chosen
        return found

    def chosen(
        self, devices: Iterable[DeviceHolding], snapshot: Snapshot, selected: Selected | None
    ) -> list[DeviceHolding]:
        """Return the devices that all filters let pass."""
        by_name = {node.metadata.name: node for node in snapshot.nodes}
        nodes = [by_name.get(name) or Node(metadata=ObjectMeta(name=name)) for name in self.nodes]
        wanted = [each.partition("=") for each in self.attributes]
        return [
            each
            for each in devices
            if (not self.drivers or each.id.driver in self.drivers)
            and (not self.pools or each.id.pool in self.pools)
            and (not self.states or each.state in self.states)
            and (not nodes or any(map(each.place.covers, nodes)))
            and (selected is None or (each.id in selected and each.state is not State.MISSING))
            and all(_has_attribute(each, key, sign, value) for key, sign, value in wanted)
        ]


def _checked(option: str, selected: Selected | Refusal) -> Selected:
    if isinstance(selected, Refusal):
        raise click.UsageError(f"{option}: {selected.error}")
    return selected


def _has_attribute(holding: DeviceHolding, key: str, sign: str, value: str) -> bool:
    """Return whether a device has an attribute, with the value where one is asked for.

    A key without a domain is in the driver's, as in a slice.
    """
    attributes = holding.device.attributes
    domain, slash, name = key.rpartition("/")
    found = attributes.get(key)
    if found is None and not slash:
        found = attributes.get(f"{holding.id.driver}/{key}")
    if found is None and slash and domain == holding.id.driver:
        found = attributes.get(name)
    return found is not None and (not sign or value in _texts(found))


def _texts(attribute: DeviceAttribute) -> list[str]:
    """Return the value as text, and of a list each of its elements; an odd one may have several."""
    found: list[str] = []
    for content in to_tree(attribute).values():
        values = content if isinstance(content, list | tuple) else [content]
        found += (str(each).lower() if isinstance(each, bool) else str(each) for each in values)
    return found
