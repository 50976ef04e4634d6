import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Launch } from "./commands.js";

/** The longest output that is kept of a command. */
const charactersMax = 64 * 1024 * 1024;

/**
 * Launches commands in the workspace's folder. Each is a process group of its own, so Ctrl-C in the dashboard's terminal
 * does not reach it; it goes on without a reader when the dashboard has ended.
 */
export function launchIn(
  root: string,
  program: readonly [string, string],
  environment: Readonly<Record<string, string | undefined>>,
): Launch {
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
    // A run that goes on does not keep the dashboard's process alive.
    for (const each of [child, child.stdout, child.stderr] as unknown as { unref(): void }[]) each.unref();
    return { stdout: () => text.stdout, stderr: () => text.stderr, ended };
  };
}
