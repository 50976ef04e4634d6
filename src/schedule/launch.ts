import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../clock.js";
import { exitCode, exitCodes } from "../core/exit.js";
import { type ItemState, wantedItems } from "../core/item.js";
import { credits } from "../core/money.js";
import type { Environment } from "../text/environment.js";
import type { ScheduledProcess } from "./daemon.js";
import type { ScheduledCommand, ScheduledRunEnd } from "./scheduled-run.js";

/**
 * Each scheduled run is a process of its own, so a crash of it does not end the daemon. It has its own process group
 * too: Ctrl-C reaches it once, from the daemon.
 */
export interface LaunchOptions {
  /** The program and its first words: `node …/main.js`. */
  program: readonly [string, ...string[]];
  /** The workspace. */
  root: string;
  environment: Environment;
  clock: Clock;
  /** True: stdout is read for the summary. False: it goes to the terminal. */
  watched: boolean;
}

/** The longest summary that is read. */
const summaryCharactersMax = 64 * 1024 * 1024;
/** Time until a run that could not start for lack of requests is tried again (ms). */
const againMs = 30 * 60_000;

export function launchScheduledRun(
  { command, words, variables }: ScheduledCommand,
  options: LaunchOptions,
): ScheduledProcess {
  const [file, ...first] = options.program;
  const how = options.watched ? ["--json", "--quiet"] : [];
  const child = spawn(file, [...first, command, `--workspace=${options.root}`, ...how, ...words], {
    cwd: options.root,
    env: { ...options.environment, ...variables } as NodeJS.ProcessEnv,
    stdio: ["ignore", options.watched ? "pipe" : "inherit", "inherit"],
    detached: true,
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (piece: string) => {
    if (text.length < summaryCharactersMax) text += piece;
  });
  const ended = once(child, "close").then(
    ([exit, signal]) => endOf(exit as number | null, signal as string | null, text, options.clock.now()),
    (error: Error) => ({
      ...nothing,
      exit: null,
      note: `its process could not be started: ${error.message}`,
    }),
  );
  return { ended, stop: () => child.kill("SIGTERM") };
}

const nothing = { run: null, credits: null, archived: null, failed: null, held: null, resumeAt: null };

interface Summary {
  run: number;
  counts: Partial<Record<ItemState, number>>;
  credits: { spent: number };
  resumeAt: string | null;
}

function endOf(exit: number | null, signal: string | null, text: string, now: number): ScheduledRunEnd {
  if (exit === null) return { ...nothing, exit, note: `its process was ended by ${signal}` };
  const summary = readSummary(text);
  const meaning = exitCodes.find(({ code }) => code === exit)?.meaning ?? "ended";
  if (summary === null) {
    return {
      ...nothing,
      exit,
      note: meaning,
      resumeAt: exit === exitCode("unfinished") ? now + againMs : null,
    };
  }
  const { archived = 0, failed = 0, held = 0 } = summary.counts;
  const all = wantedItems(summary.counts);
  return {
    exit,
    note: `${archived} of ${all} archived${failed ? `, ${failed} failed` : ""}${held ? `, ${held} held` : ""}`,
    run: summary.run,
    credits: credits(summary.credits.spent),
    archived,
    failed,
    held,
    resumeAt: summary.resumeAt === null ? null : Date.parse(summary.resumeAt),
  };
}

/** Null for a run that could not start: it has no summary. */
function readSummary(text: string): Summary | null {
  try {
    return JSON.parse(text) as Summary;
  } catch {
    return null;
  }
}
