import type { ButtonHTMLAttributes } from "preact";

/** Drawn on 20 × 20, as lines. */
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
  pause: "M7 4.5v11M13 4.5v11",
  sound: "M4 8v4h3l4 3.5v-11L7 8zM14 7.5a3.5 3.5 0 010 5",
  download: "M10 3.5v9M6 9l4 4 4-4M4 16.5h12",
  upload: "M10 13V4M6 7.5l4-4 4 4M4 16.5h12",
  search: "M9 4a5 5 0 100 10A5 5 0 009 4zM13 13l3.5 3.5",
  file: "M6 3.5h5l4 4v9H6zM11 3.5v4h4",
  warn: "M10 4l7 12H3zM10 8.5v3.5M10 14v.2",
  redo: "M15.8 10a5.8 5.8 0 11-1.9-4.3M15.8 2.9v3.5h-3.5",
  compare: "M10 3.5v13M4 5.5h3.5v9H4zM12.5 5.5H16v9h-3.5z",
  copy: "M7.5 7.5H16V16H7.5zM4 12.5V4h8.5",
  axes: "M4 3.5V16h12.5M8.5 11.5H11V9H8.5zM13 7h2.5V4.5H13z",
  open: "M11 4h5v5M16 4l-7 7M8.5 5H4v11h11v-4.5",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="svg" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

interface IconButtonProps extends ButtonHTMLAttributes {
  name: IconName;
  /** Read out, and shown when the pointer rests on it. */
  label: string;
  class?: string;
}

export function IconButton({ name, label, class: kind = "", children, ...attributes }: IconButtonProps) {
  return (
    <button type="button" title={label} {...attributes} class={`icon ${kind}`} aria-label={label}>
      <Icon name={name} />
      {children}
    </button>
  );
}
