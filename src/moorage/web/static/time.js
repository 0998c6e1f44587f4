/** Time: a slider over the history of the source, with marks where something happened. */
import { html, signal } from "./vendor.js";
import { isFile, travel } from "./api.js";
import * as store from "./store.js";
import { clock } from "./words.js";

const PLAY_MS = 900;
const STOPS = 60; // while it plays
const NOTCHES = 1000; // of the slider
const MARKS_MAX = 300;
const playing = signal(0); // the timer, 0 if it does not play
const isAll = signal(false); // marks of everything, not of the chosen pod alone
const sliding = signal(-1); // the point under the thumb while it moves

function points() {
  return store.history.value?.points ?? [];
}

/** The number of the point that is shown; the last if it is the present. */
function position() {
  const at = Number(store.chosen.at.value);
  const all = points();
  if (!store.chosen.at.value) return all.length - 1;
  return Math.max(0, all.findLastIndex(([revision]) => revision <= at));
}

function go(index) {
  const all = points();
  const last = all.length - 1;
  const to = Math.max(0, Math.min(last, index));
  return travel(to === last && store.session.value?.live ? "" : all[to][0]);
}

/** Where a point is between the first and the last, from 0 to 1: by time, or by number if all are of one second. */
function placeOf(all, index) {
  const [first, last] = [all[0][1], all.at(-1)[1]];
  return last - first > 1000 ? (all[index][1] - first) / (last - first) : index / Math.max(1, all.length - 1);
}

/** The next point to stop at, so that playing has so many stops at most. */
function stopAfter(all, index) {
  if (all.length <= STOPS) return index + 1;
  const wanted = placeOf(all, index) + 1 / STOPS;
  const found = all.findIndex((_, i) => i > index && placeOf(all, i) >= wanted);
  return found < 0 ? all.length - 1 : found;
}

function stop() {
  clearTimeout(playing.value);
  playing.value = 0;
}

function play() {
  if (playing.value) return stop();
  const from = position() >= points().length - 1 ? 0 : position();
  const next = async (index) => {
    await go(index);
    if (index >= points().length - 1) return stop();
    if (playing.value) playing.value = setTimeout(next, PLAY_MS, stopAfter(points(), index));
  };
  playing.value = setTimeout(next, 0, from);
}

export function Time() {
  const all = points();
  if (isFile() || !store.session.value?.history || all.length < 1) {
    return html`<p class="quiet pane">
      ${isFile()
        ? "This file shows one moment. A recording has more: "
        : store.session.value?.history && !store.history.value
          ? "Reading the history … To keep a longer one, record it: "
          : "There is no history to go back to. It begins once something changes; for a real cluster, record it: "}
      <code>moor record</code>
    </p>`;
  }
  const here = sliding.value >= 0 ? sliding.value : position();
  const shown = all[here];
  return html`<div class="pane time">
    <div class="transport">
      <button type="button" aria-label=${playing.value ? "Pause" : "Play"} onClick=${play}>${playing.value ? "❚❚" : "▶"}</button>
      <button type="button" aria-label="One step back" disabled=${here <= 0} onClick=${() => go(here - 1)}>‹</button>
      <button type="button" aria-label="One step on" disabled=${here >= all.length - 1} onClick=${() => go(here + 1)}>›</button>
      <output>${clock(shown[1], true)}</output>
      <span class="quiet">revision ${shown[0]}</span>
      <span class="grow"></span>
      ${store.chosen.at.value && html`<button type="button" onClick=${() => travel("")}>Now</button>`}
    </div>
    <${Track} all=${all} here=${here} />
    <${Marks} />
  </div>`;
}

function Track({ all, here }) {
  const first = all[0][0];
  const last = all.at(-1)[0];
  const marks = store.history.value.marks.slice(-MARKS_MAX);
  const place = (revision) => 100 * placeOf(all, Math.max(0, all.findLastIndex(([each]) => each <= revision)));
  // Several points may share a notch: the last of them counts.
  const pointAt = (notch) => Math.max(0, all.findLastIndex((_, i) => Math.round(NOTCHES * placeOf(all, i)) <= notch));
  const onKey = (event) => {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    stop();
    go(here + step);
  };
  return html`<div class="track">
    <div class="ticks" aria-hidden="true">
      ${marks.filter((mark) => mark.revision >= first && mark.revision <= last).map(
        (mark) => html`<i class=${`tick ${mark.what.toLowerCase()}`} style=${{ left: `${place(mark.revision)}%` }} title=${`${mark.what} ${mark.name}`}></i>`,
      )}
    </div>
    <input
      id="moment"
      type="range"
      min="0"
      max=${NOTCHES}
      value=${NOTCHES * placeOf(all, here)}
      onKeyDown=${onKey}
      aria-label="Moment"
      aria-valuetext=${clock(all[here][1], true)}
      onInput=${(event) => (sliding.value = pointAt(Number(event.target.value)))}
      onChange=${(event) => {
        const index = pointAt(Number(event.target.value));
        stop();
        go(index).finally(() => (sliding.value = -1));
      }}
    />
    <div class="ends quiet"><span>${clock(all[0][1], true)}</span><span>${clock(all.at(-1)[1], true)}</span></div>
  </div>`;
}

function Marks() {
  const chosen = store.chosen.pod.value || (store.selection.value?.kind === "pod" ? store.selection.value.id : "");
  const all = store.history.value?.marks ?? [];
  const own = chosen ? all.filter((mark) => `${mark.namespace}/${mark.name}` === chosen) : [];
  const isOwn = own.length > 0 && !isAll.value;
  const marks = (isOwn ? own : all).slice(-40).reverse();
  return html`<div class="marks">
    <h3>
      ${isOwn ? `What happened to ${chosen}` : "What happened"}
      ${own.length > 0 && html` <button type="button" class="link" onClick=${() => (isAll.value = !isAll.value)}>${isOwn ? "Show all" : `Only ${chosen}`}</button>`}
    </h3>
    ${!marks.length && html`<p class="quiet">Nothing happened to pods, claims or taints.</p>`}
    <ul class="plain">
      ${marks.map(
        (mark) => html`<li>
          <button type="button" class="mark" onClick=${() => travel(mark.revision)}>
            <time>${clock(Date.parse(mark.time))}</time>
            <i class=${`tick-dot ${mark.what.toLowerCase()}`} aria-hidden="true"></i>
            <b>${mark.what}</b> <span>${mark.kind} ${mark.namespace ? `${mark.namespace}/` : ""}${mark.name}</span>
            <span class="quiet">${mark.cause}</span>
          </button>
        </li>`,
      )}
    </ul>
  </div>`;
}
