/** The right column: what is selected in detail; without a selection, the fleet in figures. */
import { html, effect, untracked } from "./vendor.js";
import { ask, isFile, pose } from "./api.js";
import { DEVICE_STATES, NODE_STATES, POD_STATES } from "./columns.js";
import { sentenceOf, showDevice, showNode } from "./fleet.js";
import { Overview } from "./overview.js";
import * as store from "./store.js";
import { tryChange } from "./what_if.js";
import { age, clock, many } from "./words.js";

const LIST_MAX = 60;
const KINDS = { node: "Node", claim: "ResourceClaim", pod: "Pod" };

/** Ask for details of what is selected, whenever that changes. */
export function followSelection() {
  effect(() => {
    const chosen = store.selection.value;
    const at = store.chosen.at.value;
    const isLoaded = store.fleet.value !== null;
    untracked(() => {
      if (!chosen || isFile()) store.detail.value = null;
      else if (isLoaded) load(chosen, at);
    });
  });
}

function load(chosen, at) {
  const key = `${chosen.kind}:${chosen.id} ${at}`;
  if (chosen.kind === "device") {
    const [driver, pool, ...name] = chosen.id.split("/");
    const query = { driver, pool, name: name.join("/"), at };
    return pose(store.detail, key, () => ask("device", query));
  }
  const parts = chosen.id.split("/");
  const query = { kind: KINDS[chosen.kind], namespace: parts.length > 1 ? parts[0] : "", name: parts.at(-1), at };
  return pose(store.detail, key, () => ask("object", query));
}

const VIEWS = { device: Device, node: Node, claim: Claim, pod: Pod };

export function Inspector() {
  const fleet = store.currentFleet();
  if (!fleet) return null;
  const chosen = store.selection.value;
  const View = VIEWS[chosen?.kind];
  return html`<section class="column inspector" aria-label="Inspector">
    ${View ? html`<${View} fleet=${fleet} id=${chosen.id} />` : html`<${Overview} fleet=${fleet} />`}
  </section>`;
}

/** What is inspected; `change` is a what-if about it, and what happens to it. */
function Head({ kind, title, subtitle, state, show, change: [change, done] = [] }) {
  return html`<header class="column-head inspected">
      <div>
        <span class="kind">${kind}</span>
        <h2>${title}</h2>
        ${subtitle && html`<span class="quiet">${subtitle}</span>`}
      </div>
      <button type="button" class="close" aria-label="Close" title="Close (Esc)" onClick=${() => store.select("", "")}>×</button>
    </header>
    <p class="state-line">
      ${state}
      ${show && html`<button type="button" class="link" onClick=${show}>Show on the map</button>`}
      ${change && html`<button type="button" class="link" onClick=${() => tryChange(change)}>What if it were ${done}?</button>`}
    </p>`;
}

function Gone({ kind, id }) {
  return html`<${Head} kind=${kind} title=${id.split("/").at(-1)} subtitle=${id} state=${html`<span class="chip-state">not in this fleet</span>`} />
    <p class="quiet">It is not there at this moment, or you may not see it.</p>`;
}

// --- links between things -------------------------------------------------------------------------

/** A link to a thing; pointing at it points out its devices on the map. */
export function Link({ kind, id, label, devices }) {
  if (!id) return null;
  const point = () => (store.highlighted.value = devices?.() ?? null);
  const leave = () => (store.highlighted.value = null);
  return html`<button
    type="button"
    class="link"
    onClick=${() => {
      leave();
      store.select(kind, id);
    }}
    onMouseEnter=${point}
    onMouseLeave=${leave}
    onFocus=${point}
    onBlur=${leave}
  >${label ?? id}</button>`;
}

export function DeviceLink({ fleet, device }) {
  return html`<${Link} kind="device" id=${fleet.deviceId(device)} label=${fleet.deviceName(device)} devices=${() => [device]} />`;
}

function NodeLink({ fleet, node }) {
  const name = fleet.nodeName(node);
  return node < 0 ? html`<span class="quiet">none</span>` : html`<${Link} kind="node" id=${name} devices=${() => fleet.devicesOfNode(node)} />`;
}

function ClaimLink({ fleet, claim }) {
  return html`<${Link} kind="claim" id=${fleet.claimId(claim)} devices=${() => fleet.devicesOfClaim(claim)} />`;
}

function PodLink({ fleet, pod }) {
  return html`<${Link} kind="pod" id=${fleet.podId(pod)} devices=${() => fleet.devicesOfPod(pod)} />`;
}

