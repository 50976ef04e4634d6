import { expect, test } from "vitest";
import { newPlace } from "./command.js";
import { night } from "./few-machines.js";

const expected = (ms: number) => ({ from: 0.85 * ms, to: 1.15 * ms });

/** `node test/bench/night.mjs` does 1,200 rows. */
test.each([
  { rows: 15, machines: 1 },
  { rows: 30, machines: 3 },
])(
  "$rows rows on $machines machines: none is overdue, the machines are busy, and the end is known",
  async (size) => {
    const times = [20_000, 40_000, 30_000, 25_000, 35_000];
    let job = 0;
    const jobMs = () => times[job++ % times.length] as number;
    const figures = await night(newPlace(), { ...size, jobMs });
    expect(figures).toMatchObject({ code: 0, archived: size.rows, overdue: 0, isGuess: true });
    expect(figures.used).toBeGreaterThan(0.97);
    // What it takes to find out how long the jobs take counts for much among so few.
    expect(figures.requests).toBeLessThan(2.2 * size.rows + 20);
    const inTime = expected(figures.ms);
    expect(figures.plannedAgainMs).toBeGreaterThan(inTime.from);
    expect(figures.plannedAgainMs).toBeLessThan(inTime.to);
    expect(figures.said.length).toBeGreaterThan(0);
    // A job more or less is much among so few.
    for (const { saidMs, tookMs } of figures.said)
      expect(Math.abs(saidMs - tookMs)).toBeLessThan(0.15 * tookMs + Math.max(...times));
  },
);
