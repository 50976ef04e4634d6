import { join } from "node:path";
import { jobFolder } from "../archive/disk/job-folder.js";
import type { ArchivedFile, Item, Run, Store } from "../core/ports/store.js";
import type { RunPorts } from "./ports.js";

type Named = Pick<Item, "id" | "rowId" | "name" | "edition">;

/** What was made for a row as it was before, and makes way once what the row asks for now is there. */
export class Replacements {
  private readonly byRow = new Map<string, ArchivedFile[]>();
  private readonly byFile = new Map<string, ArchivedFile>();

  learn(items: readonly Item[], files: readonly ArchivedFile[]): void {
    const vanished = new Map(
      items.filter((item) => item.vanished && item.variant === 1).map((item) => [item.id, item]),
    );
    for (const file of files) {
      const item = vanished.get(file.itemId);
      if (item === undefined) continue;
      this.byFile.set(file.file, file);
      for (const row of rowsOf(item)) this.byRow.set(row, [...(this.byRow.get(row) ?? []), file]);
    }
  }

  /** The files that an item of a row replaces, wherever they are by now. */
  of(item: Named): string[] {
    return [...new Set(rowsOf(item).flatMap((row) => this.byRow.get(row) ?? []))]
      .filter((file) => file.itemId !== item.id)
      .map(({ file }) => file);
  }

  async moved(store: Pick<Store, "moved">, from: string, to: string): Promise<void> {
    const file = this.byFile.get(from);
    if (file === undefined) return;
    await store.moved(file.itemId, file.number, to);
    file.file = to;
    this.byFile.set(to, file);
  }
}

/** A row is known by its id, and one without an id by the name that it wants. */
function rowsOf({ rowId, name, edition }: Named): string[] {
  return [`${edition}\nid ${rowId}`, `${edition}\nname ${name}`];
}

/**
 * Before a run ends it looks whether the files that it saved are still there: a folder that was moved or emptied in the
 * meantime must not pass for an archive. Each file that is gone is fetched again, once, while its task is at hand.
 */
export class Saved {
  private readonly files: { item: number; number: number; file: string }[] = [];

  add(item: number, number: number, file: string): void {
    this.files.push({ item, number, file });
  }

  /** Puts items whose files are gone back to be fetched; returns how many files that were. */
  async fetchMissing(ports: RunPorts, run: Run): Promise<number> {
    let missing = 0;
    for (const { item, number, file } of this.files.splice(0)) {
      if (await ports.exists(join(jobFolder(run), file))) continue;
      const { state } = await ports.store.item(item);
      if (state !== "archived") continue;
      missing++;
      ports.log.warn({ file }, "a saved file is gone; it is fetched again");
      await ports.store.lost(item, number);
    }
    return missing;
  }
}
