/** The fleet as a table: the same content as the map, for screen readers, copying and sorting. */
import { html, signal, computed, Component } from "./vendor.js";
import { DEVICE_STATES } from "./columns.js";
import { Swatch, meaning, painting, pointed, shown } from "./fleet.js";
import * as store from "./store.js";

const ROW = 28; // pixels
const SPARE = 6; // rows above and below the view

const PAINTED = "Painted"; // what the map is painted with at present
const PAINTINGS = { question: "Refused by", cel: "Expression", "what-if": "Would change", age: "Age of claim", namespace: "Namespace" };

const HEADS = {
  Node: (fleet, device) => fleet.nodeName(fleet.devices.node[device]) || fleet.text(fleet.devices.pool, device),
  Device: (fleet, device) => fleet.deviceName(device),
  [PAINTED]: (_, device) => lookOf(device)?.label ?? "",
  State: (fleet, device) => DEVICE_STATES[fleet.devices.state[device]],
  Claim: claimsOf,
  Pod: podOf,
  Used: (fleet, device) => `${fleet.devices.used[device] / 10} %`,
  NUMA: (fleet, device) => (fleet.devices.numa[device] < 0 ? "" : String(fleet.devices.numa[device])),
  "PCIe root": (fleet, device) => fleet.text(fleet.devices.root, device),
  Driver: (fleet, device) => fleet.text(fleet.devices.driver, device),
};
const top = signal(0);
const height = signal(600);
const sortBy = signal({ head: "", isUp: true });
const onlyState = signal("");

function lookOf(device) {
  const { legend, kinds } = painting.value;
  return legend[kinds[device]];
}

/** The columns: what the map is painted with has one, unless another column says the same. */
const heads = computed(() => Object.keys(HEADS).filter((head) => head !== PAINTED || PAINTINGS[meaning.value]));

function claimsOf(fleet, device) {
  const claims = fleet.claimsOf(device);
  const first = fleet.claimId(claims[0] ?? -1);
  return claims.length > 1 ? `${first} and ${claims.length - 1} more` : first;
}

function podOf(fleet, device) {
  const claim = fleet.firstClaim(device);
  return claim < 0 ? "" : fleet.podId(fleet.claims.pod[claim]);
}

const rows = computed(() => {
  const fleet = shown.value.after;
  if (!fleet) return [];
  const kind = pointed.value;
  const only = store.chosen.only.value;
  const driver = fleet.numberOf(only);
  const state = onlyState.value;
  const found = [];
  for (let device = 0; device < fleet.deviceCount; device++) {
    if (only && fleet.devices.driver[device] !== driver) continue;
    if (state !== "" && fleet.devices.state[device] !== Number(state)) continue;
    if (kind >= 0 && painting.value.kinds[device] !== kind) continue;
    found.push(device);
  }
  const { head, isUp } = sortBy.value;
  if (!heads.value.includes(head)) return found;
  const keys = found.map((device) => HEADS[head](fleet, device));
  const { compare } = new Intl.Collator("en", { numeric: true });
  const order = keys.map((_, i) => i).sort((a, b) => compare(keys[a], keys[b]) || a - b);
  if (!isUp) order.reverse();
  return order.map((i) => found[i]);
});

function sort(head) {
  const now = sortBy.value;
  sortBy.value = { head, isUp: now.head === head ? !now.isUp : true };
}

class Scroller extends Component {
  componentDidMount() {
    this.observer = new ResizeObserver(() => (height.value = this.base.clientHeight));
    this.observer.observe(this.base);
    this.base.scrollTop = top.value;
  }

  componentWillUnmount() {
    this.observer.disconnect();
  }

  render({ children }) {
    return html`<div class="table-scroll" tabindex="0" role="group" aria-label="Devices, scrollable" onScroll=${(event) => (top.value = event.target.scrollTop)}>${children}</div>`;
  }
}

function classOf(head) {
  return `col-${head.toLowerCase().replaceAll(" ", "-")}`;
}

function Head({ head, order }) {
  const isSorted = order.head === head;
  const direction = order.isUp ? "ascending" : "descending";
  const label = head === PAINTED ? PAINTINGS[meaning.value] : head;
  return html`<th scope="col" class=${classOf(head)} aria-sort=${isSorted ? direction : "none"} title=${label}>
    <button type="button" onClick=${() => sort(head)}>${label}${isSorted ? (order.isUp ? " ↑" : " ↓") : ""}</button>
  </th>`;
}

export function Table() {
  const fleet = shown.value.after;
  if (!fleet) return null;
  const all = rows.value;
  const first = Math.max(0, Math.min(Math.floor(top.value / ROW) - SPARE, all.length - 1));
  const last = Math.min(all.length, Math.ceil((top.value + height.value) / ROW) + SPARE);
  const swatched = { state: "State", claim: "Claim", driver: "Driver" }[meaning.value] ?? PAINTED;
  const chosen = store.selection.value;
  const selected = chosen?.kind === "device" ? fleet.findDevice(chosen.id) : -1;
  return html`<div class="table-view">
    <div class="toolbar">
      <label class="field"
        >State
        <select value=${onlyState.value} onChange=${(event) => (onlyState.value = event.target.value)}>
          <option value="">All</option>
          ${DEVICE_STATES.map((each, i) => html`<option value=${i}>${each}</option>`)}
        </select>
      </label>
      <span class="quiet">${all.length.toLocaleString("en")} of ${fleet.deviceCount.toLocaleString("en")} devices</span>
    </div>
    <${Scroller}>
      <table class="devices-table" aria-rowcount=${all.length + 1}>
        <caption class="unseen">Devices of the fleet</caption>
        <thead>
          <tr aria-rowindex="1">
            ${heads.value.map((head) => html`<${Head} head=${head} order=${sortBy.value} />`)}
          </tr>
        </thead>
        <tbody>
          <tr class="filler" aria-hidden="true" style=${{ height: `${first * ROW}px` }}></tr>
          ${all.slice(first, last).map(
            (device, i) => html`<tr
              key=${device}
              aria-rowindex=${first + i + 2}
              class=${device === selected ? "selected" : ""}
              onClick=${() => store.select("device", fleet.deviceId(device))}
            >
              ${heads.value.map((head) => {
                const text = HEADS[head](fleet, device);
                if (head === swatched) return html`<td title=${text}><${Swatch} look=${lookOf(device)} /> ${text}</td>`;
                if (head === "Device") return html`<td><button type="button" class="link" aria-pressed=${device === selected}>${text}</button></td>`;
                return html`<td title=${text}>${text}</td>`;
              })}
            </tr>`,
          )}
          <tr class="filler" aria-hidden="true" style=${{ height: `${Math.max(0, all.length - last) * ROW}px` }}></tr>
        </tbody>
      </table>
    <//>
  </div>`;
}
