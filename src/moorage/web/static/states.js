/** What the page says when it has nothing to show: no devices, no rights, no server. */
import { html } from "./vendor.js";
import { reconnect, travel } from "./api.js";
import { chosen, connection, failure, fleet, session } from "./store.js";
import { clock } from "./words.js";

export function Empty() {
  const isForbidden = session.value?.forbidden?.includes("resourceslices");
  return html`<div class="state">
    ${isForbidden
      ? html`<h2>You may not list ResourceSlices</h2>
          <p>Devices are published in ResourceSlices. Ask an administrator for the verbs get, list and watch on them.</p>`
      : html`<h2>No devices yet</h2>
          <p>Drivers publish devices in ResourceSlices, and there are none. To try the page with devices of a known machine:</p>
          <pre>moor up --profile dgx-h100</pre>`}
  </div>`;
}

const WHOLE = {
  loading: () => html`<p class="quiet">Reading the fleet …</p>`,
  "signed-out": () =>
    html`<h2>You are not signed in</h2>
      <p>Links work once, and a session lasts twelve hours. Print a new link, and open it:</p>
      <pre>moor ui</pre>
      <button type="button" onClick=${() => location.reload()}>Try again</button>`,
  failed: () =>
    html`<h2>The fleet cannot be shown</h2>
      <p>${failure.value}</p>
      ${chosen.at.value
        ? html`<button type="button" onClick=${() => travel("")}>Show the present</button>`
        : html`<button type="button" onClick=${() => reconnect()}>Try again</button>`}`,
  reconnecting: () =>
    html`<h2>The server does not answer</h2>
      <p>${failure.value} The page tries again every few seconds.</p>
      <button type="button" onClick=${() => reconnect()}>Try now</button>`,
};

/** Instead of the page, while there is nothing to show; null once there is. */
export function WholeState() {
  const state = connection.value;
  if (fleet.value && state !== "signed-out") return null;
  const draw = WHOLE[state];
  return draw ? html`<div class="state whole" role="status">${draw()}</div>` : null;
}

/** A line above the page, while what it shows is old. */
export function Banner() {
  if (!fleet.value) return null;
  if (connection.value === "reconnecting") {
    return html`<div class="banner warn" role="status">
      <span><b>Reconnecting.</b> This is the fleet of ${clock(Date.parse(fleet.value.time))}; ${failure.value.toLowerCase()} After a restart, <code>moor ui</code> prints a new link.</span>
      <button type="button" onClick=${() => reconnect()}>Try now</button>
    </div>`;
  }
  if (failure.value) return html`<div class="banner warn" role="status"><span>${failure.value}</span><button type="button" onClick=${() => (failure.value = "")}>Close</button></div>`;
  // A link can bring changes along, and who opens it need not see the pane that lists them.
  if (chosen.whatif.value && chosen.play.value !== "what-if") {
    return html`<div class="banner" role="status">
      <span><b>This is not the fleet as it is:</b> changes are tried on it.</span>
      <button type="button" onClick=${() => (chosen.play.value = "what-if")}>Show them</button>
      <button type="button" onClick=${() => (chosen.whatif.value = "")}>Show the fleet as it is</button>
    </div>`;
  }
  if (chosen.at.value) {
    return html`<div class="banner" role="status">
      <span>You look at <b>${clock(Date.parse(fleet.value.time), true)}</b>, revision ${fleet.value.revision}.</span>
      <button type="button" onClick=${() => travel("")}>Back to now</button>
    </div>`;
  }
  return null;
}

export function Rights() {
  const forbidden = (session.value?.forbidden ?? []).filter((kind) => kind !== "resourceslices");
  if (!forbidden.length) return null;
  return html`<details class="note">
    <summary>You see a part of the cluster${forbidden.includes("resourceclaims") ? ": which devices others hold is not known" : ""}.</summary>
    You may not list in all namespaces: ${forbidden.join(", ")}.
  </details>`;
}
