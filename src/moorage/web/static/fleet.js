/** The map: a canvas that shows the fleet, its toolbar, legend and keyboard. */
import { html, Component, effect, computed, signal, untracked } from "./vendor.js";
import { DEVICE_STATES, decodeColumn } from "./columns.js";
import * as colours from "./colours.js";
import { fitted, hit, layOut, neighbour } from "./layout.js";
import { drawScene } from "./paint.js";
import * as store from "./store.js";
import { Empty } from "./states.js";
import { nowOf } from "./words.js";

const ZOOM_MAX = 320;
const ZOOM_STEP = 1.5;
const NAMED_SCALE = 84; // at which names of devices, claims and pods can be read

const size = signal({ width: 0, height: 0 });
const theme = signal("light");
export const pointed = signal(-1); // an entry of the legend: the others are dimmed

const dark = matchMedia("screen and (prefers-color-scheme: dark)"); // paper is white
const paper = matchMedia("print");
const followTheme = () => (theme.value = dark.matches ? "dark" : "light");
dark.addEventListener("change", followTheme);
followTheme();

// --- what is drawn ----------------------------------------------------------------------------

/** The fleet after the changes that are tried out, else the fleet. */
export const shown = computed(() => {
  const now = store.currentFleet();
  const tried = store.preview.value;
  if (!now || tried?.state !== "ready") return { before: now, after: now };
  const after = now.clone();
  if (tried.answer.after) after.apply(tried.answer.after);
  return { before: now, after };
});

const layout = computed(() => {
  store.layoutChanges.value;
  const { after } = shown.value;
  return after ? layOut(after) : null;
});

/** What colours mean at present: a question, an answer, a change, or what was chosen. */
export const meaning = computed(() => {
  if (store.preview.value?.state === "ready") return "what-if";
  if (store.chosen.play.value === "cel" && store.celAnswer.value?.answer?.devices) return "cel";
  if (store.chosen.pod.value && store.explanation.value?.answer?.paint) return "question";
  return store.chosen.colour.value;
});

export const painting = computed(() => {
  const { before, after } = shown.value;
  if (!after) return null;
  switch (meaning.value) {
    case "what-if":
      return colours.paintOfChange(before, after, theme.value);
    case "cel":
      return colours.paintOfAnswer(full(store.celAnswer.value.answer.devices, after), theme.value);
    case "question": {
      const { questions, devices } = store.explanation.value.answer.paint;
      return colours.paintOfQuestions(full(devices, after), questions, theme.value);
    }
    default:
      return colours.paintOf(after, meaning.value, theme.value, untracked(nowOf));
  }
});

/** A column of an answer, with a row for every device: some may be newer than the answer. */
function full(column, fleet) {
  const decoded = decodeColumn(column);
  if (decoded.length === fleet.deviceCount) return decoded;
  const grown = new Int32Array(fleet.deviceCount);
  grown.set(decoded.subarray(0, grown.length));
  return grown;
}

const dimmed = computed(() => {
  const { after } = shown.value;
  const only = store.chosen.only.value;
  if (!after || (pointed.value < 0 && !only)) return null;
  const driver = after.numberOf(only);
  const { kinds } = painting.value;
  return Uint8Array.from(kinds, (kind, device) => {
    const isOther = only && after.devices.driver[device] !== driver;
    return isOther || (pointed.value >= 0 && kind !== pointed.value) ? 1 : 0;
  });
});

/** What is outlined: the selection, and all devices that belong to it or to the pointer. */
const marks = computed(() => {
  const { after } = shown.value;
  const chosen = store.selection.value;
  const found = { selected: -1, hovered: store.hovered.value, linked: [], card: -1 };
  if (!after) return found;
  if (chosen?.kind === "device") found.selected = after.findDevice(chosen.id);
  if (chosen?.kind === "node") found.card = after.findNode(chosen.id);
  found.linked = store.highlighted.value ?? linkedTo(after, chosen, found);
  return found;
});

