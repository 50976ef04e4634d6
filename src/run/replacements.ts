import type { ArchivedFile, Item, Store } from "../core/ports/store.js";

type Named = Pick<Item, "id" | "rowId" | "name" | "edition">;

/** Files of earlier versions of a row, which make way once the file of the current version is saved. */
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

/** A row is known by its id, or without an id by its output name. */
function rowsOf({ rowId, name, edition }: Named): string[] {
  return [`${edition}\nid ${rowId}`, `${edition}\nname ${name}`];
}
