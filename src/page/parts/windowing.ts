import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Which rows of a long list are in view, so that only these are drawn. */
export interface Windowing<E extends HTMLElement> {
  list: RefObject<E | null>;
  first: number;
  last: number;
}

/** `beyond` rows are also drawn above and below. The list scrolls in the element with `data-scroller`, or with the page. */
export function useWindowing<E extends HTMLElement>(
  rows: number,
  rowHeight: number,
  beyond = 6,
): Windowing<E> {
  const list = useRef<E>(null);
  const [[first, last], setRange] = useState([0, 0]);
  useLayoutEffect(() => {
    const element = list.current;
    if (element === null) return;
    const scroller = element.closest<HTMLElement>("[data-scroller]");
    const measure = () => {
      const top = (scroller?.getBoundingClientRect().top ?? 0) - element.getBoundingClientRect().top;
      const height = scroller?.clientHeight ?? innerHeight;
      const from = Math.max(0, Math.floor(top / rowHeight) - beyond);
      const to = Math.min(rows, Math.ceil((top + height) / rowHeight) + beyond);
      setRange((before) => (before[0] === from && before[1] === to ? before : [from, Math.max(from, to)]));
    };
    measure();
    const scrolled = scroller ?? document;
    scrolled.addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    const observer = new ResizeObserver(measure);
    if (scroller !== null) observer.observe(scroller);
    observer.observe(element);
    return () => {
      scrolled.removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
      observer.disconnect();
    };
  }, [rows, rowHeight, beyond]);
  return { list, first: Math.min(first, Math.max(0, rows - 1)), last: Math.min(last, rows) };
}
