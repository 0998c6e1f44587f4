/** The page: header, three columns, the play pane; keyboard of the whole page. */
import { html, render } from "./vendor.js";
import { followHistory, start } from "./api.js";
import { Cel, followCel } from "./cel.js";
import { FleetMap, Legend, Toolbar } from "./fleet.js";
import { Help, Hint, followFirstStep } from "./help.js";
import { Inspector, followSelection } from "./inspector.js";
import { Pending, followPending } from "./pending.js";
import { Search } from "./search.js";
import { Banner, WholeState } from "./states.js";
import * as store from "./store.js";
import { Table } from "./table.js";
import { Time } from "./time.js";
import { WhatIf, followWhatIf } from "./what_if.js";
import { clock } from "./words.js";

const PLAYS = { cel: ["CEL", Cel], "what-if": ["What if", WhatIf], time: ["Time", Time] };
const STATES = { live: "live", reconnecting: "reconnecting", loading: "loading", failed: "no answer", "signed-out": "signed out" };

function Header() {
  const session = store.session.value;
  const fleet = store.currentFleet();
  const state = store.connection.value;
  return html`<header class="page-head">
    <h1><a class="brand" href="#" aria-label="Moorage: show all of the fleet">
      <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
        <circle cx="10" cy="4" r="2.4" /><path d="M10 6.5V17M4 11c0 4 2.6 6 6 6s6-2 6-6M7 9h6" />
      </svg>
      Moorage
    </a></h1>
    <span class="title" title=${session?.title ?? ""}>${session?.title ?? ""}</span>
    <span class="grow"></span>
    <${Search} />
    <span class="grow"></span>
    ${fleet && html`<span class=${`connection ${state}`} role="status"><i aria-hidden="true"></i>${STATES[state] ?? (session.live ? "past" : session.source)}<span class="quiet">${state === "live" ? "last change" : "as of"}</span><time>${clock(Date.parse(fleet.time))}</time></span>`}
    ${session?.user && html`<span class="user" title=${`You see what ${session.user} may see`}>${session.user}</span>`}
    <button type="button" class="round" aria-label="Help and keyboard" title="Help (?)" onClick=${() => (store.helpOpen.value = true)}>?</button>
  </header>`;
}

function Play() {
  const open = store.chosen.play.value;
  const toggle = (name) => (store.chosen.play.value = open === name ? "" : name);
  const Pane = PLAYS[open]?.[1];
  return html`<section class=${Pane ? "play open" : "play"} aria-label="Play">
    <div class="tabs">
      <div role="tablist" aria-label="Play">
      ${Object.entries(PLAYS).map(
        ([name, [label]]) => html`<button type="button" role="tab" id=${`tab-${name}`} aria-selected=${open === name} aria-controls="play-pane" onClick=${() => toggle(name)}>${label}</button>`,
      )}
      </div>
      <span class="grow"></span>
      <${Legend} />
    </div>
    <div id="play-pane" role="tabpanel" aria-labelledby=${`tab-${open || "cel"}`} hidden=${!Pane}>${Pane && html`<${Pane} />`}</div>
  </section>`;
}

function Page() {
  const isTable = store.chosen.view.value === "table";
  const isThere = store.fleet.value && store.connection.value !== "signed-out";
  return html`<${Header} />
    <${Banner} />
    <${WholeState} />
    ${isThere &&
    html`<main class="columns">
        <${Pending} />
        <section class="column middle" aria-label="Fleet">
          <${Toolbar} />
          ${isTable ? html`<${Table} />` : html`<${FleetMap} />`}
          <${Hint} />
        </section>
        <${Inspector} />
      </main>
      <${Play} />`}
    <${Help} />`;
}

const PRESSED = {
  "/": () => document.getElementById("search")?.focus(),
  "?": () => (store.helpOpen.value = true),
  m: () => (store.chosen.view.value = "map"),
  t: () => (store.chosen.view.value = "table"),
  c: () => open("cel"),
  w: () => open("what-if"),
  h: () => open("time"),
  Escape: escape,
};

/** Open a pane, and go where it is typed or slid. */
function open(pane) {
  store.chosen.play.value = pane;
  const enter = (frames) => {
    const field = document.querySelector("#play-pane :is(textarea, input)");
    if (field) field.focus();
    else if (frames) requestAnimationFrame(() => enter(frames - 1)); // the history is being read
  };
  requestAnimationFrame(() => enter(60));
}

/** Close what is open, the innermost first. */
function escape() {
  if (store.chosen.whatif.value) store.chosen.whatif.value = "";
  else if (store.selection.value) store.select("", "");
  else if (store.chosen.pod.value) store.chosen.pod.value = "";
  else store.chosen.play.value = "";
}

function onKey(event) {
  const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "range";
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (store.helpOpen.value) return; // the dialog has its own keys
  if (isTyping && event.key !== "Escape") return;
  const act = PRESSED[event.key];
  if (!act) return;
  event.preventDefault();
  if (isTyping) event.target.blur();
  else act();
}

store.keepInAddress();
followFirstStep();
followHistory();
followPending();
followSelection();
followCel();
followWhatIf();
document.addEventListener("keydown", onKey);
render(html`<${Page} />`, document.getElementById("page"));
start();
