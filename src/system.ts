import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { type AlarmClock, followingClock, type Random } from "./clock.js";
import { exitCode } from "./core/exit.js";
import type { Host, Machine } from "./machine.js";

/** The real clock, timers, randomness, streams, environment and signals: the only file that touches them. */

/** The longest delay that a timer takes; a longer one would fire at once. */
const timerMsMax = 2 ** 31 - 1;
/**
 * How often an alarm compares the clocks (ms): timers stand still while the machine sleeps, and know nothing of the
 * wall clock.
 */
const compareMs = 30_000;
/** The wall clock is corrected by a little all the time; by more than this (ms) it was set. */
const correctionMsMax = 2_000;

export const systemClock: AlarmClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, Math.min(Math.max(0, ms), timerMsMax));
      signal?.addEventListener("abort", end, { once: true });
    }),
  alarm: (at, ring) => {
    const offset = () => Date.now() - performance.now();
    const before = offset();
    const check = () => {
      const left = at - Date.now();
      if (left <= 0 || Math.abs(offset() - before) > correctionMsMax) return ring();
      timer = setTimeout(check, Math.min(left, compareMs));
    };
    let timer = setTimeout(check, Math.max(0, Math.min(at - Date.now(), compareMs)));
    return () => clearTimeout(timer);
  },
};

export const systemRandom: Random = { next: () => Math.random(), uuid: () => randomUUID() };

/** Something for standard output could not be written. */
let resultsLost = false;

/** The machine that this process runs on; `main` is the file that starts bulkgen once more. */
function systemMachine(main: string): Machine {
  // The key is removed from the environment of the process: a crash report of Node lists the whole environment, and
  // every program started from here would inherit it.
  const env = { ...process.env };
  delete process.env["BULKGEN_API_KEY"];
  // A reader that closes the pipe early (`bulkgen models | head`) is no error, and a run continues without its reader. It
  // also continues if the results go to a full disk, but then they are missing.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || resultsLost) return;
    resultsLost = true;
    // The last line may fail once the program has ended.
    if (process.exitCode === 0) process.exitCode = exitCode("crash");
    process.stderr.write(`bulkgen: the results cannot be written to standard output: ${error.message}\n`);
  });
  // A run continues without its log too, which may be on the full disk itself.
  process.stderr.on("error", () => {});
  const { stdin, stdout, stderr } = process;
  return {
    cwd: process.cwd(),
    env,
    stdin,
    stdout,
    stderr,
    clock: followingClock(systemClock),
    random: systemRandom,
    interrupt: interruption,
    program: [process.execPath, main],
    mounts: mountTable,
  };
}

/** The real machine for a program that uses bulkgen as a library. Nothing of its process is changed. */
export function systemHost(): Host {
  // The library gets the key as an argument; what it starts must not inherit one.
  const { BULKGEN_API_KEY: _, ...env } = process.env;
  return {
    cwd: process.cwd(),
    env,
    clock: followingClock(systemClock),
    random: systemRandom,
    mounts: mountTable,
  };
}

/** Runs the program with the arguments of this process, and sets the code that the process ends with. */
export async function runOnSystem(
  program: (argv: readonly string[], machine: Machine) => Promise<number>,
  main: string,
): Promise<void> {
  const code = await program(process.argv.slice(2), systemMachine(main));
  process.exitCode = code === 0 && resultsLost ? exitCode("crash") : code;
}

function interruption(onFirst: () => void = () => {}): AbortSignal {
  const controller = new AbortController();
  // Every request in flight listens to it.
  setMaxListeners(0, controller.signal);
  const hit = () => {
    if (controller.signal.aborted) process.exit(exitCode("interrupted"));
    controller.abort();
    onFirst();
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, hit);
  return controller.signal;
}

/** Linux has the table in a file, macOS prints it. */
export function mountTable(): string | null {
  const path = "/proc/self/mounts";
  if (existsSync(path)) return readFileSync(path, "utf8");
  if (process.platform !== "darwin") return null;
  const { status, stdout } = spawnSync("/sbin/mount", { encoding: "utf8" });
  return status === 0 ? stdout : null;
}