function linkedTo(fleet, chosen, { hovered, selected }) {
  const ofClaims = (device) => fleet.claimsOf(device).flatMap((claim) => devicesWith(fleet, claim));
  if (hovered >= 0) return ofClaims(hovered);
  if (chosen?.kind === "claim") return fleet.devicesOfClaim(fleet.findClaim(chosen.id));
  if (chosen?.kind === "pod") return fleet.devicesOfPod(fleet.findPod(chosen.id));
  return selected >= 0 ? ofClaims(selected) : [];
}

/** The devices of a claim, and of the other claims of its pod. */
export function devicesWith(fleet, claim) {
  const pod = fleet.claims.pod[claim];
  return pod >= 0 ? fleet.devicesOfPod(pod) : fleet.devicesOfClaim(claim);
}

/** The corner of what is in the view, and its scale. */
const view = computed(() => {
  const { width, height } = size.value;
  if (!layout.value || !width) return null;
  const middle = store.camera.value;
  if (!middle) return fitted(layout.value, width, height);
  const { x, y, scale } = middle;
  return { x: x - width / scale / 2, y: y - height / scale / 2, scale };
});

function moveTo(x, y, scale) {
  const { width, height } = size.value;
  store.setCamera({ x: x + width / scale / 2, y: y + height / scale / 2, scale });
}

// --- moving about -----------------------------------------------------------------------------

function bounded(scale) {
  const smallest = fitted(layout.value, size.value.width, size.value.height).scale * 0.8;
  return Math.min(ZOOM_MAX, Math.max(smallest, scale));
}

function zoomAt(factor, atX, atY) {
  const { x, y, scale } = view.value;
  const wanted = bounded(scale * factor);
  moveTo(x + atX / scale - atX / wanted, y + atY / scale - atY / wanted, wanted);
}

export function zoom(factor) {
  zoomAt(factor, size.value.width / 2, size.value.height / 2);
}

export function fit() {
  store.setCamera(null);
}

export function showDevice(device) {
  const { cells } = layout.value ?? {};
  if (!cells || device < 0 || cells.card[device] < 0) return;
  const card = layout.value.cards[cells.card[device]];
  showCard(card, cells.x[device] + 0.5, cells.y[device] + 0.5);
}

export function showNode(node) {
  const card = layout.value?.cards[node];
  if (card) showCard(card, card.x + card.width / 2, card.y + card.height / 2);
}

function showCard(card, x, y) {
  const { width, height } = size.value;
  const whole = Math.min((width * 0.9) / card.width, (height * 0.9) / card.height);
  if (whole >= NAMED_SCALE / 2) {
    const scale = Math.min(whole, NAMED_SCALE * 1.3);
    store.setCamera({ x: card.x + card.width / 2, y: card.y + card.height / 2, scale });
  } else store.setCamera({ x, y, scale: Math.max(view.value.scale, NAMED_SCALE) });
}

/** Bring a device into the view without moving more than needed. */
function reveal(device) {
  const { x, y, scale } = view.value;
  const { width, height } = size.value;
  const { cells } = layout.value;
  const [left, top] = [(cells.x[device] - x) * scale, (cells.y[device] - y) * scale];
  const extent = scale;
  if (left < 0 || top < 0 || left + extent > width || top + extent > height) {
    store.setCamera({ x: cells.x[device] + 0.5, y: cells.y[device] + 0.5, scale });
  }
}

function selectDevice(device) {
  const { after } = shown.value;
  store.select("device", after.deviceId(device));
  store.announcement.value = sentenceOf(after, device);
}

