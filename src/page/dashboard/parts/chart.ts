import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Amount } from "../../../core/ports/accounts.js";
import { localMinute } from "../../../text/times.js";
import { exactTime } from "../../parts/amounts.js";

export interface ChartData {
  /** UTC ms. */
  from: number;
  to: number;
  stepMs: number;
  amounts: readonly Amount[];
  /** Adds up the amounts from the start, or shows each step by itself. */
  kind: "sum" | "steps";
  /** A dashed line from the start to here, or a level. */
  forecast: { at: number; amount: number } | null;
  level: number | null;
}

const height = 148;

/** Draws into an empty element and follows its width. Returns how to remove it. */
export function drawChart(element: HTMLElement, data: ChartData): () => void {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(name).trim();
  const [accent, quiet, line] = [color("--accent"), color("--quiet"), color("--line")];
  const axis = { stroke: quiet, font: "11px system-ui, sans-serif", ticks: { show: false } };
  const isSum = data.kind === "sum";
  const { times, own, forecast } = seriesOf(data);
  // A bar begins with its step, and the first step began before the run.
  const from = isSum ? data.from : Math.min(data.from, Math.floor(data.from / data.stepMs) * data.stepMs);
  const bars = uPlot.paths.bars?.({ size: [0.8, 12], align: 1 });
  const main: uPlot.Series = {
    stroke: accent,
    width: isSum ? 2 : 0,
    fill: isSum ? `color-mix(in srgb, ${accent} 12%, transparent)` : accent,
    points: { show: false },
    spanGaps: true,
    ...(isSum || bars === undefined ? {} : { paths: bars }),
  };
  const most = Math.max(1, data.level ?? 0, ...own.map((value) => value ?? 0), data.forecast?.amount ?? 0);
  const chart = new uPlot(
    {
      width: Math.max(120, element.clientWidth),
      height,
      legend: { show: false },
      cursor: { show: false },
      padding: [8, 24, 0, 0],
      scales: {
        x: { time: true, range: [from / 1_000, data.to / 1_000] },
        y: { range: [0, most * 1.05] },
      },
      axes: [
        { ...axis, grid: { show: false }, space: 64, size: 26, values: (_, ticks) => labelsOf(ticks) },
        { ...axis, grid: { stroke: line, width: 1 }, size: 44, space: 28 },
      ],
      series: [
        {},
        main,
        { stroke: quiet, width: 1.5, dash: [5, 4], points: { show: false }, spanGaps: true },
      ],
    },
    [times, own, forecast],
    element,
  );
  const observer = new ResizeObserver(() => {
    const width = Math.max(120, element.clientWidth);
    if (width !== chart.width) chart.setSize({ width, height });
  });
  observer.observe(element);
  return () => {
    observer.disconnect();
    chart.destroy();
  };
}

/** Labels of ticks (in seconds), as short as they still differ: the day, the minute or the second. */
function labelsOf(ticks: readonly number[]): string[] {
  const [first = 0, second = first + 60] = ticks;
  const step = second - first;
  return ticks.map((tick) => {
    const minute = localMinute(tick * 1_000);
    if (step >= 86_400) return minute.slice(5, 10);
    return step >= 60 ? minute.slice(11) : exactTime(tick * 1_000).slice(0, 8);
  });
}

type Column = (number | null)[];

function seriesOf({ from, to, amounts, kind, forecast, level, stepMs }: ChartData): {
  times: number[];
  own: Column;
  forecast: Column;
} {
  const own = new Map<number, number>();
  let sum = 0;
  if (kind === "sum") own.set(from, 0);
  for (const { at, amount } of amounts) {
    sum += amount;
    const step = Math.floor(at / stepMs) * stepMs;
    if (kind === "sum") own.set(Math.max(from, Math.min(to, at + stepMs)), sum);
    else own.set(step, (own.get(step) ?? 0) + amount);
  }
  const other = new Map<number, number>();
  if (forecast !== null) other.set(from, 0).set(forecast.at, forecast.amount);
  if (level !== null) other.set(from, level).set(to, level);
  const times = [...new Set([from, to, ...own.keys(), ...other.keys()])].sort((a, b) => a - b);
  return {
    times: times.map((at) => at / 1_000),
    own: times.map((at) => own.get(at) ?? null),
    forecast: times.map((at) => other.get(at) ?? null),
  };
}
