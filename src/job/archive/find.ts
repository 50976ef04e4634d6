import { createHash } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { resolve } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import type { Clock } from "../../clock.js";
import type { ArchivedOutput } from "../../core/ports/store.js";
import { openWorkspace } from "../../store/workspace/workspace.js";
import { refuseLost } from "../workspace/history.js";
import { type Workspace, workspaceExists } from "../workspace/workspace.js";

/** What is looked for in the archive: every part that is given must hold. */
export interface FindQuery {
  /** Words of the prompt, row id or file name, in any order and any case; or the path of a file, whatever its name now. */
  text?: string;
  model?: string;
  params: Readonly<Record<string, string>>;
  /** The folder that a relative path of `text` starts from (default: the current one). */
  cwd?: string;
  /** When it was saved: from the first instant up to and without the second (UTC ms). */
  since?: number;
  until?: number;
}

export interface FoundOutput extends ArchivedOutput {
  /** Absolute. */
  path: string;
}

/** The outputs that fit, the newest first. Throws EarlyExit where the history is lost; rejects with errors of the disk. */
export async function findOutputs(
  workspace: Workspace,
  wanted: FindQuery,
  clock: Clock,
): Promise<FoundOutput[]> {
  refuseLost(workspace);
  if (!workspaceExists(workspace)) return [];
  const store = openWorkspace(workspace, clock);
  try {
    const outputs = (await store.archived()).map((output) => ({ ...output, path: pathOf(output) }));
    const named = wanted.text === undefined ? null : await fileNamed(wanted.cwd ?? ".", wanted.text);
    return outputs
      .filter((output) => fits(output, wanted))
      .filter((output) => (named === null ? hasWords(output, wanted.text) : isFile(output, named)))
      .toSorted((a, b) => b.savedAt - a.savedAt || a.item.id - b.item.id || a.number - b.number);
  } finally {
    store.close();
  }
}

export function pathOf({ outFolder, jobName, file }: ArchivedOutput): string {
  return resolve(jobFolder({ outFolder, jobName }), file);
}

function fits({ item, savedAt }: ArchivedOutput, { model, params, since, until }: FindQuery): boolean {
  return (
    (model === undefined || item.model === model) &&
    Object.entries(params).every(([key, value]) => item.params[key] === value) &&
    (since === undefined || savedAt >= since) &&
    (until === undefined || savedAt < until)
  );
}

function hasWords({ item, file }: ArchivedOutput, text = ""): boolean {
  const searched = folded([item.prompt ?? "", item.rowId, file].join("\n"));
  return folded(text)
    .split(/\s+/)
    .every((word) => searched.includes(word));
}

function folded(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

interface NamedFile {
  path: string;
  sha256: string;
}

/** A file is known by its content, so that a copy under another name leads back too. Null when the text names none. */
async function fileNamed(cwd: string, text: string): Promise<NamedFile | null> {
  const path = resolve(cwd, text);
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return null;
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return { path, sha256: hash.digest("hex") };
}

/** A file that was changed is still known by its place. */
function isFile(output: FoundOutput, named: NamedFile): boolean {
  return output.sha256 === named.sha256 || output.path === named.path;
}
