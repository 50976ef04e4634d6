import type { Model } from "../api/records.js";
import { itemKeys, outputOf, shortId } from "../core/identity.js";
import { isPaid } from "../core/item.js";
import type { DraftItem, DraftRow, DraftSlot, Known } from "../core/ports/draft.js";
import type { NewItem, Parent } from "../core/ports/store.js";
import type { Place, Problem } from "../core/problem.js";
import { copyName, copyOutput, labelled } from "../manifest/shape/columns.js";
import { cellPlace, type Row } from "../manifest/shape/manifest.js";
import type { Draft } from "../store/draft/draft.js";
import { CompactTextMap } from "../text/compact-text-map.js";
import type { CheckedRow } from "./check-row.js";
import type { PlanPrices } from "./cost.js";
import type { Duplicates, Existing, Finding } from "./plan.js";
import { RepeatedRequests } from "./repeated-requests.js";

/** A good row: one that has a model and no problem. */
export interface GoodRow extends CheckedRow {
  model: Model;
}

export interface ItemScope {
  origin: string;
  account: string;
  edition: string;
  duplicates: Duplicates;
  prices: PlanPrices;
}

/** The items and problems of a row. */
export interface Making {
  items: DraftItem[];
  shares: DraftRow["shares"];
  problems: Problem[];
}

const none: Problem[] = [];
/**
 * Stands for the id of an item whose key is not known yet: a character that Unicode excludes from text, so no name
 * contains it.
 */
const unknownYet = "\uffff";

interface Requested extends Pick<DraftItem, "prompt" | "contents"> {
  kind: Pick<DraftItem["kind"], "model" | "params">;
}

/**
 * Makes the items of valid rows. Identical rows are distinguished by their occurrence, counted over the whole manifest,
 * so it makes no difference to payment which of them has which number.
 */
export class Items {
  readonly keyOf: (
    good: Pick<GoodRow, "row" | "model" | "params" | "contents">,
    occurrence: number,
  ) => string;
  private readonly seen = new CompactTextMap();
  private readonly identicalChildren = new Set<number>();
  /** The problems of items with links that are not paid for after all, by position. */
  private readonly unlessPaid = new Map<number, Problem>();
  /** What items with links may be if they are paid for so, by position. */
  private readonly ifPaid = new Map<number, DraftItem["kind"][]>();
  /**
   * Later occurrences that the job has and no row asks for, by the key of the first one. A row that is alone now may have
   * been one of several.
   */
  private readonly later = new Map<string, number[]>();
  /** Items of a group so far, by the position of its first item; 0 if only one row asks for it. */
  private slots = new Uint32Array(1_024);
  private readonly repeated = new RepeatedRequests();

  constructor(
    private readonly draft: Draft,
    private readonly scope: ItemScope,
  ) {
    const keyOf = itemKeys(scope);
    this.keyOf = ({ row: { prompt }, model, params, contents }, occurrence) =>
      keyOf({ model: model.model_key, prompt, params, inputs: contents, occurrence });
  }

  make(good: GoodRow): Making {
    const { row } = good;
    const first = this.keyOf(good, 1);
    const position = this.draft.next();
    const head = this.seen.put(first, position, (other) => this.draft.recordAt(other)?.key === first);
    if (head !== null) return this.again(good, head);
    const items = [this.itemOf(good, { key: first, copy: 1, occurrence: 1, head: null })];
    for (let copy = 2; copy <= row.repeat; copy++) {
      items.push(this.itemOf(good, { key: this.keyOf(good, copy), copy, occurrence: copy, head: position }));
    }
    return { items, shares: null, problems: none };
  }

  /** The items of a row with references, which get their keys once those of their parents are known. */
  makeLinked(good: GoodRow): Making {
    const items = Array.from({ length: good.row.repeat }, (_, index) =>
      this.itemOf(good, { key: unknownYet, copy: index + 1, occurrence: 1, head: null }),
    );
    return { items, shares: null, problems: none };
  }

  /** An item with links that can be planned only if it is paid for; else it has this problem. */
  expectPaid(position: number, otherwise: Problem): void {
    this.unlessPaid.set(position, otherwise);
  }

  /** An item with links that was made with some of these params, if that is paid for. */
  expectMade(position: number, good: GoodRow, all: readonly GoodRow["params"][]): void {
    this.ifPaid.set(
      position,
      all.map((params) => this.scope.prices.of(good.model, params)),
    );
  }