function DeviceLinks({ fleet, devices }) {
  return html`<ul class="devices">
      ${devices.slice(0, LIST_MAX).map(
        (device) => html`<li><${DeviceLink} fleet=${fleet} device=${device} /> <span class="quiet">${fleet.nodeName(fleet.devices.node[device])}</span></li>`,
      )}
    </ul>
    ${devices.length > LIST_MAX && html`<p class="quiet">and ${devices.length - LIST_MAX} more</p>`}`;
}

function Facts({ facts }) {
  return html`<dl class="facts">
    ${facts.filter(([, value]) => value !== "" && value !== null && value !== undefined).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}
  </dl>`;
}

// --- details of the server --------------------------------------------------------------------------

function Loading({ asked }) {
  if (asked?.state === "loading") return html`<p class="quiet loading">Reading …</p>`;
  if (asked?.state === "failed") return html`<p class="refusal" role="alert">${asked.error}</p>`;
  return null;
}

function Details() {
  const asked = store.detail.value;
  const answer = asked?.answer;
  return html`<${Loading} asked=${asked} />
    ${answer?.events?.length > 0 &&
    html`<h3>Events</h3>
      <ul class="events">
        ${answer.events.slice(0, 20).map(
          (event) => html`<li class=${event.type === "Warning" ? "warning" : ""}>
            <b>${event.reason}</b> <time>${clock(Date.parse(event.time))}</time>${event.count > 1 && html` <span class="quiet">× ${event.count}</span>`}
            <p>${event.message}</p>
          </li>`,
        )}
      </ul>`}
    ${answer?.yaml && html`<details><summary>YAML</summary><pre class="yaml" tabindex="0">${answer.yaml}</pre></details>`}`;
}

function DeviceDetails() {
  const asked = store.detail.value;
  const answer = asked?.answer;
  return html`<${Loading} asked=${asked} />
    ${answer?.reasons?.length > 0 && html`<h3>Why</h3><ul class="plain">${answer.reasons.map((each) => html`<li>${each}</li>`)}</ul>`}
    ${answer?.taints?.length > 0 &&
    html`<h3>Taints</h3>
      <ul class="plain">
        ${answer.taints.map(
          (taint) => html`<li class="taint"><code>${taint.key}${taint.value ? `=${taint.value}` : ""}:${taint.effect}</code>
            <span class="quiet">from ${taint.from}${taint.timeAdded ? ` since ${clock(Date.parse(taint.timeAdded), true)}` : ""}</span></li>`,
        )}
      </ul>`}
    ${answer?.capacity?.length > 0 &&
    html`<h3>Capacity</h3>
      <ul class="meters">
        ${answer.capacity.map((each) => html`<${Meter} name=${each.name} used=${each.used} total=${each.value} />`)}
      </ul>`}
    ${answer?.counters?.length > 0 &&
    html`<h3>Counters</h3>
      <ul class="meters">
        ${answer.counters.map((each) => html`<${Meter} name=${`${each.set} ${each.name}`} used=${each.used} total=${each.total} note=${each.consumes && `this device consumes ${each.consumes}`} />`)}
      </ul>`}
    ${answer?.attributes?.length > 0 &&
    html`<h3>Attributes</h3>
      <dl class="facts mono">
        ${answer.attributes.map((each) => html`<dt title=${each.type}>${breakable(each.name)}</dt><dd>${String(each.value)}</dd>`)}
      </dl>`}
    ${answer?.slice && html`<p class="quiet small after">Published in ResourceSlice ${answer.slice}</p>`}
    ${answer?.yaml && html`<details><summary>YAML</summary><pre class="yaml" tabindex="0">${answer.yaml}</pre></details>`}`;
}

/** A qualified name may break after its domain, and before its words. */
function breakable(name) {
  return name.split(/(?<=\/)|(?=[A-Z][a-z])/).map((part) => html`${part}<wbr />`);
}

function Meter({ name, used, total, note }) {
  const share = used === undefined ? -1 : quantity(used) / Math.max(1e-9, quantity(total));
  return html`<li>
    <span>${name}</span><b>${used === undefined ? total : `${used} of ${total}`}</b>
    ${share >= 0 && html`<span class="bar"><i class="step-1" style=${{ width: `${Math.min(100, 100 * share)}%` }}></i></span>`}
    ${note && html`<span class="quiet small">${note}</span>`}
  </li>`;
}

const UNITS = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };

