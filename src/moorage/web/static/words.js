/** Times, ages and counts in words. */
import { computed, signal } from "./vendor.js";
import { chosen, fleet, session } from "./store.js";

const TICK_MS = 10000;
const tick = signal(Date.now()); // one moment for all ages
setInterval(() => (tick.value = Date.now()), TICK_MS);

// How far the clock of the source is ahead of ours when its session was read.
const ahead = computed(() => (Date.parse(session.value?.now) || Date.now()) - Date.now());

/** Return the seconds since 1970 that ages refer to: now, or the moment that is shown. */
export function nowOf() {
  const shown = fleet.value?.time;
  if (chosen.at.value && shown) return Date.parse(shown) / 1000;
  if (!session.value?.live) return Date.parse(session.value?.now ?? shown) / 1000 || Date.now() / 1000;
  return (tick.value + ahead.value) / 1000;
}

/** Return an age as kubectl writes it: 45s, 12m, 3h, 5d. */
export function age(created) {
  if (created < 0) return "";
  const seconds = Math.max(0, nowOf() - created);
  if (seconds < 120) return `${Math.floor(seconds)}s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86400)}d`;
}

export function clock(ms, withDate = false) {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return "";
  const two = (number) => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return withDate ? `${day} ${time}` : time;
}

export function many(count, one, several = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
}
