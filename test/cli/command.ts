import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

interface Change {
  env?: Record<string, string>;
  cwd?: string;
}

/** A folder of its own for one test, with a home and a state folder, in which the built command is run. */
export function place(name: string) {
  const folder = mkdtempSync(join(tmpdir(), `bulkgen-${name}-`));
  const start = (args: readonly string[], { env = {}, cwd = folder }: Change = {}) => {
    const own = { HOME: join(folder, "home"), XDG_STATE_HOME: join(folder, "state") };
    const child = spawn(process.execPath, [main, ...args], {
      cwd,
      env: { PATH: process.env["PATH"] ?? "", ...own, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return { child, ended: ending(child) };
  };
  return {
    folder,
    start,
    run: (args: readonly string[], change?: Change): Promise<Ended> => start(args, change).ended,
  };
}

async function ending(child: ChildProcessByStdio<null, Readable, Readable>): Promise<Ended> {
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    said.stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    said.stderr += chunk;
  });
  const [code] = await once(child, "close");
  return { code, ...said };
}

/** The files below a folder that hold a text. */
export function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
    const path = join(folder, name);
    return statSync(path).isFile() && readFileSync(path).includes(text);
  });
}
