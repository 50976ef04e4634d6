import { rmSync } from "node:fs";
import { type NightFigures, night } from "../../e2e/few-machines.js";
import { makePlace } from "../../e2e/process.js";

/**
 * A sheet of 1,200 rows on one ComfyUI and on a pool of three, 30 s each, in virtual time: the command, its service with the
 * models of a file, and stand-ins for the machines. `--rows N`, `--short`; `--varied` for jobs of 20 to 40 s.
 */
const at = process.argv.indexOf("--rows");
const rows = at < 0 ? (process.argv.includes("--short") ? 60 : 1_200) : Number(process.argv[at + 1]);

const times = process.argv.includes("--varied") ? [20_000, 40_000, 30_000, 25_000, 35_000] : [30_000];

for (const machines of [1, 3]) {
  const place = makePlace("night");
  let job = 0;
  const jobMs = () => times[job++ % times.length] as number;
  try {
    report(machines, await night(place, { rows, machines, jobMs }));
  } finally {
    rmSync(place.root, { recursive: true, force: true });
  }
}

function report(machines: number, figures: NightFigures): void {
  const { code, archived, overdue, requests, ms, used, plannedMs, plannedAgainMs, said } = figures;
  const off = (told: number, took: number) => `${((100 * (told - took)) / took).toFixed(1)} %`;
  console.log(
    [
      `${rows} rows on ${machines} ${machines === 1 ? "machine" : "machines"}: exit ${code}, ${archived} archived, ${overdue} overdue`,
      `  it took ${(ms / 3_600_000).toFixed(2)} h; the machines worked ${(100 * used).toFixed(1)} % of it`,
      `  ${(requests / rows).toFixed(3)} requests an item`,
      `  the plan was off by ${off(plannedMs, ms)} without history, by ${off(plannedAgainMs, ms)} with it`,
      ...said.map(
        ({ done, saidMs, tookMs }) => `  after ${done} items, status was off by ${off(saidMs, tookMs)}`,
      ),
    ].join("\n"),
  );
}