  /** Whether the item that the next row with this request would get is paid for. */
  private isNextPaid(request: GoodRow): boolean {
    const head = this.seen.find(this.keyOf(request, 1));
    const isShared = head === null || this.scope.duplicates === "merge";
    const occurrence = isShared ? 1 : (this.slotsOf(head) || 1) + 1;
    return isPaid(this.draft.knownOf(this.keyOf(request, occurrence)));
  }

  /** Finishes an item with links. Returns why it cannot be made, or null. */
  finish(
    { position, number, repeat, id, item }: NonNullable<ReturnType<Draft["slotAt"]>>,
    {
      contents,
      parents,
      depth,
      placeOf,
    }: { contents: NewItem["inputs"]; parents: readonly Parent[]; depth: number; placeOf(): Place },
  ): Problem | null {
    const { draft, scope } = this;
    const now = requestOf({ ...item, contents });
    const kinds = this.ifPaid.get(position) ?? [];
    const kind = this.isNextPaid(now)
      ? undefined
      : kinds.find((each) => this.isNextPaid(requestOf({ ...item, kind: each, contents })));
    if (kind !== undefined) draft.remake(position, kind);
    const same = kind === undefined ? now : requestOf({ ...item, kind, contents });
    const first = this.keyOf(same, 1);
    let record = null as ReturnType<Draft["recordAt"]>;
    const head = this.seen.put(first, position, (at) => {
      record = draft.recordAt(at);
      return record?.key === first;
    });
    let occurrence = 1;
    if (head === null && this.later.has(first)) this.identicalChildren.add(position);
    if (head !== null) {
      const before = this.slotsOf(head) || 1;
      const other = record?.number ?? 0;
      if (scope.duplicates === "error" && other !== number)
        return duplicateProblem(placeOf(), item.prompt, other);
      const counted = { price: item.kind.price, row: { number, repeat }, first: other };
      if (item.copy === 1) this.repeated.count(head, this.slotsOf(head) === 0, counted);
      if (scope.duplicates === "merge" && repeat === 1) {
        draft.share(position, head);
        return null;
      }
      occurrence = before + 1;
      this.setSlots(head, occurrence);
      this.identicalChildren.add(head);
    }
    const key = this.keyOf(same, occurrence);
    const problem = this.unlessPaid.get(position);
    if (problem !== undefined && !isPaid(draft.knownOf(key))) return problem;
    const rowId = id === null ? shortId(key) : item.rowId;
    const name = id === null ? item.name.replace(item.rowId, rowId) : item.name;
    draft.finish(
      position,
      { key, occurrence, head, rowId, name, contents, parents, depth },
      id !== null && head === null,
    );
    return null;
  }

  /** Whether the job has the first item of the row. */
  isKnown(good: GoodRow): boolean {
    return this.draft.knownOf(this.keyOf(good, 1)) !== null;
  }

  /** Whether the item of that key is paid for. */
  isPaidKey(key: string): boolean {
    return isPaid(this.draft.knownOf(key));
  }

  /** Whether all that the row asks for is paid for, beside what rows before it ask for. */
  arePaid(good: GoodRow): boolean {
    return this.occurrencesOf(good).every((occurrence) =>
      isPaid(this.draft.knownOf(this.keyOf(good, occurrence))),
    );
  }

  /** What the row asks for beside what rows before it ask for. */
  private occurrencesOf(good: GoodRow): number[] {
    const { repeat } = good.row;
    const head = this.seen.find(this.keyOf(good, 1));
    const before = head === null ? 0 : this.slotsOf(head) || (this.draft.recordAt(head)?.repeat ?? 1);
    const last = this.scope.duplicates === "keep" ? before + repeat : Math.max(before, repeat);
    return Array.from({ length: Math.max(0, last - before) }, (_, index) => before + index + 1);
  }

  /** Whether something that the row asks for is paid for, beside what rows before it ask for. */
  isPaidInPart(good: GoodRow): boolean {
    const occurrences = this.occurrencesOf(good);
    // It shares what rows before it ask for.
    if (occurrences.length === 0) return isPaid(this.draft.knownOf(this.keyOf(good, 1)));
    return occurrences.some((occurrence) => isPaid(this.draft.knownOf(this.keyOf(good, occurrence))));
  }

  /** Records an item that the job has already. Call it when all rows are in the draft. */
  know(known: Existing): void {
    const { key, occurrence, prompt, model, params } = known;
    if (occurrence === 1 || this.draft.holds(key)) return;
    const contents = contentsOf(known);
    const same = requestOf({ prompt, contents, kind: { model, params } });
    // A variant has another key.
    if (this.keyOf(same, occurrence) !== key) return;
    const first = this.keyOf(same, 1);
    const others = this.later.get(first);
    if (others === undefined) this.later.set(first, [occurrence]);
    else others.push(occurrence);
  }

