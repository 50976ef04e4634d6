import { PassThrough, Readable, Writable } from "node:stream";
import { runCommand } from "../../src/cli/program.js";
import type { AlarmClock } from "../../src/clock.js";
import type { Machine } from "../../src/machine.js";
import { mountTable, systemRandom } from "../../src/system.js";
import { printedBy } from "../documents/printed.js";
import { searchOutput } from "./leaked-key.js";
import { type Ended, main, type Place } from "./process.js";
import { shareThreads } from "./shared-threads.js";
import { skippingClock } from "./skipping-clock.js";

/**
 * Runs commands inside the test process, on a machine made for the test: the same program as the built command, but
 * without starting a process, and by any clock. Worker threads (file checks, sandbox media) still come from `dist`.
 *
 * SQLite drops its locks on a file when the process closes any descriptor of it. So a test must not read a database
 * file with `fs` while a command runs in its workspace; `openSqlite` is fine.
 */
export interface InProcess {
  env?: Record<string, string>;
  cwd?: string;
  /** Controls every wait of the command. Default: real time, of which waits are skipped. */
  clock?: AlarmClock;
  /** The command serves others until it is interrupted: no time is skipped for it alone. */
  serves?: boolean;
  /** What the command reads from its standard input. Default: nothing. */
  stdin?: string;
  /** Its standard input is a terminal, on which `type` types. */
  keyboard?: boolean;
  /** In place of the test of a folder's locks, which takes two processes. Default: they work. */
  locks?: (folder: string) => string | null;
  /** It prints to a terminal of this width. Default: to a pipe. */
  columns?: number;
  /** What the sandbox makes is as large as the models say. Default: small, for it is made, and checked, file by file. */
  fullSize?: boolean;
}

/** The longer side of small media (px). */
const smallSide = 64;

shareThreads();

const underWay = new Set<Started>();

/** A running command. */
export interface Started {
  stdout(): string;
  stderr(): string;
  /** Does what the first Ctrl-C does. */
  interrupt(): void;
  /** Types on its keyboard. */
  type(text: string): void;
  /** Resolves when the pattern is in what was printed; rejects when the command ends without it. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
  ended: Promise<Ended>;
}

/** Starts a command. */
export function started(place: Place, args: readonly string[], how: InProcess = {}): Started {
  const text = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  const stream = (name: "stdout" | "stderr") => {
    const made = new Writable({
      decodeStrings: false,
      write(piece: string | Buffer, _, done) {
        text[name] += piece.toString();
        for (const look of waiting) look();
        done();
      },
    });
    return how.columns === undefined ? made : Object.assign(made, { isTTY: true, columns: how.columns });
  };
  const interrupts = new Set<() => void>();
  const keyboard = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {} });
  const given = Readable.from(how.stdin === undefined ? [] : [Buffer.from(how.stdin)]);
  const machine: Machine = {
    cwd: how.cwd ?? place.folder,
    env: { ...place.env, ...how.env },
    stdin: how.keyboard === true ? keyboard : given,
    stdout: stream("stdout"),
    stderr: stream("stderr"),
    clock: how.clock ?? skippingClock,
    random: systemRandom,
    interrupt(onFirst = () => {}) {
      const controller = new AbortController();
      interrupts.add(() => {
        controller.abort();
        onFirst();
      });
      return controller.signal;
    },
    program: [process.execPath, main],
    mounts: mountTable,
    locks: how.locks ?? (() => null),
    ...(how.fullSize === true ? {} : { mediaSide: smallSide }),
  };
  const command = runCommand(args, machine);
  const skips = how.clock === undefined && how.serves !== true;
  const ended = (skips ? skippingClock.during(command) : command).then((code): Ended => {
    searchOutput(args.join(" "), text.stdout + text.stderr);
    underWay.delete(running);
    printedBy(args, text.stdout);
    return { code, signal: null, ...text };
  });
  const running: Started = {
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    ended,
    interrupt() {
      for (const hit of interrupts) hit();
    },
    type: (typed) => keyboard.write(typed),
    prints: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(text.stdout + text.stderr);
          if (!found) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
        void ended.then((end) => reject(new Error(`ended without ${pattern}: ${JSON.stringify(end)}`)));
      }),
  };
  underWay.add(running);
  return running;
}

/** Interrupts all that are still running, and waits until they have ended. */
export async function endCommands(): Promise<void> {
  const left = [...underWay];
  for (const { interrupt } of left) interrupt();
  await Promise.allSettled(left.map(({ ended }) => ended));
  skippingClock.reset();
}

/** Runs a command to its end. */
export function run(place: Place, args: readonly string[], how?: InProcess): Promise<Ended> {
  return started(place, args, how).ended;
}
