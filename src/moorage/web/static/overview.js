/** The fleet in figures: use by driver, how free devices spread over nodes, and fragmented nodes. */
import { html, computed } from "./vendor.js";
import * as store from "./store.js";
import { showNode } from "./fleet.js";
import { many } from "./words.js";

const NODES_MAX = 8;
const BUCKETS_MAX = 16;

/** Return for each driver how many of its devices are free, in use and out of use, and by node. */
function figures(fleet) {
  const rows = new Map();
  const { driver, state, node, parent, numa } = fleet.devices;
  for (let device = 0; device < fleet.deviceCount; device++) {
    if (parent[device] >= 0) continue;
    let row = rows.get(driver[device]);
    if (!row) {
      row = { name: fleet.strings[driver[device]], all: 0, free: 0, used: 0, out: 0, unknown: 0, nodes: new Map() };
      rows.set(driver[device], row);
    }
    row.all++;
    const what = state[device] === 0 ? "free" : state[device] <= 2 ? "used" : state[device] === 7 ? "unknown" : "out";
    row[what]++;
    if (node[device] < 0) continue;
    const here = row.nodes.get(node[device]) ?? { all: 0, free: 0, partly: 0, numas: new Map() };
    here.all++;
    if (state[device] === 0) {
      here.free++;
      here.numas.set(numa[device], (here.numas.get(numa[device]) ?? 0) + 1);
    }
    if (state[device] === 2) here.partly++;
    row.nodes.set(node[device], here);
  }
  return [...rows.values()].sort((a, b) => b.all - a.all);
}

/** The driver that the figures of nodes are about: the chosen one, else the one with most use. */
const subject = computed(() => {
  const fleet = store.currentFleet();
  const rows = fleet?.once("figures", () => figures(fleet)) ?? [];
  const chosen = rows.find((row) => row.name === store.chosen.only.value);
  return chosen ?? [...rows].sort((a, b) => b.used / b.all - a.used / a.all)[0];
});

export function Overview({ fleet }) {
  const rows = fleet.once("figures", () => figures(fleet));
  return html`<header class="column-head"><h2>Fleet</h2><span class="count">${many(fleet.nodes.name.length, "node")}</span></header>
    <ul class="drivers">
      ${rows.slice(0, 8).map((row) => html`<${Driver} row=${row} />`)}
    </ul>
    <${Spread} fleet=${fleet} />
    <p class="quiet small after">Select a device, a node, a claim or a pod to inspect it.</p>`;
}

function Driver({ row }) {
  const part = (count) => ({ width: `${(100 * count) / row.all}%` });
  const isChosen = store.chosen.only.value === row.name;
  return html`<li>
    <button type="button" class="driver" aria-pressed=${isChosen} title="Show only this driver" onClick=${() => (store.chosen.only.value = isChosen ? "" : row.name)}>
      <span class="driver-line"><b>${row.name}</b><span>${row.free.toLocaleString("en")} of ${row.all.toLocaleString("en")} free</span></span>
      <span class="bar stacked"><i class="used" style=${part(row.used)}></i><i class="out" style=${part(row.out)}></i></span>
      ${row.out > 0 && html`<span class="quiet small">${row.out.toLocaleString("en")} blocked, tainted or not usable</span>`}
      ${row.unknown > 0 && html`<span class="quiet small">${row.unknown.toLocaleString("en")} not known: claims or slices may not be read</span>`}
    </button>
  </li>`;
}

function Spread({ fleet }) {
  const row = subject.value;
  if (!row?.nodes.size) return null;
  const buckets = [];
  const fragmented = [];
  for (const [node, here] of row.nodes) {
    buckets[here.free] = (buckets[here.free] ?? 0) + 1;
    if (here.free < here.all && (here.free > 0 || here.partly > 0)) fragmented.push({ node, ...here });
  }
  const counts = Array.from(buckets, (count = 0, free) => ({ count, free }));
  // Steps without a node show the shape of a short list, and are in the way in a long one.
  const listed = counts.length > 9 ? counts.filter(({ count }) => count).slice(-BUCKETS_MAX) : counts;
  const most = Math.max(1, ...counts.map(({ count }) => count));
  // Half free is the most fragmented: too much is taken for a large request, too much free to waste.
  const waste = (here) => Math.min(here.free + here.partly, here.all - here.free) / here.all;
  fragmented.sort((a, b) => waste(b) - waste(a) || b.free - a.free || a.node - b.node);
  return html`<h3>Most fragmented nodes</h3>
    <p class="quiet small">${fragmented.length ? `${many(fragmented.length, "node")} partly in use; free ${row.name}, by NUMA node` : "Every node is either free or full."}</p>
    <ul class="plain">
      ${fragmented.slice(0, NODES_MAX).map((here) => html`<${Fragmented} fleet=${fleet} here=${here} />`)}
    </ul>
    <h3>Nodes by free devices of ${row.name}</h3>
    <table class="spread">
      <caption class="unseen">How many nodes have how many free devices of ${row.name}</caption>
      <tbody>
        ${listed.map(
          ({ count, free }) => html`<tr>
            <th scope="row">${free} free</th>
            <td class="bar-cell"><span class="bar"><i class=${free ? "step-1" : "step-4"} style=${{ width: `${(100 * count) / most}%` }}></i></span></td>
            <td>${many(count, "node")}</td>
          </tr>`,
        )}
      </tbody>
    </table>`;
}

function Fragmented({ fleet, here: { node, free, all, partly, numas } }) {
  const point = () => (store.highlighted.value = fleet.devicesOfNode(node));
  const leave = () => (store.highlighted.value = null);
  const show = () => {
    leave();
    store.select("node", fleet.nodeName(node));
    showNode(node);
  };
  return html`<li>
    <button type="button" class="link" onMouseEnter=${point} onMouseLeave=${leave} onFocus=${point} onBlur=${leave} onClick=${show}>${fleet.nodeName(node)}</button>${" "}
    <span class="quiet">${numas.size > 1 ? [...numas.values()].join(" + ") : free} of ${all} free${partly ? `, ${partly} partly` : ""}</span>
  </li>`;
}
