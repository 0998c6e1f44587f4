/** The CEL playground: which devices of the fleet an expression selects, and which part says no. */
import { html, signal, effect, untracked } from "./vendor.js";
import { ask, isFile, pose } from "./api.js";
import * as store from "./store.js";
import { driversOf } from "./fleet.js";

const TYPING_MS = 350;
let timer = 0;
const typed = signal(null); // null: what the address says

/** Ask whenever the expression of the address changes. */
export function followCel() {
  effect(() => {
    const expression = store.chosen.cel.value.trim();
    const at = store.chosen.at.value;
    const isLoaded = store.fleet.value !== null;
    untracked(() => {
      if (!expression) store.celAnswer.value = null;
      else if (isLoaded) {
        pose(store.celAnswer, `${expression} ${at}`, () => ask("cel", {}, { expression, ...(at && { at }) }));
      }
    });
  });
}

function onInput(event) {
  typed.value = event.target.value;
  clearTimeout(timer);
  timer = setTimeout(run, TYPING_MS);
}

function run() {
  clearTimeout(timer);
  if (typed.value !== null) store.chosen.cel.value = typed.value;
  typed.value = null;
}

function examples(fleet) {
  const drivers = fleet ? driversOf(fleet) : [];
  return drivers.slice(0, 3).map((driver) => `device.driver == "${driver}"`);
}

export function Cel() {
  if (isFile()) return html`<p class="quiet pane">Expressions need a server: open this file's cluster with <code>moor ui</code>.</p>`;
  const asked = store.celAnswer.value;
  const answer = asked?.answer ?? asked?.previous;
  const expression = typed.value ?? store.chosen.cel.value;
  return html`<div class="pane cel">
    <div class="ask">
      <label for="cel-expression">Selector of a DeviceClass or request, over every device of the fleet</label>
      <textarea
        id="cel-expression"
        rows="3"
        spellcheck="false"
        value=${expression}
        placeholder='device.driver == "gpu.nvidia.com"'
        aria-describedby="cel-error"
        onInput=${onInput}
        onKeyDown=${(event) => {
          if (event.key !== "Enter" || event.shiftKey) return;
          event.preventDefault();
          run();
        }}
      ></textarea>
      ${!expression &&
      html`<p class="examples">
        ${examples(store.fleet.value).map((each) => html`<button type="button" class="chip" onClick=${() => (store.chosen.cel.value = each)}>${each}</button>`)}
      </p>`}
      <div id="cel-error" role="status">
        ${answer?.compileError && html`<${CompileError} expression=${store.chosen.cel.value.trim()} error=${answer.compileError} />`}
        ${asked?.state === "failed" && html`<p class="refusal">${asked.error}</p>`}
        ${answer?.meant &&
        html`<p class="hint-line">${answer.meant.lead} <button type="button" class="chip" onClick=${() => (store.chosen.cel.value = answer.meant.expression)}>${answer.meant.expression}</button></p>`}
        ${(answer?.hints ?? []).map((hint) => html`<p class="hint-line">${hint}</p>`)}
      </div>
    </div>
    <div class=${asked?.state === "loading" ? "result old" : "result"} aria-live="polite">
      ${!answer && html`<p class="quiet">The map shows which devices the expression selects; this pane its cost, and which part said no.</p>`}
      ${answer?.counts && html`<${Outcome} answer=${answer} />`}
    </div>
  </div>`;
}

function CompileError({ expression, error }) {
  const before = expression.slice(0, error.offset ?? 0);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const text = expression.split("\n")[before.split("\n").length - 1] ?? expression;
  return html`<pre class="compile-error">${text}\n${" ".repeat(line.length)}^\n${error.message}</pre>`;
}

function Outcome({ answer }) {
  const { counts, cost, parts = [], errors = [] } = answer;
  return html`<div class="figures">
      <div class="figure better"><b>${counts.yes.toLocaleString("en")}</b><span>yes</span></div>
      <div class="figure"><b>${counts.no.toLocaleString("en")}</b><span>no</span></div>
      <div class=${counts.error ? "figure worse" : "figure"}><b>${counts.error.toLocaleString("en")}</b><span>error</span></div>
      ${cost && html`<${Cost} cost=${cost} />`}
    </div>
    ${parts.length > 0 &&
    html`<h3>Which part said no, to how many devices</h3>
      <ul class="parts">
        ${parts.map(
          (part) => html`<li>
            <span class="bar"><i class="step-1" style=${{ width: `${(100 * (part.of - part.yes)) / Math.max(1, part.of)}%` }}></i></span>
            <b>${(part.of - part.yes).toLocaleString("en")} of ${part.of.toLocaleString("en")}</b><code>${part.why || part.text}</code>
          </li>`,
        )}
      </ul>`}
    ${errors.length > 0 &&
    html`<h3>Errors</h3>
      <ul class="plain">
        ${errors.map((each) => html`<li><b>${each.count.toLocaleString("en")} ×</b> ${each.message} <button type="button" class="link" onClick=${() => store.select("device", each.example)}>${each.example}</button></li>`)}
      </ul>`}`;
}

function Cost({ cost }) {
  const share = Math.max(cost.worst ?? 0, cost.estimate ?? 0) / Math.max(1, cost.limit);
  return html`<div class=${share > 1 ? "figure worse" : "figure"}>
    <b>${(cost.estimate ?? cost.worst ?? 0).toLocaleString("en")}</b>
    <span>estimated cost, of ${cost.limit.toLocaleString("en")}</span>
  </div>`;
}
