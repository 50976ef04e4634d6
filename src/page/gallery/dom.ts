/** Everything on the page is built of elements and text; no text is ever read as HTML. */

type Handler = (event: never) => void;
type Attributes = Readonly<Record<string, string | number | boolean | null | Handler>>;
type Child = Node | string | null;

/** An element. Functions listen to the event of that name; `true` is an empty attribute, `false` and null are none. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  setAttributes(made, attributes);
  append(made, children);
  return made;
}

function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === false || value === null) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

function append(element: Element, children: readonly Child[]): void {
  for (const child of children) if (child !== null) element.append(child);
}

const svgSpace = "http://www.w3.org/2000/svg";

export function svg(tag: string, attributes: Attributes = {}, ...children: readonly Child[]): SVGElement {
  const made = document.createElementNS(svgSpace, tag);
  setAttributes(made, attributes);
  append(made, children);
  return made;
}

/** Drawn on 24 × 24, as lines. */
const icons = {
  pick: "M5 12.5l4.5 4.5L19 7.5",
  reject: "M6.5 6.5l11 11M17.5 6.5l-11 11",
  redo: "M19 12a7 7 0 1 1-2.3-5.2M19 3.5v4.2h-4.2",
  compare: "M12 4v16M4.5 6.5h4.5v11H4.5zM15 6.5h4.5v11H15z",
  play: "M8 5.5l10.5 6.5L8 18.5z",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  copy: "M9 9h10v10H9zM5 15V5h10",
  close: "M6 6l12 12M18 6L6 18",
  left: "M14.5 5.5L8 12l6.5 6.5",
  right: "M9.5 5.5L16 12l-6.5 6.5",
  search: "M10.5 4.5a6 6 0 1 1 0 12a6 6 0 1 1 0-12M15 15l4.5 4.5",
  grid: "M5 5h6v6H5zM13 5h6v6h-6zM5 13h6v6H5zM13 13h6v6h-6z",
  axes: "M5 4v15h15M10 14h3v-3h-3zM16 8h3V5h-3z",
  open: "M13 5h6v6M19 5l-8.5 8.5M10 6H5v13h13v-5",
  warning: "M12 4.5l8.5 14.5h-17zM12 10v4M12 16.4v.6",
} as const;

export function icon(name: keyof typeof icons): SVGElement {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" },
    svg("path", { d: icons[name] }),
  );
}

/** A button with an icon; the label is read out and shown when the pointer rests on it. */
export function iconButton(
  name: keyof typeof icons,
  label: string,
  click: (event: MouseEvent) => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  return el(
    "button",
    { type: "button", class: "tool", title: label, "aria-label": label, click, ...attributes },
    icon(name),
  );
}
