"""The picture as a page: the SVG, a table of claims and their devices, and a filter.

The page needs nothing from outside, and its content security policy forbids fetching anything: only
its own styles and script may be used. Without scripts there is no filter; everything else works.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby

from mooring.insight.topology.drawing import svg
from mooring.insight.topology.elements import (
    OwnedDevice,
    TopologyIndex,
    clean,
    escaped,
    filled,
    stylesheet,
)
from mooring.insight.topology.model import Owner, Topology

ROWS_MAX = 5_000  # claims in the table
DEVICES_MAX = 200  # devices of one claim in the table
OPTIONS_MAX = 5_000  # of one filter

STYLE = """
:root{color-scheme:light dark}
body{margin:0;font:14px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;
background:#fff;color:#1a1f26}
main{padding:0 24px 32px}
form{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;gap:8px 20px;align-items:center;
padding:10px 24px;background:#f3f5f8;border-bottom:1px solid #d9dfe6}
form[hidden]{display:none}
label{display:flex;gap:8px;align-items:center}
select,button{font:inherit;padding:3px 8px;max-width:22em}
.scroll{overflow:auto;margin:0 -24px}
.scroll svg{display:block}
h2{font-size:16px;margin:24px 0 8px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:6px 16px 6px 0;border-bottom:1px solid #d9dfe6;
overflow-wrap:anywhere}
th{font-weight:600;white-space:nowrap}
td{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;
font-size:12px}
td svg{vertical-align:-3px;margin-right:8px}
td p{margin:0}
.dim{opacity:.2}
@media (prefers-color-scheme:dark){body{background:#0d1117;color:#eef2f6}
form{background:#151b23;border-color:#313a46}th,td{border-color:#313a46}}
@media print{form{display:none}}
"""

SCRIPT = """
'use strict';
const form = document.querySelector('form');
const has = (list, value) => (list || '').split(' ').includes(value);
function wanted(element, owners, drivers, nodes) {
  const {owner, driver, node} = form.elements;
  const owned = owner.value === 'free' ? element.classList.contains('f') : has(owners, owner.value);
  return (!owner.value || owned) && (!driver.value || has(drivers, driver.value)) &&
    (!node.value || has(nodes, node.value));
}
function filter() {
  for (const machine of document.querySelectorAll('.m'))
    for (const device of machine.querySelectorAll('.d')) {
      const {owner, driver} = device.dataset;
      device.classList.toggle('dim', !wanted(device, owner, driver, machine.dataset.node));
    }
  for (const row of document.querySelectorAll('tbody tr'))
    row.hidden = !wanted(row, row.dataset.owner, row.dataset.driver, row.dataset.node);
}
form.hidden = false;
form.addEventListener('change', filter);
form.addEventListener('reset', () => setTimeout(filter));
form.addEventListener('submit', event => event.preventDefault());
filter();
"""


def html(topology: Topology, *, title: str) -> str:
    """Return the page of a topology."""
    index = TopologyIndex(topology)
    shown = escaped(clean(title))
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{shown}</title><style>{STYLE}</style></head><body>\n",
        *_form(topology, index),
        f'<main><div class="scroll">\n{svg(topology, title=title)}</div>\n',
        *_table(topology, index),
        f"</main><script>{SCRIPT}</script></body></html>\n",
    ]
    return "".join(parts)


def policy() -> str:
    """Return the content security policy: the page's own styles and script, nothing else."""
    styles = f"{_digest(STYLE)} {_digest(stylesheet())}"
    return (
        f"default-src 'none'; style-src {styles}; script-src {_digest(SCRIPT)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _form(topology: Topology, index: TopologyIndex) -> Iterator[str]:
    owners = [("free", "– free –"), *((str(n), str(owner)) for owner, n in index.owners.items())]
    nodes = [(str(number), each.name) for number, each in enumerate(topology.machines)]
    if topology.elsewhere:
        nodes.append(("-1", "– no single node –"))
    yield "<form hidden>"
    yield _select("Claim", "owner", owners)
    yield _select("Driver", "driver", ((str(n), name) for name, n in index.drivers.items()))
    yield _select("Node", "node", nodes)
    yield '<button type="reset">Show all</button></form>\n'


def _select(label: str, name: str, options: Iterable[tuple[str, str]]) -> str:
    listed = [("", "all"), *options][:OPTIONS_MAX]
    inside = "".join(
        f'<option value="{value}">{escaped(clean(text))}</option>' for value, text in listed
    )
    return f'<label>{label} <select name="{name}">{inside}</select></label>'


def _table(topology: Topology, index: TopologyIndex) -> Iterator[str]:
    yield "<h2>Claims and their devices</h2>\n"
    if not index.owners:
        yield "<p>No claim has devices.</p>\n"
        return
    numbers = {machine.name: number for number, machine in enumerate(topology.machines)}
    yield "<table><thead><tr><th>Claim</th><th>Used by</th><th>Devices</th></tr></thead><tbody>\n"
    for owner in list(index.owners)[:ROWS_MAX]:
        yield _row(owner, index, numbers)
    yield "</tbody></table>\n"
    if len(index.owners) > ROWS_MAX:
        yield f"<p>{len(index.owners) - ROWS_MAX:,} more claims are not listed.</p>\n"


def _row(owner: Owner, index: TopologyIndex, numbers: dict[str, int]) -> str:
    held = index.held[owner]
    nodes = sorted({numbers.get(each.node, -1) for each in held})
    drivers = sorted({index.drivers[each.item.driver] for each in held})
    users = "".join(f"<p>{escaped(clean(user))}</p>" for user in owner.users)
    return (
        f'<tr data-owner="{index.owners[owner]}" data-driver="{_joined(drivers)}" '
        f'data-node="{_joined(nodes)}"><td><svg width="16" height="16" aria-hidden="true">'
        f"{filled(0, 0, 16, 16, index.styles[owner], 3)}</svg>{escaped(clean(str(owner)))}</td>"
        f"<td>{users}</td><td>{''.join(_device_lines(held))}</td></tr>\n"
    )


def _device_lines(held: list[OwnedDevice]) -> Iterator[str]:
    """Yield a line for each node, with the devices there."""
    for node, there in groupby(held[:DEVICES_MAX], key=lambda each: each.node):
        names = ", ".join(clean(each.item.name) for each in there)
        yield f"<p>{escaped(clean(node) or '–')}: {escaped(names)}</p>"
    if len(held) > DEVICES_MAX:
        yield f"<p>and {len(held) - DEVICES_MAX:,} more</p>"


def _joined(numbers: Iterable[int]) -> str:
    return " ".join(map(str, numbers))
