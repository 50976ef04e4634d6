import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useWindowing } from "../parts/windowing.js";
import { Card, isTouched } from "./card.js";
import { type GalleryView, sizes } from "./view.js";

const gap = 12;
/** On a screen that is touched, the choices are below the caption. */
const captionHeight = isTouched ? 88 : 50;
/** Rows that stay in the document above and below the visible ones. */
const rowsAround = 2;

/** What keys and controls do with the grid. */
export interface GridControl {
  /** Moves the focus by this many cards, rows or pages. */
  move(by: number, unit?: "card" | "row" | "page"): void;
  resize(size: number): void;
}

interface GridProps {
  view: GalleryView;
  control: RefObject<GridControl | null>;
}

/**
 * The cards as a grid of equal cells. Only the rows around what can be seen are in the document, whatever the size of the
 * job: a cell's place follows from its number.
 */
export function Grid({ view, control }: GridProps) {
  const { shown } = view;
  const [width, setWidth] = useState(0);
  const least = Math.min(sizes[view.size] ?? 200, width);
  const columns = Math.max(1, Math.floor((width + gap) / (least + gap)));
  const cellWidth = (width - gap * (columns - 1)) / columns;
  const rowHeight = Math.round(cellWidth * 0.8) + captionHeight + gap;
  const rows = width === 0 ? 0 : Math.ceil(shown.length / columns);
  const { list, first, last } = useWindowing<HTMLUListElement>(rows, rowHeight, rowsAround);
  useLayoutEffect(() => {
    const element = list.current;
    if (element === null) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const focus = view.focusedAt;
  const listTop = () => list.current?.getBoundingClientRect().top ?? 0;
  const reveal = (position: number, isAtTop = false) => {
    const top = listTop() + Math.floor(position / columns) * rowHeight;
    const head = headHeight() + gap;
    if (isAtTop ? scrollY > 0 : top < head) scrollBy(0, top - head);
    else if (!isAtTop && top + rowHeight > innerHeight) scrollBy(0, top + rowHeight - innerHeight);
  };

  // The card that was at the top stays there.
  const kept = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (kept.current !== null) reveal(kept.current, true);
    kept.current = null;
  }, [view.size]);

  useLayoutEffect(() => {
    if (!view.isFocusAsked || width === 0) return;
    view.isFocusAsked = false;
    reveal(focus);
    const button = list.current?.querySelector<HTMLElement>(`[aria-posinset="${focus + 1}"] .preview`);
    button?.focus({ preventScroll: true });
  });

  control.current = {
    move(by, unit = "card") {
      const perPage = Math.max(1, Math.floor((innerHeight - headHeight()) / rowHeight));
      const next = focus + by * (unit === "card" ? 1 : columns * (unit === "page" ? perPage : 1));
      if (unit === "row" && (next < 0 || next >= shown.length)) return;
      view.focusOn(shown[Math.min(shown.length - 1, Math.max(0, next))]);
    },
    resize(asked) {
      const size = Math.min(sizes.length - 1, Math.max(0, asked));
      if (size === view.size) return;
      const top = Math.max(0, headHeight() - listTop());
      kept.current = Math.floor(top / rowHeight) * columns;
      view.update({ size });
    },
  };

  const inView = Array.from({ length: (last - first) * columns }, (_, at) => first * columns + at);
  const inDocument = rows === 0 ? [] : [...new Set([...inView, focus])].sort((a, b) => a - b);
  return (
    <ul
      ref={list}
      class="grid"
      aria-label="Files"
      style={{ height: `${Math.max(0, rows * rowHeight - gap)}px` }}
    >
      {inDocument.map((position) => {
        const card = shown[position];
        if (card === undefined) return null;
        const x = (position % columns) * (cellWidth + gap);
        const y = Math.floor(position / columns) * rowHeight;
        return (
          <Card
            key={view.numberOf(card)}
            view={view}
            card={card}
            position={position}
            isCurrent={position === focus}
            style={{
              width: `${cellWidth}px`,
              height: `${rowHeight - gap}px`,
              transform: `translate(${x}px, ${y}px)`,
            }}
          />
        );
      })}
    </ul>
  );
}

/** The height of what stays above the cards. */
function headHeight(): number {
  return Math.max(0, document.querySelector(".head")?.getBoundingClientRect().bottom ?? 0);
}
