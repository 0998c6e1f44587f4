/**
 * What colour and pattern a device has, and the legend that says so.
 *
 * Hues are those of Okabe and Ito, which colour-blind readers can tell apart; states that must not
 * be confused also differ in pattern. Text on the page uses none of these.
 */
import { DEVICE_STATES } from "./columns.js";

export const PALETTES = {
  light: {
    background: "#f6f7f9",
    card: "#ffffff",
    line: "#d5dbe3",
    text: "#1c2530",
    quiet: "#5b6877",
    accent: "#0b57d0",
    free: "#dfe7ee",
    taken: "#3a78b8",
    partly: "#a9cbe8",
    blocked: "#c4bccf",
    tainted: "#e69f00",
    unusable: "#d55e00",
    missing: "#7a2048",
    unknown: "#8894a3",
    far: "#eef1f4",
    no: "#e4e8ed",
    yes: "#009e73",
    off: "#d3dae2",
    selector: "#cc9cc4",
    counters: "#8d84b8",
    ghost: "#009e73",
    leaving: "#d55e00",
  },
  dark: {
    background: "#0f141a",
    card: "#171e26",
    line: "#2b3542",
    text: "#e6ebf1",
    quiet: "#9aa7b6",
    accent: "#8ab4f8",
    free: "#2a3542",
    taken: "#4f90d6",
    partly: "#2d557f",
    blocked: "#574f68",
    tainted: "#e8a823",
    unusable: "#e0713a",
    missing: "#c4588a",
    unknown: "#75828f",
    far: "#1c242d",
    no: "#242d38",
    yes: "#2bb98c",
    off: "#33404e",
    selector: "#a5719c",
    counters: "#6f66a0",
    ghost: "#2bb98c",
    leaving: "#e0713a",
  },
};