  /**
   * A row id keeps the occurrence that it had before, so that its file stays its own if rows change places or one of
   * them is deleted; so does a row without an id whose output others use, by its cells. The other rows get the remaining
   * occurrences, those that were made first.
   */
  keepOccurrences(): void {
    const { draft } = this;
    for (const first of this.later.keys()) {
      const position = draft.positionOf(first);
      if (position !== null && draft.group(position).length === 1) this.keepOccurrencesOf(position);
    }
    for (const head of draft.groups()) this.keepOccurrencesOf(head);
  }

  /** Does what `keepOccurrences` does for items that `finish` has finished since the last call. */
  keepOccurrencesOfChildren(): void {
    for (const head of this.identicalChildren) this.keepOccurrencesOf(head);
    this.identicalChildren.clear();
  }

  private keepOccurrencesOf(head: number): void {
    const { draft } = this;
    const slots = draft.group(head);
    const [first] = slots;
    if (first === undefined) return;
    const same = requestOf(first.item);
    const others = this.later.get(this.keyOf(same, 1)) ?? [];
    const occurrences = [
      ...slots.map((_, index) => index + 1),
      ...others.filter((occurrence) => occurrence > slots.length).sort((a, b) => a - b),
    ].map((occurrence) => {
      const key = this.keyOf(same, occurrence);
      return { occurrence, key, known: draft.knownOf(key) };
    });
    const free = new Set(occurrences);
    const before = new Map(occurrences.map((each) => [each.known?.rowId, each]));
    const chosen = new Map<DraftSlot, Occurrence>();
    const ownOf = (slot: DraftSlot) =>
      slot.id === null ? undefined : before.get(copyName(slot.id, slot.item.copy));
    for (const slot of slots) {
      const own = ownOf(slot);
      if (own !== undefined && isPaid(own.known) && free.delete(own)) chosen.set(slot, own);
    }
    const byCells = grouped([...free], ({ known }) => known?.cells && cellsText(known.cells));
    const unnamed = slots.filter(({ id }) => byCells.size > 0 && id === null);
    for (const [cells, same] of grouped(unnamed, slotCells)) {
      for (const [index, each] of mostMade(byCells.get(cells) ?? [], same.length).entries()) {
        free.delete(each);
        chosen.set(same[index] as DraftSlot, each);
      }
    }
    // What nobody has paid for stays its row's only if nothing that is paid for would be left over.
    const rest = new Set(mostMade([...free], slots.length - chosen.size));
    for (const slot of slots) {
      const own = chosen.has(slot) ? undefined : ownOf(slot);
      if (own !== undefined && rest.delete(own)) chosen.set(slot, own);
    }
    const left = rest.values();
    for (const slot of slots) take(draft, slot, chosen.get(slot) ?? (left.next().value as Occurrence));
  }

  /** Findings on rows with the same request. If not all rows are selected, only on those that are made. */
  identical(isSelection: boolean): Finding[] {
    const wantedIn = isSelection ? (head: number) => this.draft.wantedIn(head) : null;
    return this.repeated.findings(this.scope.duplicates, wantedIn);
  }

  private again(good: GoodRow, head: number): Making {
    const { duplicates } = this.scope;
    const { row } = good;
    const first = this.draft.recordAt(head);
    const before = this.slotsOf(head) || (first?.repeat ?? 1);
    const { price } = this.scope.prices.of(good.model, good.params);
    this.repeated.count(head, this.slotsOf(head) === 0, { price, row, first: first?.number ?? 0 });
    const missing = Math.max(0, row.repeat - (duplicates === "keep" ? 0 : before));
    const added = duplicates === "error" ? 0 : missing;
    this.setSlots(head, before + added);
    return {
      items: Array.from({ length: added }, (_, index) => {
        const occurrence = before + index + 1;
        const copy = row.repeat - added + index + 1;
        return this.itemOf(good, { key: this.keyOf(good, occurrence), copy, occurrence, head });
      }),
      shares: duplicates === "keep" ? null : { head, items: row.repeat },
      problems:
        duplicates === "error"
          ? [duplicateProblem(cellPlace(row, "prompt"), row.prompt, first?.number ?? 0)]
          : [],
    };
  }

  private slotsOf(head: number): number {
    return this.slots[head] ?? 0;
  }

