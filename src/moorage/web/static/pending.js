/** The left column: pending pods by cause; the chosen one with funnel, conflict and fixes. */
import { html, signal, effect, untracked } from "./vendor.js";
import { ask, isFile, pose, travel } from "./api.js";
import * as store from "./store.js";
import { tryFix } from "./what_if.js";
import { Rights } from "./states.js";
import { showNode } from "./fleet.js";
import { age, clock, many } from "./words.js";

const GROUPS_MAX = 60;
const PODS_MAX = 40;
const more = signal(1); // how many times as many groups and pods are listed

// --- the order of groups --------------------------------------------------------------------------

let order = []; // causes in the order in which they were first seen, so that rows never jump

function inOrder(groups) {
  const rows = new Map(groups.map((group, row) => [group.cause, { ...group, row }]));
  const known = order.filter((cause) => rows.has(cause));
  const fresh = [...rows.keys()].filter((cause) => !known.includes(cause));
  order = [...known, ...fresh];
  return order.map((cause) => rows.get(cause));
}

export function Pending() {
  const fleet = store.currentFleet();
  if (!fleet) return null;
  const groups = inOrder(fleet.groups);
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  const limit = GROUPS_MAX * more.value;
  return html`<section class="column pending" aria-labelledby="pending-title">
    <header class="column-head">
      <h2 id="pending-title">Pending</h2>
      <span class="count">${many(count, "pod")}</span>
    </header>
    <${Rights} />
    ${!count &&
    html`<div class="blank"><b>No pod waits.</b><span>Pods that get no node appear here, by cause, with what would help.</span></div>`}
    <ul class="groups">
      ${groups.slice(0, limit).map((group) => html`<${Group} key=${group.cause} fleet=${fleet} group=${group} />`)}
    </ul>
    ${groups.length > limit && html`<button type="button" class="wide" onClick=${() => more.value++}>Show more causes</button>`}
  </section>`;
}

function Group({ fleet, group }) {
  const first = fleet.podId(group.first);
  const chosen = store.chosen.pod.value;
  const pods = chosen ? fleet.podsOfGroup(group.row).map((pod) => fleet.podId(pod)) : [];
  const isOpen = chosen && (chosen === first || pods.includes(chosen));
  const oldest = fleet.podsOfGroup(group.row).reduce((least, pod) => {
    const created = fleet.pods.created[pod];
    return created >= 0 ? Math.min(least, created) : least;
  }, Infinity);
  const choose = () => (store.chosen.pod.value = isOpen ? "" : first);
  return html`<li class=${isOpen ? "group open" : "group"}>
    <button type="button" class="group-head" aria-expanded=${Boolean(isOpen)} onClick=${choose}>
      <span class="group-line">
        <b>${first.split("/")[1]}</b>
        ${group.count > 1 && html`<span class="more" title="pods with the same cause">+ ${(group.count - 1).toLocaleString("en")}</span>`}
        ${Number.isFinite(oldest) && html`<time title="since the oldest was created">${age(oldest)}</time>`}
      </span>
      <span class="cause">${group.wants && html`<span class="wants">${group.wants}</span> `}${withoutPod(group.cause)}</span>
    </button>
    ${isOpen && html`<${Explanation} fleet=${fleet} pods=${pods} />`}
  </li>`;
}

/** A cause begins with the name of a pod where it is one pod's; the row says it already. */
function withoutPod(cause) {
  return cause.replace(/^pod \S+: /, "");
}

// --- the explanation of a pod -----------------------------------------------------------------------

/** Ask why the chosen pod waits, whenever another one is chosen. */
export function followPending() {
  effect(() => {
    const pod = store.chosen.pod.value;
    const isLoaded = store.fleet.value !== null;
    const at = store.chosen.at.value;
    untracked(() => {
      if (!pod) store.explanation.value = null;
      else if (isLoaded) explain(pod, at);
    });
  });
}

function explain(pod, at) {
  pose(store.explanation, `${pod} ${at}`, () => answerOf(pod, at));
}

async function answerOf(pod, at) {
  const [namespace, name] = pod.split("/");
  const { revision } = store.fleet.peek();
  return { ...(await ask("explain", {}, { namespace, name, ...(at && { at }) })), revision };
}

/** Ask once more; the old answer is shown until the new one is there. */
function explainAgain(pod) {
  const at = store.chosen.at.value;
  pose(store.explanation, `${pod} ${at}`, () => answerOf(pod, at), true);
}

function Explanation({ fleet, pods }) {
  const asked = store.explanation.value;
  const pod = store.chosen.pod.value;
  const answer = asked?.answer;
  return html`<div class="explanation">
    ${pods.length > 1 && html`<${Siblings} pods=${pods} pod=${pod} />`}
    ${(!asked || asked.state === "loading") && !answer && html`<p class="quiet loading" role="status">Explaining ${pod} …</p>`}
    ${asked?.state === "failed" &&
    html`<p class="note" role="alert">${asked.error}${store.session.value?.forbidden?.includes("resourceclaims") && " As far as you may see: others may hold its devices."}</p>
      <button type="button" onClick=${() => explainAgain(pod)}>Ask again</button>`}
    ${answer && html`<${Stale} fleet=${fleet} pod=${pod} answer=${answer} />`}
    ${answer && html`<${Answer} fleet=${fleet} pod=${pod} answer=${answer} />`}
  </div>`;
}

