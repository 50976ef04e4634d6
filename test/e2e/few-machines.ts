import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { ComfyUi } from "../upstreams/comfyui.js";
import { run, started } from "./in-process.js";
import type { Place } from "./process.js";
import { skippingClock } from "./skipping-clock.js";

/** A sheet that one or several machines with ComfyUI work on for a night, which is skipped. */

export interface Night {
  rows: number;
  machines: number;
  /** How long a job takes (ms). */
  jobMs: () => number;
}

export interface NightFigures {
  code: number | null;
  archived: number;
  overdue: number;
  requests: number;
  /** How long the run took (ms). */
  ms: number;
  /** The share of the machines' time that was used, of each from its first job to its last. */
  used: number;
  /** By the plan before anything was made, and by a plan of as many rows after it (ms). */
  plannedMs: number;
  plannedAgainMs: number;
  isGuess: boolean;
  /** Of the run under way: items that it had made, and how long it took from then on, as `status` said and really (ms). */
  said: { done: number; saidMs: number; tookMs: number }[];
}

/** When the run is asked for its end: after so many jobs of each machine, and at these shares of all. */
const askedFrom = 4;
const askedAt = [0, 0.1, 0.5, 0.75];

export async function night(at: Place, { rows, machines, jobMs }: Night): Promise<NightFigures> {
  const pool = await Promise.all(Array.from({ length: machines }, () => new ComfyUi().listen()));
  try {
    for (const machine of pool) machine.takes = { clock: skippingClock, ms: jobMs };
    const addresses = pool.map(({ address }) => JSON.stringify(address)).join(", ");
    at.write(
      "models.yaml",
      `providers: { house: { kind: comfyui, base_url: [${addresses}] } }
models:
  - { key: style, provider: house, category: image, credits: 1, workflow: flow.json, bind: { prompt: 6.text, seed: 3.seed } }
`,
    );
    copyFileSync("test/providers/workflows/text-to-image.json", join(at.folder, "flow.json"));
    at.write("bulkgen.config.yaml", "models: models.yaml\n");
    const sheet = (letter: string) =>
      `id,prompt,model\n${Array.from({ length: rows }, (_, n) => `${letter}${n},A kite ${letter}${n},style\n`).join("")}`;
    at.write("night.csv", sheet("a"));
    at.write("next.csv", sheet("b"));
    await run(at, ["trust", "--models", "models.yaml", "--yes"]);
    const plan = async (name: string) =>
      JSON.parse((await run(at, ["plan", name, "--json"])).stdout).requests.forecast;
    const planned = await plan("night.csv");
    const said: { at: number; endsAt: number; done: number }[] = [];
    const running = started(at, ["run", "night.csv", "--yes", "--json"]);
    const isOver = new AbortController();
    const told = (async () => {
      // Loading the command takes real time.
      while (pool.every(({ work }) => work.from === 0) && !isOver.signal.aborted)
        await skippingClock.sleep(1_000, isOver.signal);
      for (const share of askedAt) {
        const enough = Math.max(askedFrom * machines, share * rows);
        const done = () => sum(pool.map(({ ledger }) => ledger.length)) - machines;
        while (done() < enough && !isOver.signal.aborted) await skippingClock.sleep(5_000, isOver.signal);
        // The run knows the end by what it has seen, which is later than the machines had it done.
        while (!isOver.signal.aborted) {
          const status = JSON.parse((await run(at, ["status", "--json"])).stdout);
          const { archived } = status.counts;
          if (archived >= enough && status.endsAt !== null) {
            said.push({ at: skippingClock.now(), endsAt: Date.parse(status.endsAt), done: archived });
            break;
          }
          await skippingClock.sleep(5_000, isOver.signal);
        }
      }
    })();
    const ended = await running.ended;
    const to = skippingClock.now();
    isOver.abort();
    await told;
    const { counts, requests, elapsedMs } = JSON.parse(ended.stdout);
    const spans = pool.map(({ work }) => work.to - work.from);
    const again = await plan("next.csv");
    return {
      code: ended.code,
      archived: counts.archived,
      overdue: counts.overdue,
      requests,
      ms: elapsedMs,
      used: sum(pool.map(({ work }) => work.ms)) / sum(spans),
      plannedMs: planned.ms,
      plannedAgainMs: again.ms,
      isGuess: planned.guessed !== undefined,
      said: said.map(({ at: saidAt, endsAt, done }) => ({
        done,
        tookMs: to - saidAt,
        saidMs: endsAt - saidAt,
      })),
    };
  } finally {
    for (const machine of pool) await machine.stop();
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
