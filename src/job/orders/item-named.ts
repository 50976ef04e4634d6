import { existsSync } from "node:fs";
import { basename, extname, relative, resolve } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import { isSuperseded } from "../../archive/move.js";
import { EarlyExit } from "../../core/exit.js";
import type { Item, Run } from "../../core/ports/store.js";
import type { Store } from "../../store/workspace/workspace.js";
import { nearest } from "../../text/nearest.js";
import { shellWord } from "../../text/shell.js";
import { terminalText } from "../../text/terminal.js";
import { type ItemName, placed } from "./review.js";

/**
 * The newest item with this row id, key, task id or file path (relative to `cwd`); else the only one that has a file of
 * this name in any folder.
 */
export async function itemNamed(store: Store, given: ItemName, cwd: string): Promise<Item> {
  const name = typeof given === "string" ? given : given.name;
  const [newest] = await itemsNamed(store, name, cwd);
  if (newest) return newest;
  const files = await filesCalled(store, name);
  const [only, ...others] = files.values();
  if (only && others.length === 0) return only.item;
  const hint = only
    ? didYouMean([...files.values()].map(({ file }) => file))
    : ((await findHint(store, name, cwd)) ?? didYouMean(await namesLike(store, name)));
  throw new EarlyExit(
    "usage",
    placed(
      given,
      `no item ${JSON.stringify(name)}: expected a row id, a file's path or a task id, or RUN:ROW-ID for an item of one run${hint}`,
    ),
  );
}

/** A file that a person renamed or copied is known by its content, and only `find` reads it. */
async function findHint(store: Store, name: string, cwd: string): Promise<string | null> {
  if (!existsSync(resolve(cwd, name))) return null;
  const sandbox = (await store.runs()).at(-1)?.options.sandbox === true ? " --sandbox" : "";
  return `; \`bulkgen find ${shellWord(name)}${sandbox}\` shows the row that this file came from`;
}

function didYouMean(names: readonly string[]): string {
  const quoted = names.slice(0, namesMax).map((each) => JSON.stringify(terminalText(each)));
  return quoted.length === 0 ? "" : `; did you mean ${quoted.join(" or ")}?`;
}

const namesMax = 5;
const runsMax = 10;

/** The items that a row made in steps or combinations, else the nearest name; from the newest run that has any. */
async function namesLike(store: Store, name: string): Promise<string[]> {
  for (const run of (await store.runs()).toReversed().slice(0, runsMax)) {
    const names = await store.rowIds(run.id);
    const ofRow = names.filter((each) => each.startsWith(`${name}-`)).slice(0, namesMax);
    const near = ofRow.length === 0 ? nearest(name, names) : undefined;
    const found = near === undefined ? ofRow : [near];
    if (found.length > 0) return found;
  }
  return [];
}

/** A file of each item that has a file of this name, in any folder, with or without its extension. */
async function filesCalled(
  store: Store,
  name: string,
): Promise<ReadonlyMap<number, { item: Item; file: string }>> {
  const current = new Map<number, { item: Item; file: string }>();
  const superseded: typeof current = new Map();
  for await (const page of store.archived()) {
    for (const { item, file } of page) {
      const path = `/${file}`;
      const stem = path.slice(0, path.length - extname(path).length);
      if (!path.endsWith(`/${name}`) && !stem.endsWith(`/${name}`)) continue;
      (isSuperseded(file) ? superseded : current).set(item.id, { item, file });
    }
  }
  return current.size > 0 ? current : superseded;
}

/** Every item of this name, the newest run's first: editions and jobs may share row ids. */
export async function itemsNamed(store: Store, name: string, cwd: string): Promise<Item[]> {
  const found = await store.find(name);
  if (found.length > 0) return found;
  const ofRun = await namedInRun(store, name);
  if (ofRun.length > 0) return ofRun;
  const path = name.startsWith("s3://") ? name : resolve(cwd, name);
  return namedByPath(store, await store.runs(), path);
}

/** `3:cup` is the cup of run 3. */
async function namedInRun(store: Store, name: string): Promise<Item[]> {
  const [, run, rest] = /^(\d+):(.+)$/s.exec(name) ?? [];
  if (run === undefined || rest === undefined) return [];
  return (await store.find(rest)).filter(({ runId }) => runId === Number(run));
}

/** Files of several jobs may have the same name: the folder distinguishes them, on the disk and in a bucket. */
async function namedByPath(store: Store, runs: readonly Run[], path: string): Promise<Item[]> {
  const jobs = new Map(runs.map((run) => [jobFolder(run), run.jobId]));
  for (const [folder, job] of jobs) {
    const inJob = path.startsWith("s3://") ? inBucket(path, basename(folder)) : [relative(folder, path)];
    for (const file of inJob) {
      const found = (await store.find(file)).filter(({ jobId }) => jobId === job);
      if (found.length > 0) return found;
    }
  }
  return [];
}

/** What an address may mean within a job's folder: the bucket's prefix, or the file's own path, may have its name too. */
function inBucket(address: string, folder: string): string[] {
  const levels = address.split("/");
  return levels.flatMap((level, at) => (level === folder ? [levels.slice(at + 1).join("/")] : []));
}
