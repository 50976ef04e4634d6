import { relative } from "node:path";
import { EarlyExit } from "../core/exit.js";
import type { Item, Store } from "../core/store.js";
import { jobFolder } from "../run/folder.js";

/** The item that goes by a row id, a task id or the path of a file. */
export async function itemNamed(store: Store, name: string): Promise<Item> {
  const runs = await store.runs();
  const folders = new Set(runs.map((run) => relative(process.cwd(), jobFolder(run))));
  const candidates = [name, ...[...folders].map((folder) => relative(folder, name))];
  for (const candidate of candidates) {
    const [found] = await store.find(candidate);
    if (found) return found;
  }
  throw new EarlyExit(
    "usage",
    `no item ${JSON.stringify(name)}: expected a row id, a file's path or a task id`,
  );
}
