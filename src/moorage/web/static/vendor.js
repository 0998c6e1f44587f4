/** The vendored libraries, and how a component follows signals. */
import { h, render, Component } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { signal, computed, effect, batch, untracked } from "./vendor/signals-core.js";

export { h, render, Component, signal, computed, effect, batch, untracked };

/** Draw with `html`: every function that is used as a component follows the signals that it reads. */
export const html = htm.bind((type, ...rest) => h(isPlain(type) ? followed(type) : type, ...rest));

const known = new Map();

function isPlain(type) {
  return typeof type === "function" && !(type.prototype instanceof Component);
}

/** Return a component that draws again whenever a signal that its function has read changes. */
function followed(draw) {
  if (!known.has(draw)) known.set(draw, follow(draw));
  return known.get(draw);
}

function follow(draw) {
  return class Following extends Component {
    componentWillUnmount() {
      this.stop?.();
    }

    render(props) {
      this.stop?.();
      let drawn;
      let isFirst = true;
      this.stop = effect(() => {
        if (isFirst) drawn = draw(props);
        else untracked(() => this.setState({}));
        isFirst = false;
      });
      return drawn;
    }
  };
}