export function sentenceOf(fleet, device) {
  const holders = fleet.claimsOf(device).map((claim) => fleet.claimId(claim));
  const where = fleet.nodeName(fleet.devices.node[device]) || "several nodes";
  const held = holders.length ? `, held by ${holders.join(", ")}` : "";
  return `${fleet.deviceName(device)} of ${where}: ${DEVICE_STATES[fleet.devices.state[device]]}${held}`;
}

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onKey(event) {
  const { after } = shown.value;
  if (!after || event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = ARROWS[event.key];
  if (arrow) {
    const from = marks.value.selected;
    const first = layout.value.cards.find((card) => card.devices.length)?.devices[0] ?? -1;
    const device = from < 0 ? first : neighbour(layout.value, after, from, ...arrow);
    if (device >= 0) {
      selectDevice(device);
      reveal(device);
    }
  } else if (event.key === "+" || event.key === "=") zoom(ZOOM_STEP);
  else if (event.key === "-") zoom(1 / ZOOM_STEP);
  else if (event.key === "0") fit();
  else if (event.key === "Enter" && marks.value.selected >= 0) showDevice(marks.value.selected);
  else if (event.key === "Escape") store.select("", "");
  else return;
  event.preventDefault();
}

// --- the canvas -------------------------------------------------------------------------------

class Canvas extends Component {
  componentDidMount() {
    const place = this.base;
    this.fingers = new Map(); // that are down, by pointer
    this.observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = place;
      if (width && height) size.value = { width, height };
    });
    this.observer.observe(place);
    this.stop = effect(() => this.plan());
    this.canvas = place.querySelector("canvas");
    this.canvas.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.stop();
    cancelAnimationFrame(this.frame);
  }

  shouldComponentUpdate() {
    return false;
  }

  /** Draw in the next frame, once for any number of changes. */
  plan() {
    const scene = {
      fleet: shown.value.after,
      layout: layout.value,
      ...painting.value,
      theme: theme.value,
      camera: view.value,
      ...size.value,
      ratio: Math.min(2, window.devicePixelRatio || 1),
      marks: marks.value,
      dimmed: dimmed.value,
    };
    cancelAnimationFrame(this.frame);
    if (!scene.camera || !scene.kinds) return;
    if (paper.matches) this.draw(scene); // there is no other frame before it is printed
    else this.frame = requestAnimationFrame(() => this.draw(scene));
  }

  draw(scene) {
    const { canvas } = this;
    const [width, height] = [scene.width * scene.ratio, scene.height * scene.ratio].map(Math.round);
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    drawScene(canvas, scene);
    if (!canvas.dataset.drawn) performance.mark("moor-first-picture");
    canvas.dataset.drawn = "true";
  }

  at(event) {
    if (!layout.value) return null;
    const { x, y, scale } = view.value;
    return hit(layout.value, shown.value.after, x + event.offsetX / scale, y + event.offsetY / scale);
  }

  onWheel(event) {
    event.preventDefault();
    if (!view.value) return;
    if (event.shiftKey) {
      const { x, y, scale } = view.value;
      moveTo(x + (event.deltaX || event.deltaY) / scale, y, scale);
    } else {
      const steps = Math.max(-3, Math.min(3, event.deltaY / (event.deltaMode ? 3 : 100)));
      zoomAt(ZOOM_STEP ** -steps, event.offsetX, event.offsetY);
    }
    this.hover(event);
  }

  /** The middle of the fingers (or of the mouse) and how far apart two are. */
  grip() {
    const [one, two = one] = [...this.fingers.values()];
    return { x: (one.x + two.x) / 2, y: (one.y + two.y) / 2, apart: Math.hypot(one.x - two.x, one.y - two.y) };
  }

  /** What is under the grip stays under it until the number of fingers changes. */
  take() {
    this.drag = this.fingers.size ? { ...this.grip(), camera: view.value, isMoved: this.drag?.isMoved || this.fingers.size > 1 } : null;
  }

  onDown(event) {
    if (event.button !== 0 || this.fingers.size > 1) return;
    this.fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.canvas.setPointerCapture(event.pointerId);
    this.take();
  }

  onMove(event) {
    const { drag, fingers } = this;
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (drag?.camera) {
      const { x, y, apart } = this.grip();
      drag.isMoved ||= Math.hypot(x - drag.x, y - drag.y) > (event.pointerType === "touch" ? 10 : 4);
      if (!drag.isMoved) return;
      const before = drag.camera;
      const scale = drag.apart ? bounded((before.scale * apart) / drag.apart) : before.scale;
      moveTo(before.x + drag.x / before.scale - x / scale, before.y + drag.y / before.scale - y / scale, scale);
      return;
    }
    if (event.pointerType === "touch") return; // fingers do not hover
    this.hover(event);
  }

  hover(event) {
    const found = this.at(event);
    store.hovered.value = found?.device ?? -1;
    pointer.value = found ? { x: event.offsetX, y: event.offsetY, card: found.card } : null;
  }

  onUp(event) {
    const { drag } = this;
    if (!this.fingers.delete(event.pointerId)) return;
    this.take();
    if (this.drag || !drag || drag.isMoved || event.type === "pointercancel") return;
    const found = this.at(event);
    if (found?.device !== undefined) selectDevice(found.device);
    else if (found?.card && found.card.node >= 0) store.select("node", found.card.title);
    else store.select("", "");
  }

  onDouble(event) {
    const found = this.at(event);
    if (found?.card) showCard(found.card, found.card.x, found.card.y);
  }

  render() {
    return html`<div class="canvas-box">
      <canvas
        tabindex="0"
        role="application"
        aria-label="Map of the fleet. Arrow keys select devices, plus and minus zoom; the table view has the same content."
        aria-describedby="selected-sentence"
        onKeyDown=${onKey}
        onPointerDown=${(event) => this.onDown(event)}
        onPointerMove=${(event) => this.onMove(event)}
        onPointerUp=${(event) => this.onUp(event)}
        onPointerCancel=${(event) => this.onUp(event)}
        onPointerLeave=${() => {
          store.hovered.value = -1;
          pointer.value = null;
        }}
        onDblClick=${(event) => this.onDouble(event)}
      ></canvas>
    </div>`;
  }
}

