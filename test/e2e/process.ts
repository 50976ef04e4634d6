import { type ChildProcess, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { searchOutput } from "./leaked-key.js";

/**
 * The built command as people run it: a process of its own, in a fresh folder, with its own home and state folder.
 * Nothing here sleeps: tests wait for a line, a request, a state or an end. The caller removes what is made here.
 */
export const main = resolve("dist", "bin", "bulkgen.js");

/** The longest that any one process may live, in ms. One that is ended for it fails its test. */
export const lifeMsMax = 110_000;

/** Running processes. */
export const children = new Set<ChildProcess>();

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A running process. */
export interface Running {
  child: ChildProcess;
  pid: number;
  stdout(): string;
  stderr(): string;
  /** Resolves when the pattern stands in what was printed; rejects when the process ends without it. */
  prints(pattern: RegExp): Promise<RegExpExecArray>;
  signal(name: NodeJS.Signals): void;
  /** Types on its terminal; only where it was started with one. */
  type(text: string): void;
  ended: Promise<Ended>;
}

/** A fresh folder to work in, and all that a process may leave behind. */
export interface Place {
  /** Holds the workspace, the home and the state folder. */
  root: string;
  /** Where the command is run. */
  folder: string;
  env: Record<string, string>;
  write(name: string, text: string | Uint8Array): void;
  read(name: string): string;
  /** Every file below the root, relative to it. */
  files(): string[];
}

export function makePlace(purpose: string): Place {
  if (!existsSync(main)) throw new Error("the command is not built: run `npm run build` first");
  const root = realpathSync(mkdtempSync(join(tmpdir(), `bulkgen-${purpose}-`)));
  const folder = join(root, "here");
  for (const name of ["here", "home", "state"]) mkdirSync(join(root, name));
  return {
    root,
    folder,
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: join(root, "home"),
      XDG_STATE_HOME: join(root, "state"),
      TZ: "UTC",
      LANG: "C.UTF-8",
    },
    write(name, text) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    },
    read: (name) => readFileSync(join(folder, name), "utf8"),
    files: () =>
      readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1)),
  };
}

export interface Circumstances {
  env?: Record<string, string>;
  cwd?: string;
  /** In place of the usual limit; 0 for none. */
  lifeMs?: number;
}

/** Starts the command. Its standard input is empty, so nobody can be asked. */
export function start(place: Place, args: readonly string[], circumstances: Circumstances = {}): Running {
  return startProcess(process.execPath, [main, ...args], {
    cwd: circumstances.cwd ?? place.folder,
    env: { ...place.env, ...circumstances.env },
    ...(circumstances.lifeMs === undefined ? {} : { lifeMs: circumstances.lifeMs }),
  });
}

/** Runs the real command to its end. For tests in which the process is the point; others use `run`. */
export function spawned(
  place: Place,
  args: readonly string[],
  circumstances?: Circumstances,
): Promise<Ended> {
  return start(place, args, circumstances).ended;
}

export function startProcess(
  file: string,
  args: readonly string[],
  { cwd, env, lifeMs = lifeMsMax }: { cwd: string; env: Record<string, string>; lifeMs?: number },
  input: "ignore" | "pipe" = "ignore",
): Running {
  const child = spawn(file, args, { cwd, env, stdio: [input, "pipe", "pipe"] });
  children.add(child);
  const text = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    const stream = child[name] as Readable;
    stream.setEncoding("utf8");
    stream.on("data", (piece: string) => {
      text[name] += piece;
      for (const look of waiting) look();
    });
  }
  const limit = lifeMs === 0 ? undefined : setTimeout(() => child.kill("SIGKILL"), lifeMs);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(limit);
      children.delete(child);
      searchOutput(args.slice(1).join(" "), text.stdout + text.stderr);
      resolve({ code, signal, ...text });
    });
  });
  return {
    child,
    pid: child.pid ?? 0,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    signal: (name) => child.kill(name),
    type: (typed) => child.stdin?.write(typed),
    ended,
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
}

/** Anything but false, which would be taken for an answer. */
type Answer<Found> = Found extends false ? never : Found;

/** Asks again until the answer is not null. Bounded by the test's own time. */
export async function eventually<Found>(
  ask: () => Promise<Answer<Found> | null> | Answer<Found> | null,
): Promise<Answer<Found>> {
  for (;;) {
    const found = await ask();
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
