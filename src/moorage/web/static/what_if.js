/** What-if: changes that are tried out on a copy of the fleet; nothing is written. */
import { html, signal, effect, untracked } from "./vendor.js";
import { ask, isFile, pose } from "./api.js";
import { shown } from "./fleet.js";
import { find } from "./search.js";
import * as store from "./store.js";
import { many } from "./words.js";

// What can be done, with the option of `moor whatif` that does it.
const VERBS = {
  drain: { label: "Drain node", of: "node" },
  cordon: { label: "Cordon node", of: "node" },
  "remove-node": { label: "Remove node", of: "node" },
  "taint-node": { label: "Taint node", of: "node", suffix: "=tried:NoSchedule", help: "A taint of your own follows the name: node-1=key=value:NoExecute." },
  "taint-device": { label: "Taint device", of: "device", suffix: "=tried:NoExecute", help: "A taint of your own follows the name: DRIVER/POOL/DEVICE=key:NoSchedule." },
  "add-profile": { label: "Add machines", of: "profile", suffix: "=1", help: "One machine, or several: dgx-h100=3." },
  "delete-claim": { label: "Delete claim", of: "claim" },
  "delete-pod": { label: "Delete pod", of: "pod" },
  add: { label: "Add objects (YAML)", of: "yaml" },
  "replace-slices": { label: "Upgrade a driver (YAML)", of: "yaml", help: "Paste the ResourceSlices that the driver publishes afterwards: they replace all it has now." },
};

const verb = signal("drain");
const value = signal("");
const refusal = signal("");

/** Try out what the address says, whenever it changes. */
export function followWhatIf() {
  effect(() => {
    const text = store.chosen.whatif.value;
    const at = store.chosen.at.value;
    const isLoaded = store.fleet.value !== null;
    untracked(() => {
      if (!text) store.preview.value = null;
      else if (isLoaded) pose(store.preview, `${text} ${at}`, () => ask("what-if", {}, bodyOf(text, at)));
    });
  });
}

function bodyOf(text, at) {
  const fix = text.match(/^fix ([^/]+)\/(\S+) (\d+)$/);
  const what = fix
    ? { fix: { namespace: fix[1], name: fix[2], number: Number(fix[3]) } }
    : { changes: changesOf(text) };
  return { ...what, ...(at && { at }) };
}

/** A change is a line; lines of YAML, after `add`, begin with spaces or a dash. */
function changesOf(text) {
  return text ? text.split("\n\n").filter(Boolean) : [];
}

export function tryFix(pod, number) {
  const key = `fix ${pod} ${number}`;
  store.chosen.whatif.value = store.chosen.whatif.value === key ? "" : key;
  if (store.chosen.whatif.value) store.chosen.play.value = "what-if";
}

export function tryChange(change) {
  const known = store.chosen.whatif.value.startsWith("fix ") ? [] : changesOf(store.chosen.whatif.value);
  if (store.preview.value?.state === "failed") known.pop(); // the next try takes the place of what was refused
  if (!known.includes(change)) known.push(change);
  store.chosen.whatif.value = known.join("\n\n");
  store.chosen.play.value = "what-if";
}

/** A change in words: a fix as its explanation has it. */
function labelOf(change) {
  const [, pod, number] = change.match(/^fix (\S+) (\d+)$/) ?? [];
  const fixes = pod === store.chosen.pod.value ? (store.explanation.value?.answer?.fixes ?? []) : [];
  return fixes.find((fix) => fix.number === Number(number))?.text ?? change.split("\n")[0];
}

function drop(change) {
  store.chosen.whatif.value = changesOf(store.chosen.whatif.value)
    .filter((each) => each !== change)
    .join("\n\n");
}

/** What the field suggests: what is selected, if the verb is about such a thing. */
function suggested() {
  const { of } = VERBS[verb.value];
  const chosen = store.selection.value;
  const fleet = store.fleet.value;
  if (of === "profile") return store.session.value?.profiles?.[0] ?? "";
  if (chosen?.kind === of) return chosen.id;
  if (of === "node" && chosen?.kind === "device" && fleet) {
    return fleet.nodeName(fleet.devices.node[fleet.findDevice(chosen.id)]);
  }
  return "";
}

// What the fleet has all of; it does not have pods without claims.
const FINDS = { node: "findNode", device: "findDevice", claim: "findClaim" };

/** Return what is named so, or by parts; "" if that can be several. */
function meant(of, given) {
  const [name] = given.split("="); // a taint may follow
  const fleet = shown.value.after;
  if (!FINDS[of] || fleet[FINDS[of]](name) >= 0) return given;
  const matches = find(fleet, name, [of]);
  const best = matches.filter((each) => each.rank === matches[0].rank);
  if (!best.length) return given;
  if (best.length > 1) refusal.value = `Which one? ${best.map((each) => each.id).join(", ")}`;
  return best.length > 1 ? "" : best[0].id + given.slice(name.length);
}

function submit(event) {
  event.preventDefault();
  const given = (value.value || suggested()).trim();
  refusal.value = given ? "" : `Name what to change: a ${VERBS[verb.value].of}.`;
  if (!given) return;
  const { suffix = "" } = VERBS[verb.value];
  const { of } = VERBS[verb.value];
  const isWhole = of === "yaml" || /=/.test(given);
  // An empty line is between changes.
  const whole = of === "yaml" ? given.replace(/\n\s*\n/g, "\n") : meant(of, given);
  if (!whole) return;
  tryChange(`${verb.value} ${whole}${isWhole ? "" : suffix}`);
  value.value = "";
}

