import { coverage } from "./coverage.js";
import { cores, spread } from "./crew.js";
import { type Drawn, drawn } from "./drawn.js";
import type { Regression } from "./regressions.js";
import type { FaultKind } from "./scenario.js";
import { shrink } from "./shrink.js";
import { addTo, emptyTally, type Tally } from "./tally.js";

export interface CampaignOptions extends Drawn {
  /** First seed. */
  first: number;
  count: number;
  /** Milliseconds after which no further seed is begun. */
  msMax: number;
}

export interface Campaign {
  broken: Regression[];
  /** Pairs of fault and state that are possible and did not occur. */
  missing: readonly string[];
  lines: string[];
}

/** Failing seeds that are made smaller; more of them are counted only. */
const shrunkMax = 12;
/** Seeds that a core is handed at once. */
const portion = 20;
/** After so many runs a campaign says how far it is: it may be stopped before its end. */
const progressEach = 1_000;

/** Runs many seeds, and reports what they reached and which of them broke a promise. */
export async function campaign({ first, count, msMax, ...workload }: CampaignOptions): Promise<Campaign> {
  const sum = emptyTally();
  const portions = Array.from({ length: Math.ceil(count / portion) }, (_, index) => ({
    first: first + index * portion,
    count: Math.min(portion, count - index * portion),
    ...workload,
  }));
  const began = performance.now();
  const before = process.cpuUsage();
  await spread(
    "seeds",
    portions,
    (tally) => {
      addTo(sum, tally);
      if (sum.runs % progressEach === 0)
        console.error(`${sum.runs} of ${count} runs, ${sum.failures.length} violations`);
      for (const { seed, message } of tally.failures) console.error(`seed ${seed}: ${message.slice(0, 300)}`);
    },
    msMax,
  );
  const speed = speedOf(sum, performance.now() - began, process.cpuUsage(before));
  const broken: Regression[] = [];
  const failures = sum.failures.toSorted((a, b) => a.seed - b.seed);
  for (const { seed, promise, message } of failures.slice(0, shrunkMax)) {
    const scenario = await shrink(drawn(seed, workload), promise);
    broken.push({ promise, message, scenario });
  }
  const { lines, missing } = coverageOf(sum, workload);
  const seeds = failures.map(({ seed }) => seed).join(", ");
  return {
    broken,
    missing,
    lines: [
      `${sum.runs} runs from seed ${first}, ${sum.effects} effects: ${speed}`,
      endedLine(sum),
      ...lines,
      `${failures.length} violations${failures.length > 0 ? `: seeds ${seeds}` : ""}`,
    ],
  };
}

function coverageOf(sum: Tally, { isFleet, isServed }: Drawn): ReturnType<typeof coverage> {
  if (isFleet) return { lines: fleetLines(sum), missing: [] };
  if (isServed) return { lines: servedLines(sum), missing: [] };
  return coverage(sum.faults, sum.reached);
}

/** What happened to the service of a models file and at its providers. */
function servedLines({ served, failures }: Tally): string[] {
  const { paidRequests, repliesLost, held } = served;
  const twice = failures.filter(({ promise }) => promise === "P2").length;
  return [
    `${served.serviceCrashes} times the service and ${served.commandCrashes} times the command ended`,
    `${served.executions} executions that cost money, ${served.programs} of programs; ${served.answersLost} answers of providers lost`,
    `${served.unknown} times a job was in doubt, ${served.settled} of them ended by a person, ` +
      `who allowed ${served.allowed} executions beside an earlier one`,
    `${repliesLost} of ${paidRequests} answers to paid requests lost: ${held} items held, ${twice} executed twice`,
  ];
}

/** What happened to the hosts of a fleet. */
function fleetLines({ fleet, faults }: Tally): string[] {
  const { runsKilled, workersKilled, takeOvers, handedOut, redelivered, refused } = fleet;
  const count = (kind: FaultKind) => faults.get(kind) ?? 0;
  return [
    `${runsKilled} processes with the run and ${workersKilled} others killed, ${takeOvers} times a worker went on with the run`,
    `${handedOut} downloads taken, ${redelivered} of them again, ${refused} outcomes refused`,
    `${count("stands-still")} processes stopped for a while, ${count("lost-answer")} answers of the database lost, ` +
      `${count("database-cut")} hosts cut off from it, ${count("queue-dropped")} times the queue dropped, ${count("worker-stopped")} workers told to end`,
  ];
}

/** How the items ended: what is held is left for a person to decide. */
function endedLine({ ended }: Tally): string {
  const byCount = [...ended].toSorted(([, a], [, b]) => b - a);
  const items = byCount.reduce((sum, [, count]) => sum + count, 0);
  return `${items} items: ${byCount.map(([state, count]) => `${count} ${state}`).join(", ")}`;
}

/** By the clock, and by the time that the cores spent on it: other work may run on the same machine. */
function speedOf({ runs }: Tally, ms: number, { user, system }: NodeJS.CpuUsage): string {
  const each = Math.round(runs / ((user + system) / 60e6));
  return `${Math.round(runs / (ms / 60_000))} a minute on ${cores} cores, ${each} a minute of one core's time`;
}
