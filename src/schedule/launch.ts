import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Writable } from "node:stream";
import type { Clock } from "../clock.js";
import { exitCode, exitCodes, isRefusal } from "../core/exit.js";
import { type ItemState, wantedItems } from "../core/item.js";
import { credits } from "../core/money.js";
import type { Environment } from "../text/environment.js";
import { shortText } from "../text/terminal.js";
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
  /**
   * True: stdout is read for the summary, and stderr for the reason if there is none. False: both go to the terminal.
   */
  watched: boolean;
  /** A watched run says everything on stderr in JSON, unless its schedule says otherwise. */
  jsonLines?: boolean;
  /** Gets the stderr of a watched run. */
  stderr: Pick<Writable, "write">;
}

/** The longest summary that is read. */
const summaryCharactersMax = 64 * 1024 * 1024;
/** How long to wait for the end of stderr after the process has ended (ms). */
const heldOpenMs = 5_000;
/** How much of the end of stderr is kept, and how much of a message is recorded. */
const saidCharactersMax = 16 * 1024;
const noteCharactersMax = 400;
/** Time until a run that could not start for lack of requests is tried again (ms). */
const againMs = 30 * 60_000;

export function launchScheduledRun(
  { command, words, variables }: ScheduledCommand,
  options: LaunchOptions,
): ScheduledProcess {
  const [file, ...first] = options.program;
  const format =
    options.jsonLines && !words.some((word) => word.startsWith("--log-format")) ? ["--log-format=json"] : [];
  const how = options.watched ? ["--json", "--quiet", ...format] : [];
  const stream = options.watched ? "pipe" : "inherit";
  const child = spawn(file, [...first, command, `--workspace=${options.root}`, ...how, ...words], {
    cwd: options.root,
    env: { ...options.environment, ...variables } as NodeJS.ProcessEnv,
    stdio: ["ignore", stream, stream],
    detached: true,
  });
  let text = "";
  child.stdout?.setEncoding("utf8").on("data", (piece: string) => {
    if (text.length < summaryCharactersMax) text += piece;
  });
  let said = "";
  let unfinished = "";
  child.stderr?.setEncoding("utf8").on("data", (piece: string) => {
    said = (said + piece).slice(-saidCharactersMax);
    // Whole lines, so that they do not mix with those of other runs.
    const end = piece.lastIndexOf("\n") + 1;
    if (end > 0) options.stderr.write(unfinished + piece.slice(0, end));
    unfinished = end > 0 ? piece.slice(end) : unfinished + piece;
  });
  child.stderr?.on("end", () => {
    if (unfinished !== "") options.stderr.write(`${unfinished}\n`);
  });
  const ended = endingOf(child, options.clock).then(
    ([exit, signal]) => endOf({ exit, signal, text, said }, options.clock.now()),
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

/** Its exit code and signal. What a notification command leaves running may hold stderr open for days. */
function endingOf(child: ChildProcess, clock: Clock): Promise<[number | null, string | null]> {
  const closed = new AbortController();
  const close = once(child, "close").finally(() => closed.abort());
  const exit = once(child, "exit").then(async (how) => {
    await clock.sleep(heldOpenMs, closed.signal);
    return how;
  });
  return Promise.race([close, exit]) as Promise<[number | null, string | null]>;
}

interface Ended {
  exit: number | null;
  signal: string | null;
  text: string;
  said: string;
}

/** How a process ended, and what it printed. */
export function endOf({ exit, signal, text, said }: Ended, now: number): ScheduledRunEnd {
  if (exit === null) return { ...nothing, exit, note: `its process was ended by ${signal}` };
  const document = readDocument(text);
  const summary = isSummary(document) ? document : null;
  if (summary === null) {
    const reason = isRefusal(document) ? shortText(document.message, noteCharactersMax) : lastMessage(said);
    const note = reason ?? exitCodes.find(({ code }) => code === exit)?.meaning ?? "ended";
    const resumeAt = exit === exitCode("unfinished") ? now + againMs : null;
    return { ...nothing, exit, note, resumeAt };
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

/** Why a run could not start: the last thing that the program says. */
function lastMessage(said: string): string | undefined {
  const message = said.split("\n").findLast((line) => line.startsWith("bulkgen: "));
  return message && shortText(message.slice("bulkgen: ".length), noteCharactersMax);
}

/** What the process printed on stdout; null if that is no document. */
function readDocument(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A run that could not start has no summary; its document says why. */
function isSummary(document: unknown): document is Summary {
  return typeof document === "object" && document !== null && "counts" in document;
}
