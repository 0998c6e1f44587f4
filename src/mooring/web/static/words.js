/** Times, ages and counts in words. */
import { fleet, session } from "./store.js";

/** Return the seconds since 1970 that ages refer to. */
export function nowOf() {
  const shown = fleet.value?.time;
  if (session.value?.live && shown) return Math.max(Date.parse(shown) / 1000, 0);
  return Date.parse(session.value?.now ?? shown ?? "") / 1000 || Date.now() / 1000;
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
