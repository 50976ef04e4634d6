import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Notification } from "./facts.js";

/** What the command finds in its environment: text on one line each; empty is what is not known. */
function environmentOf(facts: Notification): Record<string, string> {
  const text = (value: string | number | null) => (value === null ? "" : String(value));
  return {
    BULKGEN_EVENT: facts.event,
    BULKGEN_EXIT: text(facts.exit),
    BULKGEN_EXIT_NAME: facts.exit === null ? "" : facts.event,
    BULKGEN_SUMMARY: facts.summary,
    BULKGEN_SCHEDULE: text(facts.schedule),
    BULKGEN_DUE: text(facts.due),
    BULKGEN_RUN: text(facts.run),
    BULKGEN_JOB: text(facts.job),
    BULKGEN_ITEMS: text(facts.items),
    BULKGEN_ARCHIVED: text(facts.archived),
    BULKGEN_FAILED: text(facts.failed),
    BULKGEN_HELD: text(facts.held),
    BULKGEN_CREDITS_SPENT: text(facts.creditsSpent),
    BULKGEN_CREDITS_LEFT: text(facts.creditsLeft),
    BULKGEN_FOLDER: text(facts.folder),
    BULKGEN_NEXT: text(facts.next),
  };
}

/** Environment and folder of the command. */
interface Surroundings {
  environment: Readonly<Record<string, string | undefined>>;
  cwd?: string;
}

/**
 * Runs the command in a process group of its own, so that all of it can be ended. Returns what went wrong in a few
 * words, or null.
 */
export async function runCommand(
  command: string,
  facts: Notification,
  { environment: given, cwd = "." }: Surroundings,
  signal: AbortSignal,
): Promise<string | null> {
  const { BULKGEN_API_KEY: _, ...environment } = given;
  try {
    const child = spawn("/bin/sh", ["-c", command], {
      cwd,
      env: { ...environment, ...environmentOf(facts) },
      // stdout belongs to the results of the run.
      stdio: ["ignore", 2, 2],
      detached: true,
    });
    const kill = () => {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    };
    signal.addEventListener("abort", kill, { once: true });
    const [code, by] = await once(child, "exit");
    signal.removeEventListener("abort", kill);
    if (signal.aborted) return "did not end in time and was stopped";
    if (code === 0) return null;
    return `ended with ${by ?? code}${code === 127 ? " (not found)" : ""}`;
  } catch (error) {
    return `could not be started: ${(error as Error).message}`;
  }
}
