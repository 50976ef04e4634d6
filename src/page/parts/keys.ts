/** What each key does; it is left to the browser if that answers with false. Letters are in lower case. */
export type Keys = Readonly<Record<string, (event: KeyboardEvent) => unknown>>;

interface KeysWhere {
  /** They also act in a dialog. */
  inDialogs?: boolean;
  /** They act while the focus is on a clip or a sound, too, except for those that play it. */
  onPlayers?: boolean;
}

const fields = "input:not([type=range]), textarea, select, [contenteditable], [role=grid]";

/** Keys that act wherever the focus is, unless somebody types or a dialog is open that did not ask for them. */
export function onKeys(keys: Keys, { inDialogs = false, onPlayers = false }: KeysWhere = {}): () => void {
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target, key } = event;
    if (!(target instanceof Element)) return;
    if (target.closest(fields) !== null) return;
    if (target.matches("input") && /^(Arrow|Home|End|Page)/.test(key)) return;
    if (target.closest("audio, video") !== null && (!onPlayers || /^( |Enter)$/.test(key))) return;
    if (!inDialogs && target.closest("dialog") !== null) return;
    const act = keys[key.length === 1 ? key.toLowerCase() : key];
    // A letter that is held down decides about what is in view, and not about what comes into view after it.
    const isHeld = event.repeat && key.length === 1;
    if (act === undefined || (!isHeld && act(event) === false)) return;
    event.preventDefault();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
