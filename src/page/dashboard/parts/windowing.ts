import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Which rows of a long list are in view, so that only these are drawn. The list lies in an element with `data-scroller`. */
export interface Windowing<E extends HTMLElement> {
  list: RefObject<E | null>;
  first: number;
  last: number;
}

const beyond = 6;

export function useWindowing<E extends HTMLElement>(rows: number, rowHeight: number): Windowing<E> {
  const list = useRef<E>(null);
  const [[first, last], setRange] = useState([0, Math.min(rows, 40)]);
  useLayoutEffect(() => {
    const element = list.current;
    const scroller = element?.closest<HTMLElement>("[data-scroller]");
    if (!element || !scroller) return;
    const measure = () => {
      const top = scroller.getBoundingClientRect().top - element.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(top / rowHeight) - beyond);
      const to = Math.min(rows, Math.ceil((top + scroller.clientHeight) / rowHeight) + beyond);
      setRange((before) => (before[0] === from && before[1] === to ? before : [from, Math.max(from, to)]));
    };
    measure();
    scroller.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(scroller);
    observer.observe(element);
    return () => {
      scroller.removeEventListener("scroll", measure);
      observer.disconnect();
    };
  }, [rows, rowHeight]);
  return { list, first: Math.min(first, Math.max(0, rows - 1)), last: Math.min(last, rows) };
}
