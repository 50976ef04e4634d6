import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../clock.js";
import { type ExitName, exitCode } from "../core/exit.js";
import { showCredits } from "../core/money.js";
import { shortText, terminalText } from "../core/terminal-text.js";
import type { RunFacts } from "../report/summary.js";
import { exitOf } from "./ending.js";

/** Milliseconds that the command may take. */
const commandMsMax = 30_000;
const summaryCharactersMax = 500;

export interface Notice {
  /** The user's command line, for the shell. Undefined runs the work alone. */
  command: string | undefined;
  environment: Readonly<Record<string, string | undefined>>;
  clock: Clock;
  warn(line: string): void;
}

/**
 * Does the work of a run, then runs the user's command once with what came of it, also when the run could not begin:
 * a nightly job with a revoked key is what somebody has to hear of. By then the workspace is free again. Returns or
 * throws what the work did; the command changes nothing about that.
 */
export async function noticed(
  notice: Notice,
  work: (told: (facts: RunFacts) => void) => Promise<ExitName>,
): Promise<ExitName> {
  const { command } = notice;
  if (command === undefined) return work(() => {});
  let facts: RunFacts | null = null;
  try {
    const exit = await work((told) => {
      facts = told;
    });
    await runCommand(command, endFacts(exit, facts, ""), notice);
    return exit;
  } catch (error) {
    const exit = exitOf(error);
    // Nothing to resume is no news.
    if (exit !== "done")
      await runCommand(command, endFacts(exit, facts, String((error as Error).message)), notice);
    throw error;
  }
}

/** What the command finds in its environment: text on one line each; empty is what is not known. */
function endFacts(exit: ExitName, facts: RunFacts | null, message: string): Record<string, string> {
  const counts = facts?.counts ?? {};
  const count = (state: keyof typeof counts) => (facts ? String(counts[state] ?? 0) : "");
  const all = Object.values(counts).reduce((sum, number) => sum + number, 0) - (counts.dropped ?? 0);
  return {
    BULKGEN_EXIT: String(exitCode(exit)),
    BULKGEN_EXIT_NAME: exit,
    BULKGEN_SUMMARY: shortText(facts ? summary(exit, facts, all) : message, summaryCharactersMax),
    BULKGEN_RUN: facts ? String(facts.run) : "",
    BULKGEN_JOB: terminalText(facts?.job ?? ""),
    BULKGEN_ITEMS: facts ? String(all) : "",
    BULKGEN_ARCHIVED: count("archived"),
    BULKGEN_FAILED: count("failed"),
    BULKGEN_HELD: count("held"),
    BULKGEN_CREDITS_SPENT: facts ? showCredits(facts.spent) : "",
    BULKGEN_CREDITS_LEFT: facts?.left == null ? "" : showCredits(facts.left),
    BULKGEN_FOLDER: facts?.folder ?? "",
    BULKGEN_NEXT: terminalText(facts?.nextStep ?? ""),
  };
}

function summary(exit: ExitName, facts: RunFacts, all: number): string {
  const { counts, job, run, spent } = facts;
  const others = [
    counts.failed ? `, ${counts.failed} failed` : "",
    counts.held ? `, ${counts.held} held` : "",
  ].join("");
  return `${job}, run ${run}: ${counts.archived ?? 0} of ${all} archived${others}, ${showCredits(spent)} credits spent (${exit})`;
}

/** Runs the command in a process group of its own, so that all of it can be ended. Never throws. */
async function runCommand(command: string, facts: Record<string, string>, notice: Notice): Promise<void> {
  const { BULKGEN_API_KEY: _, ...environment } = notice.environment;
  const over = new AbortController();
  try {
    const child = spawn("/bin/sh", ["-c", command], {
      env: { ...environment, ...facts },
      // stdout belongs to the results of the run.
      stdio: ["ignore", 2, 2],
      detached: true,
    });
    let late = false;
    void notice.clock.sleep(commandMsMax, over.signal).then(() => {
      if (over.signal.aborted || child.pid === undefined) return;
      late = true;
      process.kill(-child.pid, "SIGKILL");
    });
    const [code, signal] = await once(child, "exit");
    if (late) notice.warn(`--notify-command did not end within ${commandMsMax / 1_000} s and was stopped`);
    else if (code !== 0)
      notice.warn(`--notify-command ended with ${signal ?? code}${code === 127 ? " (not found)" : ""}`);
  } catch (error) {
    notice.warn(`--notify-command could not be started: ${(error as Error).message}`);
  } finally {
    over.abort();
  }
}
