import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "./icon.js";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
  /** The content has a head and a button to close of its own; the title is only read out. */
  hasOwnHead?: boolean;
  /** What it shows: when that changes, the dialog takes the focus again. */
  shown?: unknown;
}

/** A modal dialog; the browser keeps the focus inside and gives it back. */
export function Dialog({
  title,
  onClose,
  children,
  class: name = "",
  hasOwnHead = false,
  shown,
}: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    if (dialog !== null && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  useLayoutEffect(() => {
    // Focus neither the button that closes it nor one that spends.
    (element.current?.querySelector<HTMLElement>("[data-first]") ?? body.current)?.focus();
  }, [shown]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key is Escape, which cancels
    <dialog
      ref={element}
      class={`dialog ${name}`}
      {...(hasOwnHead ? { "aria-label": title } : { "aria-labelledby": id })}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // A browser may close it without asking first.
      onClose={() => {
        if (element.current !== null) onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      <div ref={body} class="dialog-body" tabIndex={-1}>
        {!hasOwnHead && (
          <header>
            <h2 id={id} dir="auto">
              {title}
            </h2>
            <IconButton name="close" label="Close" onClick={onClose} />
          </header>
        )}
        {children}
      </div>
    </dialog>
  );
}