// --- what lies over it --------------------------------------------------------------------------

const pointer = signal(null);

function Tip() {
  const at = pointer.value;
  const { after } = shown.value;
  const device = store.hovered.value;
  if (!at || !after) return null;
  const { width, height } = size.value;
  const style = {
    left: at.x < width - 280 ? `${at.x + 14}px` : "",
    right: at.x < width - 280 ? "" : `${width - at.x + 10}px`,
    top: at.y < height - 130 ? `${at.y + 14}px` : "",
    bottom: at.y < height - 130 ? "" : `${height - at.y + 10}px`,
  };
  if (device < 0) {
    return html`<div class="tip" style=${style}><b>${at.card.title}</b><span>${at.card.devices.length} devices</span></div>`;
  }
  const claims = after.claimsOf(device);
  const look = painting.value.legend[painting.value.kinds[device]];
  return html`<div class="tip" style=${style}>
    <b>${after.deviceName(device)}</b>
    <span>${after.nodeName(after.devices.node[device]) || after.text(after.devices.pool, device)} · ${after.text(after.devices.driver, device)}</span>
    ${after.devices.root[device] > 0 && html`<span>NUMA node ${after.devices.numa[device]} · PCIe root ${after.text(after.devices.root, device)}</span>`}
    <span>${look?.label && !look.isOneOfMany ? look.label : DEVICE_STATES[after.devices.state[device]]}</span>
    ${claims.slice(0, 3).map((claim) => {
      const pod = after.claims.pod[claim];
      return html`<span class="holder">${pod >= 0 ? `pod ${after.podId(pod)}` : `claim ${after.claimId(claim)}`}</span>`;
    })}
    ${claims.length > 3 && html`<span>and ${claims.length - 3} more</span>`}
  </div>`;
}

const TITLES = {
  "what-if": "What would change",
  cel: "What the expression selects",
  question: "Which question refused the device",
};

