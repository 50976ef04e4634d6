import type { GalleryCard, GalleryPage } from "../../upkeep/archive/gallery.js";

export type FileChoice = "pick" | "reject" | "redo";

interface Kept {
  choice: FileChoice;
  /** How many items the row had then: once there is another, a redo has been carried out. */
  takes: number;
}

/**
 * What a person chose on this page. It stays in the browser until it is exported as `review.csv` and carried out by
 * commands. A choice that the workspace has on record is no longer kept here.
 */
export class Choices {
  private readonly kept = new Map<string, Kept>();
  private readonly takes = new Map<string, Set<string>>();
  private readonly storageKey: string;

  constructor(private readonly page: GalleryPage) {
    this.storageKey = `bulkgen gallery ${page.key}`;
    for (const { row, name } of page.cards) {
      const items = this.takes.get(row) ?? new Set();
      this.takes.set(row, name === "" ? items : items.add(name));
    }
    this.load();
  }

  /** Null if nothing was chosen on this page. */
  of({ name }: GalleryCard): FileChoice | null {
    return this.kept.get(name)?.choice ?? null;
  }

  /** The current choice for a card: the one made here, otherwise the recorded one. */
  choiceFor(card: GalleryCard): FileChoice | null {
    return this.of(card) ?? (card.isPicked ? "pick" : card.state === "rejected" ? "reject" : null);
  }

  choose(card: GalleryCard, choice: FileChoice | null): void {
    if (card.name === "") return;
    if (choice === null || isOnRecord(card, choice)) this.kept.delete(card.name);
    else this.kept.set(card.name, { choice, takes: this.takesOf(card) });
    this.save();
  }

  clear(): void {
    this.kept.clear();
    this.save();
  }

  /** The cards with a choice; one of each item. */
  chosen(choice?: FileChoice): GalleryCard[] {
    const seen = new Set<string>();
    return this.page.cards.filter((card) => {
      const found = this.of(card);
      if (found === null || (choice !== undefined && found !== choice) || seen.has(card.name)) return false;
      seen.add(card.name);
      return true;
    });
  }

  /** The review file: commands read `id` and `decision`, the other columns are for people. */
  csv(): string {
    const lines = this.chosen().map((card) => [
      card.name,
      this.of(card) ?? "",
      card.rowId,
      card.file?.path ?? "",
    ]);
    return [["id", "decision", "row", "path"], ...lines]
      .map((line) => `${line.map(cell).join(",")}\r\n`)
      .join("");
  }

  private takesOf({ row }: GalleryCard): number {
    return this.takes.get(row)?.size ?? 0;
  }

  private load(): void {
    const known = new Map(this.page.cards.map((card) => [card.name, card]));
    try {
      const stored: unknown = JSON.parse(localStorage.getItem(this.storageKey) ?? "{}");
      for (const [name, kept] of Object.entries(stored as Record<string, Kept>)) {
        const card = known.get(name);
        if (card === undefined || name === "" || isOnRecord(card, kept.choice)) continue;
        if (kept.choice === "redo" && kept.takes < this.takesOf(card)) continue;
        if (["pick", "reject", "redo"].includes(kept.choice)) this.kept.set(name, kept);
      }
    } catch {
      // Without storage the choices last as long as the page.
    }
  }

  private save(): void {
    try {
      localStorage.setItem(this.storageKey, JSON.stringify(Object.fromEntries(this.kept)));
    } catch {
      // Without storage the choices last as long as the page.
    }
  }
}

/** A pick also approves an item that waits for approval; until it is carried out, the pick takes precedence. */
function isOnRecord({ isPicked, state }: GalleryCard, choice: FileChoice): boolean {
  if (choice === "pick") return isPicked && state !== "waiting" && state !== "rejected";
  return choice === "reject" && state === "rejected";
}

/** A spreadsheet would run some texts as formulas: an apostrophe marks them as text. */
function cell(text: string): string {
  const safe = /^'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/.test(text) ? `'${text}` : text;
  return /[",\r\n;]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