export function WhatIf() {
  if (isFile()) return html`<p class="quiet pane">What-if needs a server: open this file's cluster with <code>moor ui</code>.</p>`;
  const tried = store.preview.value;
  const { of, help } = VERBS[verb.value];
  const text = store.chosen.whatif.value;
  return html`<div class="pane what-if">
    <div class="ask">
      <form onSubmit=${submit}>
        <label class="unseen" for="whatif-verb">Change</label>
        <select id="whatif-verb" value=${verb.value} onChange=${(event) => (verb.value = event.target.value)}>
          ${Object.entries(VERBS).map(([key, each]) => html`<option value=${key}>${each.label}</option>`)}
        </select>
        <label class="unseen" for="whatif-value">What to change</label>
        ${of === "yaml"
          ? html`<textarea id="whatif-value" rows="4" value=${value.value} onInput=${(event) => (value.value = event.target.value)} placeholder=${verb.value === "add" ? "kind: Pod …" : "kind: ResourceSlice …"}></textarea>`
          : html`<input
              id="whatif-value"
              list=${of === "profile" ? "profiles" : of === "node" ? "nodes" : undefined}
              value=${value.value}
              placeholder=${suggested() || { node: "node", device: "DRIVER/POOL/DEVICE", claim: "NAMESPACE/NAME", pod: "NAMESPACE/NAME", profile: "profile" }[of]}
              onInput=${(event) => (value.value = event.target.value)}
            />`}
        <datalist id="profiles">${(store.session.value?.profiles ?? []).map((each) => html`<option value=${each}></option>`)}</datalist>
        <${NodeNames} />
        <button type="submit" class="primary">Try</button>
      </form>
      ${help && html`<p class="quiet small">${help}</p>`}
      ${refusal.value && html`<p class="refusal" role="alert">${refusal.value}</p>`}
      <ul class="chips" aria-label="Changes that are tried">
        ${(text.startsWith("fix ") ? [text] : changesOf(text)).map(
          (change) => html`<li><span>${labelOf(change)}</span><button type="button" aria-label=${`Remove ${labelOf(change)}`} onClick=${() => (text.startsWith("fix ") ? (store.chosen.whatif.value = "") : drop(change))}>×</button></li>`,
        )}
      </ul>
      ${text && html`<button type="button" class="link" onClick=${() => (store.chosen.whatif.value = "")}>Clear, and show the fleet as it is</button>`}
    </div>
    <div class="result" aria-live="polite">
      ${!text && html`<p class="quiet">Try a change before you make it: the map shows what would be taken and freed, this pane which pods move. Nothing is written.</p>`}
      ${tried?.state === "loading" && html`<p class="quiet loading">Planning …</p>`}
      ${tried?.state === "failed" && html`<p class="refusal" role="alert">${tried.error}</p>`}
      ${tried?.state === "ready" && html`<${Outcome} answer=${tried.answer} />`}
    </div>
  </div>`;
}

function NodeNames() {
  const fleet = store.fleet.value;
  const typed = value.value;
  const names = [];
  for (let row = 0; fleet && row < fleet.nodes.name.length && names.length < 20; row++) {
    const name = fleet.nodeName(row);
    if (name.includes(typed)) names.push(name);
  }
  return html`<datalist id="nodes">${names.map((name) => html`<option value=${name}></option>`)}</datalist>`;
}

function Outcome({ answer }) {
  const { pendingBefore: before, pendingAfter: after, evicted = [], placed = [] } = answer;
  const verdict = after > before ? "worse" : after < before ? "better" : "same";
  return html`<div class="outcome">
    <div class="figures">
      <div class=${`figure ${verdict}`}><b>${before} → ${after}</b><span>pending pods</span></div>
      <div class="figure"><b>${evicted.length}</b><span>evicted</span></div>
      <div class="figure"><b>${placed.length}</b><span>placed anew</span></div>
    </div>
    ${evicted.length > 0 &&
    html`<h3>Evicted</h3>
      <ul class="plain">
        ${evicted.slice(0, 50).map((each) => html`<li><button type="button" class="link" onClick=${() => store.select("pod", each.pod)}>${each.pod}</button> <span class="quiet">${each.cause}</span></li>`)}
      </ul>`}
    ${placed.length > 0 &&
    html`<h3>Placed</h3>
      <ul class="plain">
        ${placed.slice(0, 50).map(
          (each) => html`<li
            onMouseEnter=${() => (store.highlighted.value = each.devices ?? [])}
            onMouseLeave=${() => (store.highlighted.value = null)}
          >${each.namespace}/${each.name} → <button type="button" class="link" onClick=${() => store.select("node", each.node)}>${each.node}</button> <span class="quiet">${many((each.devices ?? []).length, "device")}</span></li>`,
        )}
      </ul>`}
    <details open=${!evicted.length && !placed.length}>
      <summary>All changes in words</summary>
      <pre>${(answer.text ?? []).join("\n")}</pre>
    </details>
  </div>`;
}
