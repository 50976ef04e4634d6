import { posix } from "node:path";
import { type Finding, finding, type Import, importsOf, type SourceFile } from "./syntax.js";

/** The rooms of `src/` and their ranks: a room imports only rooms of a lower rank, and itself. */
export const ranks: Readonly<Record<string, number>> = {
  api: 0,
  text: 0,
  proxy: 0,
  "sqlite.ts": 0,
  "clock.ts": 0,
  "package-file.ts": 0,
  "encoding.ts": 0,
  "whole-file.ts": 0,
  "machine.ts": 1,
  "shell.ts": 1,
  "launch.ts": 1,
  bucket: 1,
  core: 1,
  manifest: 2,
  documents: 3,
  store: 4,
  client: 4,
  archive: 4,
  publish: 4,
  trust: 4,
  plan: 5,
  run: 5,
  fleet: 5,
  workspace: 6,
  job: 7,
  options: 8,
  upkeep: 8,
  report: 9,
  notify: 9,
  schedule: 9,
  dashboard: 10,
  mcp: 10,
  page: 11,
  library: 11,
  cli: 12,
  "index.ts": 12,
  "system.ts": 12,
};

/** The sub-folders of a room, each importing only those before it; "." is the room's own folder. */
export const folders: Readonly<Record<string, readonly string[]>> = {
  core: [".", "quota", "charges", "pace", "next", "ports"],
  manifest: ["shape", "formats", "job-file", "templates", "."],
  store: ["draft", ".", "workspace", "accounts", "browse", "postgres"],
  archive: ["disk", "check", "download", "."],
  run: ["gate", "receipts", "."],
  workspace: [".", "takes", "state-folder"],
  job: ["paid", "orders", "after", "run"],
  upkeep: ["rebuild", "doctor", "archive"],
  report: [".", "gallery"],
  page: ["parts", "gallery", "dashboard", "reference", "service", "serve"],
  cli: ["settings", "output", "commands", "."],
  service: [
    "models",
    "inputs",
    "state",
    "answers",
    "limiter",
    "world",
    "http",
    "admin",
    "reference",
    "page",
    ".",
  ],
  sandbox: ["catalogue", "faults", "studio", "."],
  providers: [".", "http", "comfyui", "command", "template"],
  serve: ["models", "works", ".", "page"],
};

/**
 * The service, the sandbox, which is that service with invented models, the providers, which do its jobs for real, and what serves
 * both stand aside: their limiter and their ledger share no code with core, or a bug would cancel out. The service knows neither
 * sandbox nor providers, and they do not know it.
 */
const aside: Readonly<Record<string, readonly string[]>> = {
  service: ["api", "sqlite.ts", "clock.ts", "package-file.ts"],
  sandbox: ["api", "sqlite.ts", "clock.ts", "package-file.ts", "service"],
  providers: ["api", "clock.ts", "package-file.ts", "proxy", "text", "whole-file.ts"],
  serve: [
    "api",
    "sqlite.ts",
    "clock.ts",
    "package-file.ts",
    "proxy",
    "text",
    "whole-file.ts",
    "service",
    "providers",
  ],
};

/** What may be imported although its rank is not lower: only the outermost rooms know the real clock and the sandbox. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  cli: ["system.ts", "sandbox", "service", "providers", "serve"],
  library: ["sandbox", "service", "serve"],
  "index.ts": ["system.ts"],
};

/** Rooms that decide and never act. */
const pureRooms = ["api", "clock.ts", "core", "plan"];
const acting =
  /^(node:)?(fs|net|tls|http|http2|https|dgram|dns|child_process|worker_threads|cluster|readline|sqlite)(\/|$)|^(undici|better-sqlite3.*)$/;

export function checkRanks(files: readonly SourceFile[]): Finding[] {
  return files
    .filter((file) => file.path.startsWith("src/"))
    .flatMap((file) =>
      importsOf(file).flatMap((found) => {
        const reason = objection(file, found);
        return reason === undefined
          ? []
          : [finding(file, found.start, `imports ${found.from ?? "a computed name"}: ${reason}`)];
      }),
    );
}

function objection(file: SourceFile, { from }: Import): string | undefined {
  const room = roomOf(file.path);
  if (aside[room] === undefined && ranks[room] === undefined) return `the room ${room} has no rank`;
  if (from === null) return "what is loaded must be readable in the source";
  // What is built for a browser is sent or written as it is, and never called.
  if (from.startsWith("dist/page/")) return undefined;
  const isCompiled = from.startsWith("dist/");
  if (!isCompiled && !from.startsWith(".")) {
    const acts = pureRooms.includes(room) && acting.test(from);
    return acts ? `${room} decides and never acts` : undefined;
  }
  const path = isCompiled ? sourceOf(from) : posix.join(posix.dirname(file.path), from);
  const target = path.replace(/\.js$/, ".ts");
  if (target === "package.json") return undefined;
  if (!target.startsWith("src/")) return "sources import nothing from outside src";
  return roomObjection(room, roomOf(target)) ?? folderObjection(room, file.path, target);
}

/** Why one sub-folder of a room may not import from another. Folders below a sub-folder count as part of it. */
function folderObjection(room: string, path: string, target: string): string | undefined {
  if (roomOf(target) !== room) return undefined;
  const [own, other] = [folderOf(path), folderOf(target)];
  const order = folders[room] ?? ["."];
  for (const folder of [own, other])
    if (!order.includes(folder)) return `the folder ${folder} of ${room} has no place in its order`;
  return order.indexOf(other) <= order.indexOf(own)
    ? undefined
    : `in ${room}, ${own} comes before ${other} and does not import from it`;
}

function folderOf(path: string): string {
  const [, , folder, file] = path.split("/");
  return file === undefined ? "." : (folder ?? ".");
}

/** A worker thread cannot load TypeScript, so sources may name their own compiled form. What is bundled is the command. */
function sourceOf(compiled: string): string {
  return compiled.startsWith("dist/bin/") ? "src/cli/main.ts" : compiled.replace(/^dist\//, "src/");
}

function roomObjection(room: string, target: string): string | undefined {
  if (room === target || exceptions[room]?.includes(target)) return undefined;
  const allowed = aside[room];
  if (allowed !== undefined)
    return allowed.includes(target) ? undefined : `the ${room} imports only ${allowed.join(", ")}`;
  if (aside[target] !== undefined) return `only cli and library know the ${target}`;
  if (pureRooms.includes(room) && target === "sqlite.ts") return `${room} decides and never acts`;
  const [own, other] = [ranks[room], ranks[target]];
  if (own === undefined || other === undefined)
    return `the room ${own === undefined ? room : target} has no rank`;
  return other < own
    ? undefined
    : `${room} has rank ${own} and imports only lower ranks; ${target} has rank ${other}`;
}

/** The folder below src, or the file itself when it lies in src. */
function roomOf(path: string): string {
  return path.split("/")[1] ?? "";
}
