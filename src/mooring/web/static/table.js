/** The fleet as a table: the same content as the map, for screen readers, copying and sorting. */
import { html, follow, signal, computed, Component } from "./vendor.js";
import { DEVICE_STATES } from "./columns.js";
import * as store from "./store.js";

const ROW = 28; // pixels
const SPARE = 6; // rows above and below the view

const HEADS = ["Node", "Device", "Driver", "NUMA", "PCIe root", "State", "Used", "Claim", "Pod"];
const top = signal(0);
const height = signal(600);
const sortBy = signal({ head: -1, isUp: true });
const onlyState = signal("");

function cell(fleet, device, head) {
  const { devices } = fleet;
  switch (head) {
    case 0:
      return fleet.nodeName(devices.node[device]) || fleet.text(devices.pool, device);
    case 1:
      return fleet.deviceName(device);
    case 2:
      return fleet.text(devices.driver, device);
    case 3:
      return devices.numa[device] < 0 ? "" : devices.numa[device];
    case 4:
      return fleet.text(devices.root, device);
    case 5:
      return DEVICE_STATES[devices.state[device]];
    case 6:
      return `${devices.used[device] / 10} %`;
    case 7: {
      const claims = fleet.claimsOf(device);
      return claims.length > 1 ? `${fleet.claimId(claims[0])} and ${claims.length - 1} more` : fleet.claimId(claims[0] ?? -1);
    }
    default: {
      const claim = fleet.firstClaim(device);
      return claim < 0 ? "" : fleet.podId(fleet.claims.pod[claim]);
    }
  }
}

const rows = computed(() => {
  const fleet = store.currentFleet();
  if (!fleet) return [];
  const only = store.chosen.only.value;
  const driver = fleet.numberOf(only);
  const state = onlyState.value;
  const found = [];
  for (let device = 0; device < fleet.deviceCount; device++) {
    if (only && fleet.devices.driver[device] !== driver) continue;
    if (state !== "" && fleet.devices.state[device] !== Number(state)) continue;
    found.push(device);
  }
  const { head, isUp } = sortBy.value;
  if (head < 0) return found;
  const keys = found.map((device) => (head === 6 ? fleet.devices.used[device] : cell(fleet, device, head)));
  const order = keys.map((_, i) => i);
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  order.sort((a, b) => (typeof keys[a] === "number" && typeof keys[b] === "number" ? keys[a] - keys[b] : compare(keys[a], keys[b])) || a - b);
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

export const Table = follow(() => {
  const fleet = store.currentFleet();
  if (!fleet) return null;
  const all = rows.value;
  const first = Math.max(0, Math.min(Math.floor(top.value / ROW) - SPARE, all.length - 1));
  const last = Math.min(all.length, Math.ceil((top.value + height.value) / ROW) + SPARE);
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
            ${HEADS.map(
              (head, i) => html`<th scope="col" aria-sort=${sortBy.value.head === i ? (sortBy.value.isUp ? "ascending" : "descending") : "none"}>
                <button type="button" onClick=${() => sort(i)}>${head}${sortBy.value.head === i ? (sortBy.value.isUp ? " ↑" : " ↓") : ""}</button>
              </th>`,
            )}
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
              ${HEADS.map((_, head) => {
                const text = cell(fleet, device, head);
                if (head === 1) return html`<td><button type="button" class="link" aria-pressed=${device === selected}>${text}</button></td>`;
                return html`<td title=${text}>${text}</td>`;
              })}
            </tr>`,
          )}
          <tr class="filler" aria-hidden="true" style=${{ height: `${Math.max(0, all.length - last) * ROW}px` }}></tr>
        </tbody>
      </table>
    <//>
  </div>`;
});
