import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  class?: string;
}

/** A modal dialog; the browser keeps the focus inside and gives it back. */
export function Dialog({ title, onClose, children, class: name = "" }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const body = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    if (dialog !== null && !dialog.open) dialog.showModal();
    // Focus neither the button that closes it nor one that spends.
    (dialog?.querySelector<HTMLElement>("[data-first]") ?? body.current)?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the key is Escape, which cancels
    <dialog
      ref={element}
      class={`dialog ${name}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
    >
      <div ref={body} class="dialog-body" tabIndex={-1}>
        <header>
          <h2 id={id} dir="auto">
            {title}
          </h2>
          <button type="button" class="icon" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

const paths = {
  close: "M5 5l10 10M15 5L5 15",
  start: "M10 4v12M4 10h12",
  runs: "M4 5h12M4 10h12M4 15h7",
  decide: "M4 10.5l4 4 8-9",
  gallery: "M4 4h5v5H4zM11 4h5v5h-5zM4 11h5v5H4zM11 11h5v5h-5z",
  schedules: "M10 3.5a6.5 6.5 0 100 13 6.5 6.5 0 000-13zM10 6.5V10l2.5 2",
  commands: "M4 6l4 4-4 4M10 14h6",
  left: "M12.5 4l-6 6 6 6",
  right: "M7.5 4l6 6-6 6",
  play: "M7 4.5v11l9-5.5z",
  sound: "M4 8v4h3l4 3.5v-11L7 8zM14 7.5a3.5 3.5 0 010 5",
  download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
  upload: "M10 13V4M6 7.5l4-4 4 4M4 16.5h12",
  search: "M9 4a5 5 0 100 10A5 5 0 009 4zM13 13l3.5 3.5",
  file: "M6 3.5h5l4 4v9H6zM11 3.5v4h4",
  warn: "M10 4l7 12H3zM10 8.5v3.5M10 14v.2",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="svg" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
