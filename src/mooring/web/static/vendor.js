/** The vendored libraries, and how a component follows signals. */
import { h, render, Component } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { signal, computed, effect, batch, untracked } from "./vendor/signals-core.js";

export { h, render, Component, signal, computed, effect, batch, untracked };

export const html = htm.bind(h);

/** Return a component that draws again whenever a signal that its function has read changes. */
export function follow(draw) {
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