function quantity(text) {
  const [, number, unit] = String(text).match(/^([-+.\d]+)(\D*)$/) ?? [null, "0", ""];
  return Number(number) * (UNITS[unit] ?? 1);
}

// --- the kinds --------------------------------------------------------------------------------------

function Device({ fleet, id }) {
  const device = fleet.findDevice(id);
  if (device < 0) return html`<${Gone} kind="Device" id=${id} />`;
  const { devices } = fleet;
  const state = devices.state[device];
  const holdings = fleet.holdingsOf(device);
  const parts = fleet.partsOf(device);
  const heldParts = parts.filter((part) => fleet.claimsOf(part).length);
  const node = devices.node[device];
  return html`<${Head}
      kind="Device"
      title=${fleet.deviceName(device)}
      subtitle=${`${fleet.text(devices.driver, device)} / ${fleet.text(devices.pool, device)}`}
      state=${html`<span class=${`chip-state state-${state}`}>${DEVICE_STATES[state]}</span>${state === 2 && html`<span>${devices.used[device] / 10} % used</span>`}`}
      show=${() => showDevice(device)}
      change=${[`taint-device ${id}=tried:NoExecute`, "tainted"]}
    />
    <p class="unseen">${sentenceOf(fleet, device)}</p>
    <h3>Held by</h3>
    ${!holdings.length && html`<p class="quiet">No claim holds it${heldParts.length ? " as a whole; its partitions are held:" : "."}</p>`}
    <ul class="holders">
      ${holdings.slice(0, LIST_MAX).map((row) => {
        const claim = fleet.holdings.claim[row];
        const pod = fleet.claims.pod[claim];
        const share = fleet.holdings.share[row];
        const since = age(fleet.claims.created[claim]);
        return html`<li>
          ${pod >= 0 && html`<span>pod</span> <${PodLink} fleet=${fleet} pod=${pod} />`}
          <span>claim</span> <${ClaimLink} fleet=${fleet} claim=${claim} />
          <span class="quiet">${share === 0 ? "admin access" : share < 1000 ? `${share / 10} %` : ""} ${since && `${since} old`}</span>
        </li>`;
      })}
    </ul>
    <ul class="plain">
      ${heldParts.slice(0, LIST_MAX).map(
        (part) => html`<li><${DeviceLink} fleet=${fleet} device=${part} />${fleet.claimsOf(part).map((claim) => html` <span class="quiet">by</span> <${HolderLink} fleet=${fleet} claim=${claim} />`)}</li>`,
      )}
    </ul>
    <h3>Where</h3>
    <${Facts} facts=${[
      ["Node", node < 0 ? "several nodes" : html`<${NodeLink} fleet=${fleet} node=${node} />`],
      ["NUMA node", devices.numa[device] >= 0 ? devices.numa[device] : ""],
      ["PCIe root", fleet.text(devices.root, device)],
      ["Partition of", devices.parent[device] >= 0 ? html`<${DeviceLink} fleet=${fleet} device=${devices.parent[device]} />` : ""],
    ]} />
    ${parts.length > 0 && html`<${Partitions} fleet=${fleet} parts=${parts} />`}
    <${DeviceDetails} />`;
}

/** A pod that holds something through its claim; the claim, if no pod has it. */
function HolderLink({ fleet, claim }) {
  const pod = fleet.claims.pod[claim];
  return pod >= 0 ? html`<${PodLink} fleet=${fleet} pod=${pod} />` : html`<${ClaimLink} fleet=${fleet} claim=${claim} />`;
}

function Partitions({ fleet, parts }) {
  const { state } = fleet.devices;
  const counts = DEVICE_STATES.map((name, i) => [parts.filter((part) => state[part] === i).length, name]);
  return html`<details>
    <summary>${many(parts.length, "partition")}: ${counts.filter(([count]) => count).map(([count, name]) => `${count} ${name}`).join(", ")}</summary>
    <ul class="plain">
      ${parts.slice(0, LIST_MAX).map((part) => html`<li><${DeviceLink} fleet=${fleet} device=${part} /> <span class="quiet">${DEVICE_STATES[state[part]]}</span></li>`)}
    </ul>
  </details>`;
}

