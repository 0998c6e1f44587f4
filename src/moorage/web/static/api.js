/** Ask the server, or the data of a single file; follow the events of the server. */
import { batch, effect } from "./vendor.js";
import { Fleet } from "./columns.js";
import * as store from "./store.js";

const RETRY_MS = [1000, 2000, 4000, 8000];
const HISTORY_MS = 2000;
const ANSWER_MS_MAX = 30000;

export class Refused extends Error {
  constructor(status, message, answer) {
    super(message);
    this.status = status;
    this.answer = answer;
  }
}

let inlined = null; // the data of a single file

async function readInlined() {
  const element = document.getElementById("moor-data");
  if (!element) return null;
  const data = JSON.parse(element.textContent);
  if (!data.gzip) return data;
  const bytes = Uint8Array.from(atob(data.gzip), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** Return an answer of the server; raise Refused with a sentence for the user. */
export async function ask(path, query = {}, body = undefined) {
  if (inlined) return answerOfFile(path, body);
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  const address = given.length ? `${path}?${new URLSearchParams(given)}` : path;
  const headers = { accept: "application/json" };
  const options = { headers, signal: AbortSignal.timeout(ANSWER_MS_MAX) };
  if (body) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["x-moor-ui"] = "1";
    headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) store.connection.value = "signed-out";
  throw new Refused(response.status, answer.error || `The server answered ${response.status}.`, answer);
}

function answerOfFile(path, body) {
  if (path === "explain") {
    const found = inlined.explain?.[`${body.namespace}/${body.name}`];
    if (found) return found;
  } else if (path in inlined) return inlined[path];
  throw new Refused(404, "This file has no answer to that. Open the cluster with `moor ui` to ask.");
}

export function isFile() {
  return inlined !== null;
}

// --- the fleet and its changes ----------------------------------------------------------------

let stream = null;
let retries = 0;
let timer = 0;
let loading = 0; // the newest request; answers to older ones are dropped

/** Load everything, and follow it from then on. */
export async function start() {
  inlined ??= await readInlined();
  await connect();
}

async function connect() {
  clearTimeout(timer);
  try {
    store.session.value = await ask("session");
    await loadFleet();
    retries = 0;
  } catch (error) {
    lost(error);
  }
}

/** Load the fleet of the chosen moment. */
export async function loadFleet() {
  const request = ++loading;
  const at = store.chosen.at.value;
  const answer = await ask("fleet", { at });
  if (request !== loading) return;
  batch(() => {
    store.fleet.value = new Fleet(answer);
    store.changes.value++;
    store.layoutChanges.value++;
    store.failure.value = "";
    store.connection.value = store.session.value.live && !at ? "live" : "still";
  });
  stream?.close();
  stream = null;
  if (!inlined && store.session.value.live && !at) listen();
}

let historyTimer = 0;

/** Read the history while something shows it, again after changes but not more often than that. */
export function followHistory() {
  effect(() => {
    // An explanation comes first: it is waited for.
    const isExplained = store.chosen.pod.value && ["ready", "failed"].includes(store.explanation.value?.state);
    const isShown = store.chosen.play.value === "time" || isExplained;
    const isLoaded = store.changes.value > 0 && store.session.value?.history;
    if (!isShown || !isLoaded || inlined || historyTimer) return;
    loadHistory();
    historyTimer = setTimeout(() => {
      historyTimer = 0;
      if (historyOf !== store.fleet.value.revision) loadHistory();
    }, HISTORY_MS);
  });
}

let historyOf = 0; // the revision at which it was read

async function loadHistory() {
  historyOf = store.fleet.peek().revision;
  try {
    store.history.value = await ask("history");
  } catch {
    // Without a history the page has no slider; everything else works.
  }
}

/** Show another moment, or the newest with "". */
export async function travel(at) {
  store.chosen.at.value = String(at);
  try {
    await loadFleet();
  } catch (error) {
    if (error.status === 0) lost(error);
    else store.failure.value = error.message;
  }
}

function listen() {
  stream = new EventSource(`events?since=${store.fleet.value.revision}`);
  stream.addEventListener("open", () => {
    retries = 0;
  });
  stream.addEventListener("fleet", (event) => changed(JSON.parse(event.data)));
  stream.addEventListener("reload", () => loadFleet().catch(lost));
  stream.addEventListener("error", () => lost(new Refused(0, "The server cannot be reached.")));
}

function changed(change) {
  batch(() => {
    if (store.fleet.value.apply(change)) store.layoutChanges.value++;
    store.changes.value++;
    store.connection.value = "live";
  });
}

function lost(error) {
  stream?.close();
  stream = null;
  clearTimeout(timer);
  if (store.connection.value === "signed-out") return;
  const isTemporary = !error.status || error.status >= 429;
  store.failure.value = error.message;
  store.connection.value = isTemporary ? "reconnecting" : "failed";
  if (!isTemporary) return;
  const wait = RETRY_MS[Math.min(retries++, RETRY_MS.length - 1)];
  store.retryAt.value = Date.now() + wait;
  timer = setTimeout(connect, wait);
}

export function reconnect() {
  retries = 0;
  connect();
}

// --- questions --------------------------------------------------------------------------------

/** Ask a question and keep its state in a signal; an answer to an older question is dropped. */
export async function pose(target, key, question, isAgain = false) {
  if (!isAgain && target.value?.for === key && target.value.state !== "failed") return;
  const previous = target.value?.answer;
  const mine = { for: key, state: "loading", previous, ...(isAgain && { answer: previous }) };
  target.value = mine;
  try {
    const answer = await question();
    if (target.value === mine) target.value = { for: key, state: "ready", answer };
  } catch (error) {
    if (target.value === mine) target.value = { for: key, state: "failed", error: error.message };
  }
}
