import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Environment } from "./text/environment.js";

/** Variables that are meant for this process: a bulkgen that a user's command starts is not the scheduled run. */
export const ownVariables = {
  key: "BULKGEN_API_KEY",
  schedule: "BULKGEN_SCHEDULED_BY",
  due: "BULKGEN_SCHEDULED_FOR",
} as const;

export interface ShellCall {
  command: string;
  cwd: string;
  /** The program's own environment. The command gets it without `ownVariables`. */
  environment: Environment;
  /** Variables that the command gets besides. */
  facts: Readonly<Record<string, string>>;
  /** Ends the command and all that it started. */
  signal: AbortSignal;
  /** What of its output is wanted; the rest goes to the program's stderr, because stdout belongs to results. */
  reads?: "stdout" | "both";
}

/** What went wrong in a few words, or null, and the end of what it printed if that was wanted. */
export interface ShellResult {
  trouble: string | null;
  printed: string;
  /** The exit code; null if a signal ended it, or it could not be started. */
  code: number | null;
}

const printedMax = 10_000;

/** Runs a user's command in a process group of its own, so that all of it can be ended. Never rejects. */
export async function runShell(call: ShellCall): Promise<ShellResult> {
  const environment = { ...call.environment };
  for (const name of Object.values(ownVariables)) delete environment[name];
  let printed = "";
  try {
    const child = spawn("/bin/sh", ["-c", call.command], {
      cwd: call.cwd,
      env: { ...environment, ...call.facts },
      stdio: ["ignore", call.reads === undefined ? 2 : "pipe", call.reads === "both" ? "pipe" : 2],
      detached: true,
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        printed = (printed + text).slice(-printedMax);
      });
    const kill = () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended. What it started in another session may still hold its output open.
      }
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    if (call.signal.aborted) kill();
    call.signal.addEventListener("abort", kill, { once: true });
    const [code, by] = await once(child, call.reads === undefined ? "exit" : "close");
    call.signal.removeEventListener("abort", kill);
    return {
      trouble: call.signal.aborted ? "did not end in time and was stopped" : troubleOf(code, by),
      printed,
      code,
    };
  } catch (error) {
    return { trouble: `could not be started: ${(error as Error).message}`, printed, code: null };
  }
}

function troubleOf(code: number | null, by: string | null): string | null {
  return code === 0 ? null : `ended with ${by ?? code}${code === 127 ? " (not found)" : ""}`;
}
