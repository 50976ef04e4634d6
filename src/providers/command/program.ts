import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Clock } from "../../clock.js";

export interface ProgramCall {
  /** A path, or a name on the PATH. */
  program: string;
  words: readonly string[];
  /** Null for none. */
  stdin: string | null;
  cwd: string;
  env: Readonly<Record<string, string>>;
  clock: Clock;
  timeoutMs: number;
  signal: AbortSignal;
}

export interface ProgramEnd {
  /** Null if a signal ended it. */
  code: number | null;
  signal: NodeJS.Signals | null;
  hasTimedOut: boolean;
  /** The end of what it said on stderr. */
  said: string;
}

/** How much of stderr is kept (bytes). */
const saidBytesMax = 4_096;
/** How long to wait for what is left of stderr after the program has ended (ms): something that it started may hold it open. */
const heldOpenMs = 1_000;

/**
 * Runs a program in a process group of its own, and ends all of the group at its end, at the timeout, or when the signal
 * aborts. What makes itself another group, as daemons do, is not found. Rejects with the signal's reason, or with the system's
 * error if the program cannot be started.
 */
export async function runProgram(call: ProgramCall): Promise<ProgramEnd> {
  call.signal.throwIfAborted();
  const child = spawn(call.program, call.words, {
    cwd: call.cwd,
    env: { ...call.env },
    stdio: [call.stdin === null ? "ignore" : "pipe", "ignore", "pipe"],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const end = () => endGroup(child.pid, () => child.kill("SIGKILL"));
  let said = Buffer.alloc(0);
  child.stderr?.on("data", (piece: Buffer) => {
    said = Buffer.concat([said, piece]).subarray(-saidBytesMax);
  });
  // A program may end without reading all of it.
  child.stdin?.on("error", () => {});
  child.stdin?.end(call.stdin);
  const closed = once(child, "close").catch(() => {});
  const done = new AbortController();
  let hasTimedOut = false;
  call.signal.addEventListener("abort", end, { once: true, signal: done.signal });
  const watch = call.clock.sleep(call.timeoutMs, done.signal).then(() => {
    if (done.signal.aborted) return;
    hasTimedOut = true;
    end();
  });
  try {
    const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
    end();
    await Promise.race([closed, call.clock.sleep(heldOpenMs, done.signal)]);
    call.signal.throwIfAborted();
    return { code, signal, hasTimedOut, said: said.toString() };
  } finally {
    done.abort();
    child.stderr?.destroy();
    await watch;
  }
}

function endGroup(pid: number | undefined, endOne: () => void): void {
  if (pid === undefined) return;
  try {
    if (process.platform === "win32") endOne();
    else process.kill(-pid, "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}
