import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Model } from "../api/records.js";
import { type Credits, credits, sumOf } from "../core/money.js";
import { leavesReally } from "../text/inside.js";
import { writeWholeNow } from "../whole-file.js";

export interface Starter {
  folder: string;
  /** The text of `.env`; null for none. */
  settings: string | null;
  /** The other files, such as the first sheet, by their names below the folder. */
  files: Readonly<Record<string, string>>;
}

export interface Started {
  /** Names below the folder; those of folders end in `/`. */
  made: string[];
  /** Files that existed before and are unchanged. */
  kept: string[];
  /** Lines added to `.gitignore`. */
  ignored: string[];
}

/** The name of the first sheet, below the folder. */
export const firstJob = "jobs/first.csv";
const secretMode = 0o600;
const ignoredNames = [".env", ".bulkgen/", "outputs/", "sandbox-outputs/"];

/**
 * Makes a starter workspace. Existing files are not overwritten, and on failure the new files are removed again. Throws
 * the system's error.
 */
export function makeStarter(starter: Starter): Started {
  const { folder, settings, files } = starter;
  const undo: (() => void)[] = [];
  const started: Started = { made: [], kept: [], ignored: [] };
  const make = (name: string, write: (path: string) => void) => {
    const path = join(folder, name);
    refuseLink(folder, path);
    if (existsSync(path)) {
      started.kept.push(name);
      return;
    }
    const first = mkdirSync(dirname(path), { recursive: true });
    undo.push(() => rmSync(first ?? path, { recursive: true, force: true }));
    write(path);
    started.made.push(name);
  };
  try {
    make(".bulkgen/", (path) => mkdirSync(path, { mode: 0o700 }));
    if (settings !== null)
      make(".env", (path) => writeFileSync(path, settings, { flag: "wx", mode: secretMode }));
    for (const [name, text] of Object.entries(files))
      make(name, (path) => writeFileSync(path, text, { flag: "wx" }));
    started.ignored = ignore(join(folder, ".gitignore"));
    return started;
  } catch (error) {
    for (const step of undo.reverse()) step();
    throw error;
  }
}

/** Nothing is written through a link that leads out of the folder. */
function refuseLink(folder: string, path: string): void {
  if (leavesReally(folder, path))
    throw Object.assign(new Error(`${path} leads out of ${folder}, by a symbolic link`), { code: "ELOOP" });
}

/** Adds the missing lines to the file, which may be the user's own. */
function ignore(path: string): string[] {
  refuseLink(dirname(path), path);
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const present = new Set(text.split(/\r?\n/).map((line) => line.trim().replace(/^\//, "")));
  const missing = ignoredNames.filter((name) => !present.has(name) && !present.has(name.replace(/\/$/, "")));
  if (missing.length === 0) return [];
  const gap = text === "" || text.endsWith("\n") ? "" : "\n";
  writeWholeNow(path, `${text}${gap}${missing.join("\n")}\n`);
  return missing;
}

/** The `.env` of a workspace that uses the service. */
export function serviceEnvText({ baseUrl, key }: { baseUrl: string | null; key: string | null }): string {
  return `# How bulkgen reaches the service from this folder. Environment variables override these.
# Only you can read this file (mode 0600), and .gitignore keeps it out of the repository. --sandbox needs none of it.

# The service's address.
${baseUrl === null ? "# BULKGEN_BASE_URL=https://service.example" : `BULKGEN_BASE_URL=${baseUrl}`}

# The API key: svc_ and 32 letters or digits. The service's dashboard shows it once, when it is created.
${key === null ? "# BULKGEN_API_KEY=" : `BULKGEN_API_KEY=${key}`}
`;
}

/** The `.env` of a workspace with models of its own; `key` is null if it is not known, or set elsewhere. */
export function providerEnvText(variable: string, title: string, page: string, key: string | null): string {
  return `# Keys of the providers in models.yaml. Environment variables override these.
# Only you can read this file (mode 0600), and .gitignore keeps it out of the repository.

# The key of ${title}, from ${page}
${key === null ? `# ${variable}=` : `${variable}=${key}`}
`;
}

/** A first job for the sandbox: two pictures and a voice, 4 credits. */
export const sandboxJob = `id,model,prompt,params.aspect_ratio
teapot,aurora-image-mini,"A stoneware teapot on a dark oak table, steam in low sun",16:9
cup,aurora-image-mini,"The cup that belongs to it, close, on linen",1:1
welcome,voice-clear,"Welcome. This voice was made from a row of a spreadsheet.",
`;

const picture = "A stoneware teapot on a dark oak table, steam in low sun";
const prompts: Readonly<Record<string, string>> = {
  image: picture,
  video: "Steam rises slowly from a stoneware teapot in low sun",
  audio: "Welcome. This voice was made from a row of a spreadsheet.",
};
const firstRows = 3;

/** A first job of the account's own models: the cheapest that need only a prompt, of different categories if possible. */
export function firstJobOf(models: readonly Model[]): { text: string; price: Credits } | null {
  const cheapest = models
    .filter((model) => model.input_type === "text")
    .toSorted((a, b) => a.credits_cost - b.credits_cost);
  const categories = new Set<string>();
  const [firsts, others]: [Model[], Model[]] = [[], []];
  for (const model of cheapest) {
    (categories.has(model.category) ? others : firsts).push(model);
    categories.add(model.category);
  }
  const chosen = [...firsts, ...others].slice(0, firstRows);
  if (chosen.length === 0) return null;
  const rows = chosen.map(({ model_key: key, category }, index) =>
    [`first-${index + 1}`, key, prompts[category] ?? picture].map(quotedCell).join(","),
  );
  const price = sumOf(chosen.map((model) => credits(model.credits_cost)));
  return { text: `id,model,prompt\n${rows.join("\n")}\n`, price };
}

function quotedCell(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `"${text.replaceAll('"', '""')}"`;
}
