import { useEffect, useRef, useState } from "preact/hooks";
import type { ChartData } from "./chart.js";

/** A chart; the code that draws it is loaded when the first one is shown. */
export function Chart({ data, label, words }: { data: ChartData; label: string; words: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [isMissing, setMissing] = useState(false);
  // It is drawn again only if it would look different.
  const key = JSON.stringify(data);
  // The key stands for the data.
  useEffect(() => {
    let isGone = false;
    let remove: () => void = () => undefined;
    import("./chart.js").then(
      ({ drawChart }) => {
        if (!isGone && place.current !== null) remove = drawChart(place.current, data);
      },
      () => setMissing(true),
    );
    return () => {
      isGone = true;
      remove();
    };
  }, [key]);
  return (
    <figure class="chart">
      <figcaption>
        <span>{label}</span>
        <b>{words}</b>
      </figcaption>
      <div ref={place} class="plot" role="img" aria-label={`${label}: ${words}`} />
      {isMissing && <p class="quiet">The chart cannot be loaded.</p>}
    </figure>
  );
}
