/** Keys that act wherever the focus is, unless somebody types or a dialog is open that did not ask for them. */
export function onKeys(keys: Readonly<Record<string, () => void>>, isInDialog = false): () => void {
  const pressed = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target } = event;
    if (!(target instanceof Element)) return;
    if (target.closest("input, textarea, select, audio, video, [contenteditable], [role=grid]") !== null)
      return;
    if (!isInDialog && target.closest("dialog") !== null) return;
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act === undefined) return;
    event.preventDefault();
    // A key that is held down decides about what is in view, and not about what comes into view after it.
    if (!event.repeat || event.key.startsWith("Arrow")) act();
  };
  document.addEventListener("keydown", pressed);
  return () => document.removeEventListener("keydown", pressed);
}
