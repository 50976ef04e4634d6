import { spawn } from "node:child_process";
import { once } from "node:events";
import { z } from "zod";
import type { Environment } from "./text/environment.js";
import { shellWord } from "./text/shell.js";

/** Starts a bulkgen command, given by its words, in a process of its own. */
export type Launch = (words: readonly string[]) => LaunchedCommand;

export interface LaunchedCommand {
  /** What it has printed so far. */
  stdout(): string;
  stderr(): string;
  /** The exit code; null if a signal ended it, or it could not be started. */
  ended: Promise<number | null>;
}

/** What a person or an agent may say as a word of a command: one that begins with a dash would be taken for a flag. */
export const word = z
  .string()
  .min(1)
  .max(1_000)
  .regex(/^[^-\0][^\0]*$/, "expected text that does not begin with a dash");
/** What a person or an agent may say as the value of a flag, which may begin with a dash. */
export const text = z
  .string()
  .max(100_000)
  .regex(/^[^\0]*$/, "expected text without NUL characters");

/** How a sheet is read. */
export interface SheetChoices {
  model?: string;
  prompt?: string;
  params?: Record<string, string>;
  edition?: string;
  skipInvalid?: boolean;
  /** Leave out rows that look like headings or totals. */
  skipHeadings?: boolean;
}

/** How a sheet is read, as agents say it: some write a seed as a number. */
export type FlagChoices = Omit<SheetChoices, "params"> & {
  params?: Record<string, string | number | boolean>;
};

/** The flags for it. Values are written as `--flag=value`, so that none is taken for a flag. */
export function sheetFlags({
  model,
  prompt,
  params = {},
  edition,
  skipInvalid,
  skipHeadings,
}: FlagChoices): string[] {
  return [
    ...(model ? [`--model=${model}`] : []),
    ...(prompt ? [`--prompt=${prompt}`] : []),
    ...Object.entries(params).map(([key, value]) => `--param=${key}=${value}`),
    ...(edition ? [`--edition=${edition}`] : []),
    ...(skipInvalid ? ["--skip-invalid"] : []),
    ...(skipHeadings ? ["--skip-headings"] : []),
  ];
}

/** The command as it would be typed in the workspace. */
export function lineOf(words: readonly string[]): string {
  return ["bulkgen", ...words].map(shellWord).join(" ");
}

/** The longest output that is kept of a command. */
const charactersMax = 64 * 1024 * 1024;

/**
 * Launches commands in the workspace's folder. Each is a process group of its own, so Ctrl-C in the terminal of the program
 * that started it does not reach it; it goes on without a reader when that program has ended.
 */
export function launchIn(root: string, program: readonly [string, string], environment: Environment): Launch {
  const [file, main] = program;
  return (words) => {
    const child = spawn(file, [main, ...words], {
      cwd: root,
      env: environment as NodeJS.ProcessEnv,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const text = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (piece: string) => {
        if (text[name].length < charactersMax) text[name] += piece;
      });
    const ended = once(child, "close").then(
      ([exit]) => exit as number | null,
      (error: Error) => {
        text.stderr += `its process could not be started: ${error.message}`;
        return null;
      },
    );
    // A run that goes on does not keep the process that started it alive.
    for (const each of [child, child.stdout, child.stderr] as unknown as { unref(): void }[]) each.unref();
    return { stdout: () => text.stdout, stderr: () => text.stderr, ended };
  };
}
