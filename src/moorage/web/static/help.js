/** The help dialog with the keyboard, and the hint of the first visit. */
import { html, Component, effect, signal } from "./vendor.js";
import * as store from "./store.js";

const KEYS = [
  ["/", "find a node, pod, claim or device"],
  ["← ↑ → ↓", "select the next device of the map"],
  ["Enter", "show the selected device large"],
  ["+ −", "zoom; so do the wheel and two fingers, and a double click shows a node"],
  ["0", "show all of the fleet"],
  ["m t", "map or table"],
  ["c w h", "CEL, what-if, history (time)"],
  ["Esc", "close what is open, then drop the selection"],
  ["?", "this help"],
];

class Dialog extends Component {
  componentDidMount() {
    this.stop = effect(() => {
      if (store.helpOpen.value && !this.base.open) this.base.showModal();
      if (!store.helpOpen.value && this.base.open) this.base.close();
    });
  }

  componentWillUnmount() {
    this.stop();
  }

  render() {
    return html`<dialog class="help" aria-labelledby="help-title" onClose=${() => (store.helpOpen.value = false)}>
      <header>
        <h2 id="help-title">Keyboard and meaning</h2>
        <button type="button" class="close" aria-label="Close" onClick=${() => (store.helpOpen.value = false)}>×</button>
      </header>
      <dl class="keys">
        ${KEYS.map(([keys, what]) => html`<dt>${keys.split(" ").map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${what}</dd>`)}
      </dl>
      <p>A cell is a device, a card a node. Rows inside a card are NUMA nodes. Small cells inside a cell are partitions; the filled part of a cell is how much of it is used.</p>
      <p>The address holds everything that you see: send it to a colleague, or put it in a bug report. The page only reads.</p>
      <p class="quiet">Moorage ${store.session.value?.version ?? ""}</p>
    </dialog>`;
  }
}

export { Dialog as Help };

const isHintOpen = signal(!store.remembered("hint"));

function closeHint() {
  isHintOpen.value = false;
  store.remember("hint", "seen");
}

/** The hint goes once somebody has done what it says. */
export function followFirstStep() {
  effect(() => {
    const { sel, pod, cam } = store.chosen;
    if (isHintOpen.peek() && (sel.value || pod.value || cam.value)) closeHint();
  });
}

export function Hint() {
  const fleet = store.currentFleet();
  if (!isHintOpen.value || !fleet?.deviceCount) return null;
  return html`<aside class="hint" aria-label="First steps">
    <p><b>Each cell is a device, each card a node.</b> Scroll to zoom, drag to move, click to inspect. ${fleet.groups.length ? "Choose a pending pod to see why it waits." : ""} Press <kbd>/</kbd> to find, <kbd>?</kbd> for all keys.</p>
    <button type="button" onClick=${closeHint}>Got it</button>
  </aside>`;
}
