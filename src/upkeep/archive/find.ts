import { createReadStream, existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { bucketAddress } from "../../archive/disk/bucket-disk.js";
import { jobFolder } from "../../archive/disk/names.js";
import type { Clock } from "../../clock.js";
import type { ArchivedOutput } from "../../core/ports/store.js";
import { sha256Of } from "../../text/pieces.js";
import { mustHaveRuns } from "../../workspace/history.js";
import { withStore } from "../../workspace/state.js";
import type { Workspace } from "../../workspace/workspace.js";

/** A search of the archive: all given conditions must match. */
export interface FindQuery {
  /** Words of the prompt, row id or file name, in any order and case; or the path of a file, even a renamed one. */
  text?: string;
  model?: string;
  params: Readonly<Record<string, string>>;
  /** The folder that a relative path of `text` starts from (default: the current one). */
  cwd?: string;
  /** When it was archived: from the first instant up to, not including, the second (UTC ms). */
  since?: number;
  until?: number;
}

export interface FoundOutput extends ArchivedOutput {
  /** Absolute, or its address in the bucket that has it: `s3://…`. */
  path: string;
}

export interface FoundOutputs {
  /** Newest first. */
  newest: FoundOutput[];
  /** Of all. */
  count: number;
}

/**
 * The matching outputs, or the newest `most` of them, and how many there are. Throws EarlyExit if there are no runs or
 * the history is lost; rejects with disk errors.
 */
export async function findOutputs(
  workspace: Workspace,
  wanted: FindQuery,
  clock: Clock,
  most = Number.POSITIVE_INFINITY,
): Promise<FoundOutputs> {
  mustHaveRuns(workspace);
  return withStore(workspace, clock, async (store) => {
    const named = wanted.text === undefined ? null : await fileNamed(wanted.cwd ?? ".", wanted.text);
    let found: FoundOutput[] = [];
    let count = 0;
    for await (const page of store.archived()) {
      for (const output of page) {
        if (!fits(output, wanted)) continue;
        const each = { ...output, path: pathOf(output) };
        if (named === null ? !hasWords(each, wanted.text) : !isFile(each, named)) continue;
        found.push(each);
        count++;
      }
      if (found.length > most) found = newestOf(found).slice(0, most);
    }
    return { newest: newestOf(found), count };
  });
}

function newestOf(outputs: readonly FoundOutput[]): FoundOutput[] {
  return outputs.toSorted((a, b) => b.savedAt - a.savedAt || a.item.id - b.item.id || a.number - b.number);
}

export function pathOf({ outFolder, jobName, file, bucket }: ArchivedOutput): string {
  const folder = jobFolder({ outFolder, jobName });
  return bucket == null ? resolve(folder, file) : bucketAddress(bucket, folder, file);
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

/** A file is recognised by its content, so a renamed copy is found too. Null when the text names no file. */
async function fileNamed(cwd: string, text: string): Promise<NamedFile | null> {
  const path = resolve(cwd, text);
  // A prompt may be longer than any path, which statSync alone would report as an error.
  if (!existsSync(path) || !statSync(path).isFile()) return null;
  return { path, sha256: await sha256Of(createReadStream(path)) };
}

/** A changed file is still recognised by its path. */
function isFile(output: FoundOutput, named: NamedFile): boolean {
  return output.sha256 === named.sha256 || output.path === named.path;
}
