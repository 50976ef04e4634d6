import { basename, extname } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import { stepOf } from "../../archive/index-file.js";
import type { Item, Run, SavedFile } from "../../core/ports/store.js";
import { columnPrefix, environmentName } from "../../manifest/shape/columns.js";

/**
 * The environment of a command after a file or a set. A bulkgen that the command starts has these variables
 * too, so none of them is a setting: `BULKGEN_MODEL` would be `--model`.
 */
export const afterVariables = [
  "BULKGEN_FILE",
  "BULKGEN_NAME",
  "BULKGEN_STEM",
  "BULKGEN_SHA256",
  "BULKGEN_MIME",
  "BULKGEN_FOLDER",
  "BULKGEN_FILES",
  "BULKGEN_JOB_NAME",
  "BULKGEN_RUN",
  "BULKGEN_ROW",
  "BULKGEN_ITEM",
  "BULKGEN_STEP",
  "BULKGEN_MODEL_KEY",
  "BULKGEN_PROMPT_TEXT",
  "BULKGEN_JSON",
] as const;

/** Params and columns have variables of their own. */
export const afterPrefixes = ["BULKGEN_PARAM_", columnPrefix] as const;

export interface FileFacts extends Pick<SavedFile, "file" | "sha256" | "mime"> {
  item: Item;
  /** Number within its task, from 1. */
  number: number;
  /** Absolute. */
  path: string;
}

/** The system takes 128 KiB for one variable and about 2 MB for all; JSON makes six characters of one at worst. */
const textCharactersMax = 8_000;
const textsCharactersMax = 20_000;

export function environmentOfFile(
  { item, number, path, file, sha256, mime }: FileFacts,
  run: Run,
): Record<string, string> {
  const take = texts();
  const prompt = take(item.prompt ?? "");
  const params = taken(Object.entries(item.params), take);
  const columns = taken(item.cells, take);
  const step = stepOf(item);
  const name = basename(file);
  const facts = {
    file: path,
    name: file,
    sha256,
    mime,
    ...factsOfRun(run),
    row: item.rowNumber,
    item: item.rowId,
    step,
    output: number,
    model: item.model,
    prompt,
    params,
    columns,
  };
  return {
    ...ofRun(run),
    BULKGEN_FILE: path,
    BULKGEN_NAME: file,
    BULKGEN_STEM: name.slice(0, name.length - extname(name).length),
    BULKGEN_SHA256: sha256,
    BULKGEN_MIME: mime,
    BULKGEN_ROW: String(item.rowNumber),
    BULKGEN_ITEM: clean(item.rowId),
    BULKGEN_STEP: clean(step ?? ""),
    BULKGEN_MODEL_KEY: clean(item.model),
    BULKGEN_PROMPT_TEXT: prompt,
    ...variables("BULKGEN_PARAM_", params),
    ...variables(columnPrefix, columns),
    BULKGEN_JSON: JSON.stringify(facts),
  };
}

export function environmentOfSet(run: Run, files: number): Record<string, string> {
  return {
    ...ofRun(run),
    BULKGEN_FILES: String(files),
    BULKGEN_JSON: JSON.stringify({ ...factsOfRun(run), files }),
  };
}

function factsOfRun(run: Run) {
  return { folder: jobFolder(run), job: run.jobName, run: run.id };
}

function ofRun(run: Run): Record<string, string> {
  return {
    BULKGEN_FOLDER: jobFolder(run),
    BULKGEN_JOB_NAME: clean(run.jobName),
    BULKGEN_RUN: String(run.id),
    // A bulkgen that the command starts looks at the rehearsal too.
    ...(run.options.sandbox ? { BULKGEN_SANDBOX: "true" } : {}),
  };
}

/** Texts as long as there is room for them. */
function texts(): (text: string) => string {
  let left = textsCharactersMax;
  return (text) => {
    const short = clean(text).slice(0, Math.min(textCharactersMax, left));
    left -= short.length;
    return short;
  };
}

/** The environment ends a value at this character. */
function clean(text: string): string {
  return text.replaceAll("\0", "");
}

function taken(
  entries: Iterable<readonly [string, string]>,
  take: (text: string) => string,
): Record<string, string> {
  return Object.fromEntries(Array.from(entries, ([name, text]) => [take(name), take(text)]));
}

/** A name that the shell cannot write is in the JSON only. */
function variables(prefix: string, values: Readonly<Record<string, string>>): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    const variable = environmentName(name);
    if (/[A-Z0-9]/.test(variable)) all[prefix + variable] ??= value;
  }
  return all;
}
