import { IconButton } from "../parts/icon.js";
import type { GalleryView } from "./view.js";

export async function copy(view: GalleryView, text: string, what: string): Promise<void> {
  view.say(
    (await copyText(text))
      ? `${what} copied`
      : `${what} could not be copied: select it, and copy it yourself`,
  );
}

interface CopyProps {
  view: GalleryView;
  text: string;
  what: string;
}

export function CopyButton({ view, text, what }: CopyProps) {
  return (
    <IconButton
      name="copy"
      class="tool copy"
      label={`Copy ${what.toLowerCase()}`}
      onClick={() => void copy(view, text, what)}
    />
  );
}

/** A command that is copied with a click. */
export function CommandLine({ view, command }: { view: GalleryView; command: string }) {
  return (
    <div class="command">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <code tabIndex={0}>{command}</code>
      <CopyButton view={view} text={command} what="Command" />
    </div>
  );
}

/** Puts a text on the clipboard, also where a page from the disk has no access to it. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const focused = document.activeElement;
  // Everything outside of an open dialog is inert.
  const place = document.querySelector("dialog[open]") ?? document.body;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  place.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus({ preventScroll: true });
  return isCopied;
}
