/**
 * What the page knows and shows, as signals.
 *
 * What the user has chosen is also in the fragment of the address, so that a link is a bug report.
 */
import { signal, computed, effect, batch } from "./vendor.js";

// --- what the server said -------------------------------------------------------------------

export const session = signal(null);
// loading, live, still, reconnecting, signed-out, failed
export const connection = signal("loading");
export const failure = signal("");
export const retryAt = signal(0);
export const fleet = signal(null);
// Counts changes of the fleet, which changes in place; `layoutChanges` only those that move rows.
export const changes = signal(0);
export const layoutChanges = signal(0);
export const history = signal(null);
// Each {for, state: "loading" | "ready" | "failed", answer, error} or null.
export const explanation = signal(null);
export const preview = signal(null);
export const celAnswer = signal(null);
export const detail = signal(null);

/** Return the fleet, and follow its changes. */
export function currentFleet() {
  return changes.value >= 0 ? fleet.value : null;
}

// --- what the user has chosen ---------------------------------------------------------------

const CHOICES = {
  view: "map", // map, table
  colour: "state", // state, claim, namespace, driver, age
  sel: "", // device:DRIVER/POOL/NAME, node:NAME, claim:NAMESPACE/NAME, pod:NAMESPACE/NAME
  pod: "", // the pending pod that is explained: NAMESPACE/NAME
  play: "", // cel, what-if, time
  cel: "",
  whatif: "", // changes, one a line; or: fix NAMESPACE/NAME NUMBER
  at: "", // revision
  cam: "", // x,y,scale: what is in the middle; empty: all of the fleet
  only: "", // a driver
};

export const chosen = Object.fromEntries(
  Object.entries(CHOICES).map(([name, initial]) => [name, signal(initial)]),
);

export const camera = computed(() => {
  const [x, y, scale] = chosen.cam.value.split(",").map(Number);
  return scale > 0 && Number.isFinite(x + y + scale) ? { x, y, scale } : null;
});

export function setCamera(middle) {
  chosen.cam.value = middle ? [middle.x, middle.y, middle.scale].map((n) => +n.toFixed(3)).join(",") : "";
}

export const selection = computed(() => {
  const [kind, ...rest] = chosen.sel.value.split(":");
  return rest.length ? { kind, id: rest.join(":") } : null;
});

export function select(kind, id) {
  chosen.sel.value = kind ? `${kind}:${id}` : "";
}

/** Read the choices from an address, and keep the address up to date from then on. */
export function keepInAddress() {
  const read = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    batch(() => {
      for (const [name, initial] of Object.entries(CHOICES)) {
        chosen[name].value = given.get(name) ?? initial;
      }
    });
  };
  read();
  window.addEventListener("hashchange", read);
  window.addEventListener("popstate", read);
  let timer = 0;
  effect(() => {
    const wanted = address();
    clearTimeout(timer);
    timer = setTimeout(() => write(wanted), 120);
  });
}

export function address() {
  const parameters = new URLSearchParams();
  for (const [name, initial] of Object.entries(CHOICES)) {
    if (chosen[name].value !== initial) parameters.set(name, chosen[name].value);
  }
  // These are allowed in a fragment, and easier to read.
  const text = parameters.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return text.replaceAll("%2C", ",");
}

function write(wanted) {
  if (location.hash.slice(1) === wanted) return;
  const withoutCamera = (hash) => hash.replace(/(^|&)cam=[^&]*/, "");
  // Moving about is not a step to come back to.
  const isStep = withoutCamera(location.hash.slice(1)) !== withoutCamera(wanted);
  const path = location.pathname + location.search + (wanted ? `#${wanted}` : "");
  try {
    window.history[isStep ? "pushState" : "replaceState"](null, "", path);
  } catch {
    // A file opened from disk may not change its address in every browser.
  }
}

// --- what the pointer and the keyboard are at -------------------------------------------------

export const hovered = signal(-1); // a device
export const highlighted = signal(null); // a list of devices, of a link that is pointed at
export const helpOpen = signal(false);
export const announcement = signal(""); // for screen readers

export function remember(key, value) {
  try {
    localStorage.setItem(`moor.${key}`, value);
  } catch {
    // Private windows have no storage; then the hint is shown again.
  }
}

export function remembered(key) {
  try {
    return localStorage.getItem(`moor.${key}`);
  } catch {
    return null;
  }
}
