/** The search field: finds nodes, pods, claims and devices by parts of their names. */
import { html, signal, computed } from "./vendor.js";
import { DEVICE_STATES, NODE_STATES, POD_STATES } from "./columns.js";
import { showDevice, showNode } from "./fleet.js";
import * as store from "./store.js";

const FOUND_MAX = 12;
const EACH_MAX = 5;
const typed = signal("");
const active = signal(0);
const isOpen = signal(false);

const KINDS = {
  node: (fleet) => [fleet.nodes.name.length, (row) => fleet.nodeName(row)],
  pod: (fleet) => [fleet.pods.name.length, (row) => fleet.podId(row)],
  claim: (fleet) => [fleet.claims.name.length, (row) => fleet.claimId(row)],
  device: (fleet) => [fleet.deviceCount, (row) => fleet.deviceId(row)],
};

const found = computed(() => find(store.currentFleet(), typed.value).slice(0, FOUND_MAX));

/** Return what has all words in its kind and name; if nothing has, what has all their parts: node-2 is dgx-h100-2. */
export function find(fleet, text, kinds = Object.keys(KINDS)) {
  const lower = text.toLowerCase();
  for (const separator of [/[\s/]+/, /[^a-z0-9]+/]) {
    const words = lower.split(separator).filter(Boolean);
    if (!fleet || !words.length) continue;
    const matches = kinds.flatMap((kind) => search(words, kind, ...KINDS[kind](fleet)));
    // What is named exactly so comes first, then what begins or ends so.
    if (matches.length) return matches.sort((a, b) => a.rank - b.rank);
  }
  return [];
}

function search(words, kind, count, nameOf) {
  const matches = [];
  const last = words.at(-1);
  const rest = words.filter((word) => word !== kind);
  for (let row = 0; row < count; row++) {
    const id = nameOf(row);
    const lower = id.toLowerCase();
    if (id === "/" || !rest.every((word) => lower.includes(word))) continue;
    const name = lower.slice(lower.lastIndexOf("/") + 1);
    const rank = name === last ? 0 : name.startsWith(last) || name.endsWith(`-${last}`) ? 1 : 2;
    if (rank === 0 || matches.length < 400) matches.push({ kind, id, row, rank });
    if (matches.length >= 2000) break;
  }
  return matches.sort((a, b) => a.rank - b.rank).slice(0, EACH_MAX + (kind === "device" ? 3 : 0));
}

/** What answers the question in most cases, without opening what was found. */
function noteOf({ kind, row }) {
  const fleet = store.fleet.value;
  if (kind === "node") return NODE_STATES[fleet.nodes.state[row]];
  if (kind === "pod") {
    const node = fleet.nodeName(fleet.pods.node[row]);
    return node ? `on ${node}` : POD_STATES[fleet.pods.state[row]];
  }
  const pod = fleet.claims.pod[kind === "claim" ? row : fleet.firstClaim(row)] ?? -1;
  if (pod >= 0) return `${kind === "claim" ? "of" : "held by"} ${fleet.podId(pod)}`;
  return kind === "device" ? DEVICE_STATES[fleet.devices.state[row]] : "";
}

function choose(match) {
  if (!match) return;
  const fleet = store.fleet.value;
  store.select(match.kind, match.id);
  const devices = { claim: () => fleet.devicesOfClaim(match.row), pod: () => fleet.devicesOfPod(match.row) };
  if (match.kind === "node") showNode(match.row);
  else showDevice(match.kind === "device" ? match.row : (devices[match.kind]()[0] ?? -1));
  if (match.kind === "pod" && fleet.pods.state[match.row] === 0) store.chosen.pod.value = match.id;
  isOpen.value = false;
  typed.value = "";
  // From here the arrow keys go on.
  (document.querySelector("canvas") ?? document.activeElement).focus({ preventScroll: true });
}

function onKey(event) {
  const last = found.value.length - 1;
  if (event.key === "ArrowDown") active.value = Math.min(last, active.value + 1);
  else if (event.key === "ArrowUp") active.value = Math.max(0, active.value - 1);
  else if (event.key === "Enter") choose(found.value[active.value]);
  else if (event.key === "Escape") {
    if (isOpen.value && typed.value) isOpen.value = false;
    else event.target.blur();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}

export function Search() {
  const matches = found.value;
  const isListed = isOpen.value && typed.value.trim() !== "";
  return html`<div class="search" role="search">
    <input
      id="search"
      type="search"
      role="combobox"
      aria-label="Find nodes, pods, claims and devices"
      aria-expanded=${isListed}
      aria-controls="found"
      aria-activedescendant=${isListed && matches.length ? `found-${active.value}` : undefined}
      aria-autocomplete="list"
      autocomplete="off"
      spellcheck="false"
      placeholder="Find a node, pod, claim or device"
      value=${typed.value}
      onInput=${(event) => {
        typed.value = event.target.value;
        active.value = 0;
        isOpen.value = true;
      }}
      onFocus=${() => (isOpen.value = true)}
      onBlur=${() => setTimeout(() => (isOpen.value = false), 150)}
      onKeyDown=${onKey}
    />
    <kbd aria-hidden="true">/</kbd>
    <ul id="found" role="listbox" aria-label="Found" hidden=${!isListed}>
      ${isListed &&
      (matches.length
        ? matches.map(
            (match, i) => html`<li
              id=${`found-${i}`}
              role="option"
              aria-selected=${i === active.value}
              onMouseDown=${(event) => {
                event.preventDefault();
                choose(match);
              }}
            ><span class="kind">${match.kind}</span><span>${match.id}</span><span class="quiet">${noteOf(match)}</span></li>`,
          )
        : html`<li class="none" role="option" aria-selected="false" aria-disabled="true">Nothing is named so.</li>`)}
    </ul>
  </div>`;
}