function Node({ fleet, id }) {
  const node = fleet.findNode(id);
  if (node < 0) return html`<${Gone} kind="Node" id=${id} />`;
  const all = fleet.devicesOfNode(node).filter((device) => fleet.devices.parent[device] < 0);
  const pods = fleet.podsOfNode(node);
  return html`<${Head}
      kind="Node"
      title=${id}
      subtitle=${fleet.text(fleet.nodes.zone, node) && `zone ${fleet.text(fleet.nodes.zone, node)}`}
      state=${html`<span class="chip-state">${NODE_STATES[fleet.nodes.state[node]]}</span>`}
      show=${() => showNode(node)}
      change=${[`drain ${id}`, "drained"]}
    />
    <h3>Devices</h3>
    <table class="small-table">
      <thead><tr><th scope="col">Driver</th><th scope="col">NUMA</th><th scope="col">free</th><th scope="col">of</th></tr></thead>
      <tbody>${perNuma(fleet, all).map((row) => html`<tr><td>${row.driver}</td><td>${row.numa < 0 ? "–" : row.numa}</td><td>${row.free}</td><td>${row.all}</td></tr>`)}</tbody>
    </table>
    <h3>${many(pods.length, "pod")} with claims</h3>
    <ul class="plain">
      ${pods.slice(0, LIST_MAX).map((pod) => html`<li><${PodLink} fleet=${fleet} pod=${pod} /> <span class="quiet">${many(fleet.devicesOfPod(pod).length, "device")}</span></li>`)}
    </ul>
    <${Details} />`;
}

function perNuma(fleet, devices) {
  const rows = new Map();
  for (const device of devices) {
    const driver = fleet.text(fleet.devices.driver, device);
    const numa = fleet.devices.numa[device];
    const row = rows.get(`${driver} ${numa}`) ?? { driver, numa, free: 0, all: 0 };
    row.all++;
    if (fleet.devices.state[device] === 0) row.free++;
    rows.set(`${driver} ${numa}`, row);
  }
  return [...rows.values()].sort((a, b) => a.driver.localeCompare(b.driver) || a.numa - b.numa);
}

function Claim({ fleet, id }) {
  const claim = fleet.findClaim(id);
  if (claim < 0) return html`<${Gone} kind="ResourceClaim" id=${id} />`;
  const devices = fleet.devicesOfClaim(claim);
  const pod = fleet.claims.pod[claim];
  return html`<${Head}
      kind="ResourceClaim"
      title=${id.split("/")[1]}
      subtitle=${`namespace ${id.split("/")[0]}`}
      state=${html`<span class="chip-state">${devices.length ? "allocated" : "not allocated"}</span>`}
      show=${devices.length ? () => showDevice(devices[0]) : null}
      change=${[`delete-claim ${id}`, "deleted"]}
    />
    <${Facts} facts=${[
      ["Pod", pod >= 0 ? html`<${PodLink} fleet=${fleet} pod=${pod} />` : "none"],
      ["Age", age(fleet.claims.created[claim])],
    ]} />
    <h3>${many(devices.length, "device")}</h3>
    <${DeviceLinks} fleet=${fleet} devices=${devices} />
    <${Details} />`;
}

function Pod({ fleet, id }) {
  const pod = fleet.findPod(id);
  if (pod < 0) return html`<${Gone} kind="Pod" id=${id} />`;
  const state = fleet.pods.state[pod];
  const claims = fleet.claimsOfPod(pod);
  const devices = fleet.devicesOfPod(pod);
  return html`<${Head}
      kind="Pod"
      title=${id.split("/")[1]}
      subtitle=${`namespace ${id.split("/")[0]}`}
      state=${html`<span class=${`chip-state pod-${state}`}>${POD_STATES[state]}</span>`}
      show=${devices.length ? () => showDevice(devices[0]) : null}
      change=${state > 0 ? [`delete-pod ${id}`, "deleted"] : []}
    />
    ${state === 0 && store.chosen.pod.value !== id && html`<p class="links"><button type="button" class="primary" onClick=${() => (store.chosen.pod.value = id)}>Why is it pending?</button></p>`}
    <${Facts} facts=${[
      ["Node", html`<${NodeLink} fleet=${fleet} node=${fleet.pods.node[pod]} />`],
      ["Age", age(fleet.pods.created[pod])],
      ["Claims", claims.length ? html`<ul class="plain">${claims.map((claim) => html`<li><${ClaimLink} fleet=${fleet} claim=${claim} /></li>`)}</ul>` : "none"],
    ]} />
    ${devices.length > 0 && html`<h3>${many(devices.length, "device")}</h3><${DeviceLinks} fleet=${fleet} devices=${devices} />`}
    <${Details} />`;
}