/** The fleet goes on, and the answer does not. */
function Stale({ fleet, pod, answer }) {
  if (store.chosen.at.value || answer.revision >= fleet.revision || isFile()) return null;
  return html`<p class="stale quiet small">The fleet has changed since this was found out. <button type="button" class="link" onClick=${() => explainAgain(pod)}>Ask again</button></p>`;
}

function Siblings({ pods, pod }) {
  return html`<label class="field wide-field"
    >Pod
    <select value=${pod} onChange=${(event) => (store.chosen.pod.value = event.target.value)}>
      ${pods.slice(0, PODS_MAX * more.value).map((each) => html`<option value=${each}>${each}</option>`)}
    </select>
  </label>`;
}

function Answer({ fleet, pod, answer }) {
  return html`<div>
    ${pod && answer.cause && html`<p class="unseen" role="status">${answer.cause}</p>`}
    <${Since} fleet=${fleet} pod=${pod} />
    ${(answer.requests ?? []).map((request) => html`<${Request} fleet=${fleet} request=${request} />`)}
    <${Fixes} pod=${pod} fixes=${answer.fixes ?? []} />
    ${answer.conflict?.length > 0 &&
    html`<h3>Impossible together</h3>
      <ul class="conflict">
        ${answer.conflict.map((line) => html`<li>${line}</li>`)}
      </ul>`}
    ${answer.nodes?.length > 0 &&
    html`<details>
      <summary>Nodes, the nearest first</summary>
      <ul class="plain">
        ${answer.nodes.slice(0, 12).map(
          (group) => html`<li><b>${group.names.slice(0, 3).join(", ")}${group.count > 3 ? ` and ${group.count - 3} more` : ""}</b> ${group.texts.join("; ")}</li>`,
        )}
      </ul>
    </details>`}
    ${answer.kubernetes && html`<details><summary>What the scheduler says</summary><p class="quote">${answer.kubernetes}</p></details>`}
    <p class="links">
      <button type="button" class="link" onClick=${() => store.select("pod", pod)}>Inspect the pod</button>
      <button type="button" class="link" onClick=${() => (store.chosen.pod.value = "")}>Close</button>
    </p>
  </div>`;
}

/** When the pod became pending, if the history knows it. */
function Since({ fleet, pod }) {
  const created = fleet.pods.created[fleet.findPod(pod)] ?? -1;
  const marks = store.history.value?.marks ?? [];
  const mark = marks.find((each) => each.what === "Pending" && `${each.namespace}/${each.name}` === pod);
  const since = mark ? Date.parse(mark.time) : created * 1000;
  if (!(since > 0)) return null;
  return html`<p class="since">
    ${mark ? "Pending since" : "Created"} <b>${clock(since, true)}</b> (${age(since / 1000)})
    ${mark &&
    html`<button type="button" class="link" onClick=${() => {
      store.chosen.play.value = "time";
      store.chosen.whatif.value = ""; // it is about now
      travel(mark.revision);
    }}>Go there</button>`}
  </p>`;
}

/** The steps that leave fewer devices than the one before, and the last. */
function narrowing(funnel) {
  return funnel.filter((step, i) => !i || i === funnel.length - 1 || step.count !== funnel[i - 1].count);
}

function Request({ fleet, request }) {
  const steps = narrowing(request.funnel ?? []);
  // CLAIM: REQUEST, of which the claim's name is long and made up.
  const name = (request.name ?? "").split(": ").at(-1);
  // A fleet has 40,000 devices where the last steps have 3: lengths are logarithms.
  const most = Math.max(1, ...steps.map((step) => Math.log1p(step.count)));
  return html`<div class="request">
    <h3 title=${request.name}>${name ? `Request ${name}` : "Request"} <span class="quiet">${request.wants}</span></h3>
    ${request.node && html`<p class="quiet small">on node <button type="button" class="link" onClick=${() => {
      store.select("node", request.node);
      showNode(fleet.findNode(request.node));
    }}>${request.node}</button>, the nearest</p>`}
    <ol class="funnel" aria-label="Devices left after each question">
      ${steps.map(
        (step, i) => html`<li>
          <span class="bar"><i style=${{ width: `${(100 * Math.log1p(step.count)) / most}%` }} class=${step.count ? `step-${Math.min(i, 4)}` : "none"}></i></span>
          <b>${step.count.toLocaleString("en")}</b><span>${step.label}</span>
        </li>`,
      )}
    </ol>
    ${request.nearest && html`<p class="small nearest">Nearest: ${request.nearest}</p>`}
  </div>`;
}

function Fixes({ pod, fixes }) {
  if (!fixes.length) return null;
  const tried = store.chosen.whatif.value;
  return html`<h3>What would help</h3>
    <ol class="fixes">
      ${fixes.map((fix) => {
        const key = `fix ${pod} ${fix.number}`;
        if (fix.isAdvice || isFile()) return html`<li class="advice">${fix.isAdvice && html`<span class="tag">advice</span> `}${fix.text}</li>`;
        return html`<li>
          <button type="button" class="fix" aria-pressed=${tried === key} onClick=${() => tryFix(pod, fix.number)}>
            <span>${fix.text}</span>${fix.node && html`<span class="quiet">gets node ${fix.node}</span>`}
            <span class="preview-word">${tried === key ? "Shown on the map" : "Preview"}</span>
          </button>
        </li>`;
      })}
    </ol>`;
}
