import { el, iconButton } from "./dom.js";
import { stopSound, unload } from "./media.js";
import { copyText } from "./text.js";

/** A dialog over the page. Esc closes it. */
export class Dialog {
  readonly element: HTMLDialogElement;
  private closed: () => void = () => {};

  constructor(kind: string, label: string) {
    this.element = el("dialog", { class: kind, "aria-label": label, tabindex: -1 });
    this.element.addEventListener("close", () => {
      // It was opened again before this event came.
      if (this.element.open) return;
      unload(this.element);
      this.element.replaceChildren();
      this.closed();
    });
    // A click beside a small dialog closes it.
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.element.close();
    });
    document.body.append(this.element);
  }

  get isOpen(): boolean {
    return this.element.open;
  }

  show(content: readonly Node[], closed: () => void = () => {}): void {
    stopSound();
    unload(this.element);
    this.closed = closed;
    this.element.replaceChildren(...content);
    if (!this.element.open) this.element.showModal();
    // Keys act on what is shown; the first button is one Tab away.
    this.element.focus();
  }

  close(): void {
    this.element.close();
  }

  closeButton(): HTMLButtonElement {
    return iconButton("close", "Close (Esc)", () => this.close(), { class: "tool close" });
  }
}

const toastPlace = el("div", { class: "toasts", role: "status" });

/** A line that goes away by itself. */
export function toast(text: string): void {
  // Above an open dialog, if there is one: what lies below it cannot be seen.
  (document.querySelector("dialog[open]") ?? document.body).append(toastPlace);
  const line = el("div", { class: "toast", animationend: () => line.remove() }, text);
  toastPlace.replaceChildren(line);
}

export async function copy(text: string, what: string): Promise<void> {
  toast(
    (await copyText(text))
      ? `${what} copied`
      : `${what} could not be copied: select it, and copy it yourself`,
  );
}

export function copyButton(text: () => string, what: string): HTMLButtonElement {
  return iconButton("copy", `Copy ${what.toLowerCase()}`, () => void copy(text(), what), {
    class: "tool copy",
  });
}

/** A command that is copied with a click. */
export function commandLine(command: string): HTMLElement {
  return el(
    "div",
    { class: "command" },
    el("code", { tabindex: 0 }, command),
    copyButton(() => command, "Command"),
  );
}