// Distinct in hue or lightness; used in turn for claims, namespaces and drivers.
const CATEGORIES = {
  light: [
    ...["#3a78b8", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8d84b8", "#b59a00"],
    ...["#2a5783", "#a86f00", "#00694d", "#94507a"],
  ],
  dark: [
    ...["#4f90d6", "#e8a823", "#2bb98c", "#d98cb8", "#7cc6f2", "#e0713a", "#a39bd0", "#cdb52a"],
    ...["#8fb8e8", "#c98f35", "#5fd1ac", "#b46c97"],
  ],
};
const AGES = {
  light: ["#08306b", "#2a6db0", "#6aaed6", "#a9cfe5", "#b9a88c"],
  dark: ["#deebf7", "#9ecae1", "#5a9fd4", "#2f6ca8", "#6b5f4d"],
};
const AGE_STEPS = [
  [600, "under 10 minutes"],
  [3600, "under an hour"],
  [86400, "under a day"],
  [604800, "under a week"],
  [Infinity, "a week or more"],
];

export const COLOURS = {
  state: "State",
  claim: "Claim",
  namespace: "Namespace",
  driver: "Driver",
  age: "Age of the claim",
};

export const PLAIN = 0;
export const STRIPES = 1;
export const CROSSES = 2;
export const DOTS = 3;
export const OUTLINE = 4; // a ghost: only its border
export const HALF = 5;

const STATES = [
  ["free", PLAIN],
  ["taken", PLAIN],
  ["partly", HALF],
  ["blocked", STRIPES],
  ["tainted", CROSSES],
  ["unusable", DOTS],
  ["missing", OUTLINE],
  ["unknown", OUTLINE],
];

// How the questions of an explanation look, in the order of the server.
const QUESTIONS = [
  ["off", PLAIN],
  ["selector", STRIPES],
  ["unusable", DOTS],
  ["taken", STRIPES], // some readers cannot tell its blue from green
  ["counters", DOTS],
  ["tainted", CROSSES],
  ["blocked", OUTLINE],
  ["yes", PLAIN],
];

/** Return {kinds, legend}: a number for each device, and what each number looks like. */
export function paintOf(fleet, mode, theme, now) {
  const painters = { state: byState, age: byAge, claim: byClaim };
  return (painters[mode] ?? byName)(fleet, theme, mode === "age" ? now : mode);
}

function entry(theme, label, colour, pattern = PLAIN) {
  return { label, colour: PALETTES[theme][colour] ?? colour, pattern, count: 0 };
}

function counted(kinds, legend) {
  for (const kind of kinds) if (legend[kind]) legend[kind].count++;
  return { kinds, legend };
}

function byState(fleet, theme) {
  const legend = STATES.map(([colour, pattern], i) => entry(theme, DEVICE_STATES[i], colour, pattern));
  return counted(Uint16Array.from(fleet.devices.state), legend);
}

/** Devices without a claim look as their state says; `kindOf` numbers the others from 0. */
function byHolder(fleet, theme, legend, kindOf) {
  const base = legend.length;
  const states = STATES.map(([colour, pattern], i) => entry(theme, DEVICE_STATES[i], colour, pattern));
  const kinds = new Uint16Array(fleet.deviceCount);
  for (let device = 0; device < kinds.length; device++) {
    const claim = fleet.firstClaim(device);
    kinds[device] = claim < 0 ? base + fleet.devices.state[device] : kindOf(claim, device);
  }
  return counted(kinds, [...legend, ...states]);
}

function byClaim(fleet, theme) {
  const colours = CATEGORIES[theme];
  const legend = colours.map((colour) => ({ ...entry(theme, "", colour), isOneOfMany: true }));
  // Neighbouring claims have neighbouring numbers: 5 steps on, their colours differ.
  return byHolder(fleet, theme, legend, (claim) => (claim * 5) % colours.length);
}

function byAge(fleet, theme, now) {
  const legend = AGE_STEPS.map(([, label], i) => entry(theme, label, AGES[theme][i]));
  legend.push(entry(theme, "age not known", "blocked", STRIPES));
  return byHolder(fleet, theme, legend, (claim) => {
    const created = fleet.claims.created[claim];
    return created < 0 ? AGE_STEPS.length : AGE_STEPS.findIndex(([limit]) => now - created < limit);
  });
}

function byName(fleet, theme, mode) {
  const isDriver = mode === "driver";
  const column = isDriver ? fleet.devices.driver : fleet.claims.namespace;
  const numbers = new Map();
  for (const name of column) if (!numbers.has(name)) numbers.set(name, numbers.size);
  const colours = CATEGORIES[theme];
  const legend = [...numbers.keys()].map((name, i) =>
    entry(theme, fleet.strings[name] || "unknown", colours[i % colours.length], patternOf(i)),
  );
  if (!isDriver) return byHolder(fleet, theme, legend, (claim) => numbers.get(column[claim]));
  return counted(Uint16Array.from(column, (name) => numbers.get(name)), legend);
}

function patternOf(number) {
  return [PLAIN, STRIPES, DOTS, CROSSES][Math.floor(number / CATEGORIES.light.length) % 4];
}

/** How an explanation paints devices: by the question that refused them. */
export function paintOfQuestions(kinds, questions, theme) {
  const legend = questions.map((label, i) => entry(theme, label, ...QUESTIONS[i]));
  return counted(Uint16Array.from(kinds), legend);
}

/** How the answer of an expression is painted. */
export function paintOfAnswer(kinds, theme) {
  const legend = [
    entry(theme, "no", "no"),
    entry(theme, "yes", "yes"),
    entry(theme, "error", "unusable", CROSSES),
  ];
  return counted(Uint16Array.from(kinds), legend);
}

/** How two moments of one fleet differ. */
export function paintOfChange(before, after, theme) {
  const legend = [
    entry(theme, "free", "free"),
    entry(theme, "in use, unchanged", "partly"),
    entry(theme, "would be taken", "ghost", OUTLINE),
    entry(theme, "would be released", "leaving", OUTLINE),
    entry(theme, "gets another holder", "tainted", STRIPES),
    entry(theme, "tainted or not usable", "blocked", STRIPES),
    entry(theme, "would be added", "ghost", DOTS),
  ];
  const kinds = new Uint16Array(after.deviceCount);
  for (let device = 0; device < kinds.length; device++) kinds[device] = changeOf(before, after, device);
  return counted(kinds, legend);
}

function changeOf(before, after, device) {
  if (device >= before.deviceCount) return after.devices.claims[device] > 0 ? 2 : 6;
  const [had, has] = [before.devices.claims[device], after.devices.claims[device]];
  if (has > had) return 2;
  if (has < had) return 3;
  if (has > 0) return before.firstClaim(device) === after.firstClaim(device) ? 1 : 4;
  return after.devices.state[device] >= 3 ? 5 : 0;
}

/** Return black or white, whichever can be read better on a colour: 4.5 to 1 at least. */
export function inkOn(colour) {
  return luminance(colour) > 0.18 ? "#10161d" : "#ffffff";
}

function luminance(colour) {
  const parts = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
  const [r, g, b] = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Return a colour as the number that ImageData has for it on a little-endian machine. */
export function packed(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