  private setSlots(head: number, count: number): void {
    if (head >= this.slots.length) {
      const larger = new Uint32Array(Math.max(head + 1, this.slots.length * 2));
      larger.set(this.slots);
      this.slots = larger;
    }
    this.slots[head] = count;
  }

  private itemOf(
    { row, model, params, contents }: GoodRow,
    made: Pick<DraftItem, "key" | "copy" | "occurrence" | "head">,
  ): DraftItem {
    const rowId = row.id === null ? shortId(made.key) : copyName(row.id, made.copy);
    return {
      key: made.key,
      copy: made.copy,
      occurrence: made.occurrence,
      head: made.head,
      approve: row.approve,
      priority: row.priority,
      rowId,
      name: `${editionFolder(this.scope.edition)}${nameOf(row, rowId, made.copy)}`,
      kind: this.scope.prices.of(model, params),
      prompt: row.prompt,
      inputs: row.inputs,
      contents,
    };
  }
}

/** Each edition after the first has a folder, so its files keep their names and can be told from the others. */
export function editionFolder(edition: string): string {
  return edition === "" ? "" : `edition-${edition.replace(/^#/, "").replace(/[/\\:]/g, "-")}/`;
}

/** The requested output name; else the id, which distinguishes combinations only if it was given. */
function nameOf(row: Row, rowId: string, copy: number): string {
  const wanted = copyOutput(row, copy);
  if (wanted !== null) return wanted;
  return row.id === null ? labelled(rowId, row.label) : rowId;
}

function duplicateProblem(place: Place, prompt: string | null, first: number): Problem {
  return {
    place,
    message: `the row is identical to row ${first}`,
    expected: "rows that differ in model, prompt, params or inputs (or --duplicates keep or merge)",
    got: prompt ?? "no prompt",
  };
}

/** An item's inputs as identity counts them. */
export function contentsOf({ inputs, files, parents }: Pick<NewItem, "inputs" | "files" | "parents">) {
  const contents = { ...inputs, ...files };
  for (const parent of parents ?? []) contents[parent.field] = outputOf(parent);
  return contents;
}

/** Rows without an id are told apart by their cells if other items use their outputs: see `keepOccurrences`. */
export function knownItem(item: Existing, hasChains: boolean): Known {
  const { name, vanished = false, attempted = false } = item;
  const cells = hasChains && item.rowId === shortId(item.key) ? (item.cells ?? null) : null;
  return { ...item, name: name ?? null, vanished, attempted, cells };
}

interface Occurrence {
  occurrence: number;
  key: string;
  /** The item of the job that has this key. */
  known: ReturnType<Draft["knownOf"]>;
}

/** By the text of each; those without one are left out. */
function grouped<Each>(
  all: readonly Each[],
  textOf: (each: Each) => string | null | undefined,
): Map<string, Each[]> {
  const groups = new Map<string, Each[]>();
  for (const each of all) {
    const text = textOf(each);
    if (text == null) continue;
    const group = groups.get(text);
    if (group === undefined) groups.set(text, [each]);
    else group.push(each);
  }
  return groups;
}

function slotCells({ cells }: DraftSlot): string {
  return cellsText(Object.entries(JSON.parse(cells ?? "{}") as Record<string, string>));
}

/** The cells as text that does not depend on the order of the columns. */
function cellsText(cells: NewItem["cells"]): string {
  return JSON.stringify(cells.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** As many as are wanted, in order: those that were made, then those that the job has, then new ones. */
function mostMade(free: readonly Occurrence[], count: number): Occurrence[] {
  const rank = ({ known }: Occurrence) => (known === null ? 2 : isPaid(known) ? 0 : 1);
  return free
    .toSorted((a, b) => rank(a) - rank(b))
    .slice(0, count)
    .sort((a, b) => a.occurrence - b.occurrence);
}

/** An item's request, in the form that `keyOf` takes. */
function requestOf({ prompt, contents, kind: { model, params } }: Requested): GoodRow {
  return { row: { prompt }, model: { model_key: model }, params, contents } as GoodRow;
}

function take(draft: Draft, { position, id, item }: DraftSlot, { key, occurrence }: Occurrence): void {
  if (item.occurrence === occurrence) return;
  const rowId = id === null ? shortId(key) : item.rowId;
  // Without a given id, the name contains the id from the key.
  const name = id === null ? item.name.replace(item.rowId, rowId) : item.name;
  draft.rename(position, { key, occurrence, rowId, name });
}
