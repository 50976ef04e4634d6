import type { Readable, Writable } from "node:stream";
import type { AlarmClock, Random } from "./clock.js";
import type { Environment } from "./text/environment.js";

/**
 * What a command knows of the machine that it runs on. The real one is made in `system.ts`; tests bring their own, so
 * that commands run inside the test process, side by side, with a clock that is moved by hand.
 */
export interface Machine {
  /** The folder that relative paths start from; absolute. */
  readonly cwd: string;
  /** The environment as the process was given it, the API key included. */
  readonly env: Environment;
  readonly stdin: Readable & { isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly clock: AlarmClock;
  readonly random: Random;
  /**
   * From this call on, the first Ctrl-C, SIGTERM or closed terminal aborts the signal and calls `onFirst`; the second
   * ends the process at once, which is safe because every intent is saved before it is acted on. Before this call, the
   * first one ends the process.
   */
  interrupt(onFirst?: () => void): AbortSignal;
  /** The program and its first argument that start bulkgen once more: Node and the built file. */
  readonly program: readonly [string, string];
  /** The system's list of mounted file systems; null when it has none. Default: read from the system. */
  readonly mounts: () => string | null;
  /** Replaces the test of a folder's locks, which takes two processes: what is wrong with them, or null. */
  readonly locks?: (folder: string) => string | null;
  /** The longer side (px) of what the sandbox makes, instead of each model's own: large media take long to make. */
  readonly mediaSide?: number;
}

export type OutputStream = Writable & { isTTY?: boolean; columns?: number; rows?: number };

/** What a library knows of the machine: no streams, no signals, no arguments. */
export type Host = Pick<Machine, "cwd" | "env" | "clock" | "random" | "mounts">;