export function Legend() {
  const { legend = [] } = painting.value ?? {};
  const isMany = legend.some((each) => each.isOneOfMany && each.count);
  const entries = legend.map((each, i) => ({ ...each, i })).filter((each) => each.count && !each.isOneOfMany);
  const title = TITLES[meaning.value] ?? colours.COLOURS[meaning.value];
  return html`<div class="legend" role="group" aria-label=${`Legend: ${title}`}>
    <span class="legend-title">${title}</span>
    ${isMany && html`<span class="legend-note">one colour for each claim; neighbours differ</span>`}
    ${entries.slice(0, 12).map(
      (each) => html`<button
        class="legend-entry"
        type="button"
        aria-pressed=${pointed.value === each.i}
        title="Point out these devices"
        onClick=${() => (pointed.value = pointed.value === each.i ? -1 : each.i)}
      >
        <${Swatch} look=${each} /><span>${each.label}</span><data>${each.count.toLocaleString("en")}</data>
      </button>`,
    )}
    ${entries.length > 12 && html`<span class="legend-note">and ${entries.length - 12} more</span>`}
  </div>`;
}

export function Swatch({ look }) {
  const border = look.pattern === colours.OUTLINE;
  const style = { background: border ? "transparent" : look.colour, borderColor: look.colour };
  return html`<i class=${`swatch pattern-${look.pattern}`} style=${style} aria-hidden="true"></i>`;
}

export function Toolbar() {
  const fleet = store.currentFleet();
  const isTable = store.chosen.view.value === "table";
  const drivers = fleet ? fleet.once("drivers", () => driversOf(fleet)) : [];
  const isChosen = meaning.value === store.chosen.colour.value;
  return html`<div class="toolbar" role="toolbar" aria-label="Fleet">
    <div class="segments" role="group" aria-label="View">
      ${["map", "table"].map(
        (each) => html`<button type="button" aria-pressed=${(each === "table") === isTable} onClick=${() => (store.chosen.view.value = each)}>
          ${each === "map" ? "Map" : "Table"}
        </button>`,
      )}
    </div>
    <label class="field"
      >Colour
      <select
        value=${isChosen ? store.chosen.colour.value : ""}
        onChange=${(event) => (store.chosen.colour.value = event.target.value)}
        disabled=${!isChosen}
        title=${isChosen ? "" : "Esc closes what is painted now"}
      >
        ${!isChosen && html`<option value="">${{ question: "What refused", cel: "Expression", "what-if": "Changes" }[meaning.value]}</option>`}
        ${Object.entries(colours.COLOURS).map(([key, label]) => html`<option value=${key}>${label}</option>`)}
      </select>
    </label>
    <label class="field"
      >Driver
      <select value=${store.chosen.only.value} onChange=${(event) => (store.chosen.only.value = event.target.value)}>
        <option value="">All</option>
        ${drivers.map((each) => html`<option value=${each}>${each}</option>`)}
      </select>
    </label>
    <span class="grow"></span>
    <div class="segments" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom out" title="Zoom out (-)" disabled=${isTable} onClick=${() => zoom(1 / ZOOM_STEP)}>−</button>
      <button type="button" title="Show all (0)" disabled=${isTable} onClick=${fit}>Fit</button>
      <button type="button" aria-label="Zoom in" title="Zoom in (+)" disabled=${isTable} onClick=${() => zoom(ZOOM_STEP)}>+</button>
    </div>
  </div>`;
}

export function driversOf(fleet) {
  const numbers = new Set(fleet.devices.driver);
  numbers.delete(0);
  return [...numbers].map((each) => fleet.strings[each]).sort();
}

export function FleetMap() {
  const fleet = store.currentFleet();
  return html`<div class="map">
    <${Canvas} />
    <${Tip} />
    ${fleet && !fleet.deviceCount && html`<${Empty} />`}
    <p id="selected-sentence" class="unseen" aria-live="polite">${store.announcement.value}</p>
  </div>`;
}
