import { availableParallelism } from "node:os";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { type Crashes, type crashed, crashesAt } from "./crash-everywhere.js";
import { type Catch, huntNamed } from "./hunt.js";
import type { Scenario } from "./scenario.js";
import { simulate } from "./simulate.js";
import { type Seeds, type Tally, tally } from "./tally.js";

/** Spreads work over the cores: each piece is asked of one worker, which does it alone and answers. */

interface Asks {
  seeds: Seeds;
  crashes: { nth: number; run: keyof typeof crashed };
  mutant: { name: string; first?: number };
  regression: { name: string; scenario: Scenario };
}

interface Answers {
  seeds: Tally;
  crashes: Crashes;
  mutant: Catch;
  /** What it broke; null when it keeps every promise. */
  regression: { name: string; message: string | null };
}

type Kind = keyof Asks;

export const cores = availableParallelism();

const skills: { [Each in Kind]: (ask: Asks[Each]) => Promise<Answers[Each]> } = {
  seeds: tally,
  crashes: ({ nth, run }) => crashesAt(nth, run),
  mutant: ({ name, first }) => huntNamed(name, first),
  regression: async ({ name, scenario }) => {
    const { violation } = await simulate(scenario);
    return { name, message: violation?.message ?? null };
  },
};

interface Order<Each extends Kind> {
  kind: Each;
  ask: Asks[Each];
}

/** Workers without work: each loads all modules, and V8 compiles what it runs, so they are kept. */
const idle: Worker[] = [];

/** Has all that is asked done, in no certain order; what is not begun after `msMax` is left out. */
export async function spread<Each extends Kind>(
  kind: Each,
  asks: readonly Asks[Each][],
  take: (answer: Answers[Each]) => void,
  msMax = Number.POSITIVE_INFINITY,
): Promise<void> {
  const until = performance.now() + msMax;
  const left = asks.values();
  const next = () => (performance.now() < until ? left.next().value : undefined);
  await Promise.all(
    Array.from({ length: Math.min(cores, asks.length) }, async () => {
      const worker = idle.pop() ?? started();
      worker.ref();
      for (let ask = next(); ask !== undefined; ask = next()) {
        take(await answerOf(worker, { kind, ask }));
      }
      // The process may end without them.
      worker.unref();
      idle.push(worker);
    }),
  );
}

function started(): Worker {
  return new Worker(new URL(import.meta.url), { resourceLimits: { maxYoungGenerationSizeMb: 96 } });
}

function answerOf<Each extends Kind>(worker: Worker, order: Order<Each>): Promise<Answers[Each]> {
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("message", (answer: Answers[Each]) => {
      worker.off("error", reject);
      resolve(answer);
    });
    worker.postMessage(order);
  });
}

async function serve<Each extends Kind>({ kind, ask }: Order<Each>): Promise<void> {
  parentPort?.postMessage(await skills[kind](ask));
}

if (!isMainThread && parentPort !== null) {
  // Refusals are errors that nobody reads the stack of.
  Error.stackTraceLimit = 0;
  parentPort.on("message", (order: Order<Kind>) => void serve(order));
}
