import { Overlay } from "./overlay.js";
import type { GalleryView } from "./view.js";

export function Help({ view }: { view: GalleryView }) {
  return (
    <Overlay view={view} title="Keyboard" class="help" onClose={() => view.show(null)}>
      <dl class="keys">
        {keysOf(view).map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Overlay>
  );
}

function keysOf({ page }: GalleryView): [string, string][] {
  const choosing: [string, string][] = [
    ["P", "pick"],
    ["X", "reject"],
    ["R", "redo: a new take of it"],
    ["U", "take the choice back"],
  ];
  return [
    ["← → ↑ ↓", "move; in the large view, the next file"],
    ["Enter", "large view; Esc closes it"],
    ["Space", "play or pause"],
    ...(page.isForClient ? [] : choosing),
    ["C", "compare with another file"],
    ["S", "in a comparison: side by side, or a slider"],
    ["1 2", "in a comparison: pick A, pick B"],
    ["/", "search"],
    ["+ −", "larger or smaller cards"],
    ["?", "this list"],
  ];
}
