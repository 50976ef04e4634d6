import { isAbsolute } from "node:path";
import { z } from "zod";
import {
  asCredits,
  type Credits,
  credits,
  inCredits,
  minus,
  noCredits,
  plus,
  showCredits,
  toNumber,
} from "../core/money.js";
import type { PlannedItem } from "../core/ports/draft.js";
import type { SavedItem, SavedItems } from "../store/saved-items.js";
import { count } from "../text/amounts.js";
import { type Listing, mapped, only } from "../text/listing.js";
import { LineSplitter } from "../text/pieces.js";
import type { Plan } from "./plan.js";

/**
 * A plan in a file, and what has changed since it was saved. A run of it begins only when it makes the same items for the
 * same prices, and balance and day still cover them, or is off by no more than the tolerance; another account is never
 * the same plan. What does not change what is made and paid, such as a balance that is smaller and large enough, is no
 * drift.
 */
const amount = z.number().refine((value) => asCredits(value) !== null);

const savedItem: z.ZodType<SavedItem> = z.object({
  key: z.string(),
  row: z.number(),
  id: z.string(),
  model: z.string(),
  credits: amount,
  due: z.boolean(),
  content: z.record(z.string(), z.string()),
});

const savedPlan = z.object({
  bulkgen: z.literal("plan"),
  version: z.literal(1),
  savedAt: z.string(),
  manifest: z.string().refine(isAbsolute),
  workspace: z.string().refine(isAbsolute),
  sandbox: z.boolean(),
  /** The flags that it was made with. */
  flags: z.array(z.array(z.string()).min(1).max(2)),
  origin: z.string(),
  user: z.string(),
  edition: z.string(),
  balance: amount.nullable(),
  /** What the variants cost that are made too; plans of before had no such field. */
  ordered: amount.default(0),
  limits: z.object({ minute: z.number().nullable(), day: z.number().nullable() }),
  items: z.array(savedItem),
});

type SavedDocument = z.infer<typeof savedPlan>;
export type SavedPlan = Omit<SavedDocument, "items"> & { items: SavedItems };

/** A file that claims to be a saved plan and cannot be read as one. */
export class DamagedPlan extends Error {
  override readonly name = "DamagedPlan";
}

const beginning = /^\s*\{\s*"bulkgen"\s*:\s*"plan"/;

/**
 * Reads a saved plan from a file in pieces; null for any other file, of which only the first piece is read. Its items
 * are stored in what `open` returns. Throws DamagedPlan.
 */
export function readSavedPlan(pieces: Iterable<Uint8Array>, open: () => SavedItems): SavedPlan | null {
  const splitter = new LineSplitter();
  let lines: PlanLines | null = null;
  for (const piece of pieces) {
    if (lines === null && !beginning.test(Buffer.from(piece).toString())) return null;
    lines ??= new PlanLines(open());
    for (const line of splitter.take(piece)) lines.take(line);
  }
  lines?.take(splitter.last());
  return lines?.plan() ?? null;
}

/**
 * A plan may be longer than a string can be, so it is read as it was written: the first line ends where the items begin,
 * each of them has a line, and the last line closes what the first has opened.
 */
class PlanLines {
  private read = 0;
  private next: "head" | "item" | "end" | "nothing" = "head";
  private head: Omit<SavedPlan, "items"> | null = null;

  constructor(private readonly items: SavedItems) {}

  take(line: string): void {
    this.read++;
    const text = line.trimEnd();
    if (this.next === "head") this.takeHead(text);
    else if (this.next === "item") this.takeItem(text);
    else if (this.next === "end" && text === "]}") this.next = "nothing";
    else if (text !== "") throw this.damagedLine();
  }

  plan(): SavedPlan {
    if (this.head === null || this.next !== "nothing") throw damaged("end");
    return { ...this.head, items: this.items };
  }

  private takeHead(text: string): void {
    const isOpen = text.endsWith('"items":[');
    const document = this.parsed(isOpen ? `${text}]}` : text) as { version?: unknown };
    const { version } = document;
    if (version !== 1)
      throw new DamagedPlan(
        `expected a saved plan of version 1, got version ${JSON.stringify(version ?? null)}`,
      );
    const { items, ...head } = checked(savedPlan, document);
    for (const item of items) this.items.add(item);
    this.head = head;
    this.next = isOpen ? "item" : "nothing";
  }

  private takeItem(text: string): void {
    const isLast = !text.endsWith(",");
    const item = this.parsed(isLast ? text : text.slice(0, -1));
    this.items.add(checked(savedItem, item, ["items", this.items.length]));
    if (isLast) this.next = "end";
  }

  private parsed(text: string): unknown {
    try {
      return JSON.parse(text);
    } catch {
      throw this.damagedLine();
    }
  }

  private damagedLine(): DamagedPlan {
    return damaged(`line ${this.read}`);
  }
}

function checked<Shape extends z.ZodType>(
  shape: Shape,
  value: unknown,
  path: readonly PropertyKey[] = [],
): z.infer<Shape> {
  const read = shape.safeParse(value);
  if (read.success) return read.data;
  throw damaged([...path, ...(read.error.issues[0]?.path ?? [])].join("."));
}

function damaged(what: string): DamagedPlan {
  return new DamagedPlan(`expected a saved plan; its ${what} is missing or damaged`);
}

export function savePlan(
  plan: Plan,
  how: Pick<SavedDocument, "savedAt" | "manifest" | "workspace" | "sandbox"> & {
    flags: readonly (readonly string[])[];
  },
): Omit<SavedDocument, "items"> & { items: Listing<SavedItem> } {
  return {
    ...({ bulkgen: "plan", version: 1 } as const),
    ...how,
    flags: how.flags.map((flag) => [...flag]),
    origin: plan.origin,
    user: plan.user,
    edition: plan.edition,
    balance: plan.money.balance === null ? null : toNumber(plan.money.balance),
    ordered: toNumber(plan.ordered.credits),
    limits: { minute: plan.requests.perMinute, day: plan.requests.perDay },
    items: mapped(plan.items, (item) => ({
      key: item.key,
      row: item.rowNumber,
      id: item.rowId,
      model: item.model,
      credits: toNumber(item.price),
      due: item.due,
      content: contentOf(item),
    })),
  };
}

function contentOf({ prompt, params, inputs }: PlannedItem): Record<string, string> {
  const named = Object.entries(params).map(([key, value]) => [`params.${key}`, value] as const);
  return { prompt: prompt ?? "", ...Object.fromEntries(named), ...inputs };
}

/** One difference from the saved plan. */
export interface Drift {
  message: string;
  /** It is more than the tolerance allows. */
  refused: boolean;
}

/** `tolerance` is in per cent. Improvements are not drift. */
export function driftOf(saved: SavedPlan, plan: Plan, tolerance: number): Drift[] {
  const whose = [
    ...differs("service", saved.origin, plan.origin),
    ...differs("account", saved.user, plan.user),
    ...differs("edition", saved.edition, plan.edition),
  ];
  // Every key contains the account, so nothing else can be compared.
  if (whose.length > 0) return whose;
  const { rows, again, prices, spent, due } = itemDrift(saved.items, plan, tolerance);
  return [
    ...rows,
    ...again,
    ...prices,
    ...orderedDrift(saved, plan, tolerance),
    ...limitDrift(saved.limits.day, plan.requests, tolerance),
    ...balanceDrift(saved, plan, { spent, due }, tolerance),
  ];
}

function differs(what: string, was: string, is: string): Drift[] {
  if (was === is) return [];
  return [{ message: `${what}: planned for ${was || "the first"}, now ${is || "the first"}`, refused: true }];
}

interface ItemDrift {
  rows: Drift[];
  /** Items that were done or had failed when the plan was saved, and are to be paid for now. */
  again: Drift[];
  prices: Drift[];
  /** What this plan's own items have cost since. */
  spent: Credits;
  /** What is still to be paid. */
  due: Credits;
}

function itemDrift(before: SavedItems, { items, unselected }: Plan, tolerance: number): ItemDrift {
  /** By position: whether the item is still part of the sheet. */
  const isThere = new Uint8Array(before.length);
  const again = new RowLines();
  const prices = new Map<string, Drift>();
  let added = 0;
  let more = noCredits;
  let spent = before.planned;
  let left = noCredits;
  for (const { key, model, rowNumber, rowId, price, due, state } of items) {
    if (due) left = plus(left, price);
    const old = before.find(key);
    if (old === undefined) {
      added++;
      continue;
    }
    isThere[old.position] = 1;
    // Failed items have cost nothing.
    if (old.due && (due || state === "failed")) spent = minus(spent, old.credits);
    if (!due) continue;
    if (!old.due) {
      again.add(
        () =>
          `row ${rowNumber} (${rowId}) is due again, ${price === noCredits ? "at no cost" : `for ${inCredits(price)}`}`,
      );
      more = plus(more, price);
    }
    if (price <= old.credits) continue;
    const message = `price: ${model} was ${inCredits(old.credits)}, now ${showCredits(price)}`;
    prices.set(message, { message, refused: over(minus(price, old.credits), old.credits, tolerance) });
  }
  // With --only-failed an item is no longer selected once it is made.
  for (const key of unselected) {
    const old = before.find(key);
    if (old !== undefined) isThere[old.position] = 1;
  }
  const rows = rowLines(before, isThere, added === 0 ? [] : items);
  return {
    rows: rows.drift("manifest", over(rows.count, before.length, tolerance)),
    again: again.drift("items", over(more, before.planned, tolerance)),
    prices: [...prices.values()],
    spent,
    due: left,
  };
}

/** Rows that changed, are new or are gone: a changed row has another key, and the same id. */
function rowLines(before: SavedItems, isThere: Uint8Array, items: Iterable<PlannedItem>): RowLines {
  const lines = new RowLines();
  for (const item of only(items, ({ key }) => before.find(key) === undefined)) {
    const row = `row ${item.rowNumber} (${item.rowId})`;
    const old = before.positionsOf(item.rowId).find((position) => isThere[position] === 0);
    if (old !== undefined) isThere[old] = 1;
    lines.add(() =>
      old === undefined ? `${row} is new` : `${row}: ${fields(before.at(old), item)} changed`,
    );
  }
  for (const [position, there] of isThere.entries()) {
    if (there) continue;
    lines.add(() => {
      const { row, id } = before.at(position);
      return `row ${row} (${id}) is gone`;
    });
  }
  return lines;
}

/** The first lines about rows, and how many there are: all rows may differ. */
class RowLines {
  private static readonly listed = 8;
  private readonly lines: string[] = [];
  count = 0;

  add(line: () => string): void {
    if (this.count++ < RowLines.listed) this.lines.push(line());
  }

  drift(what: string, refused: boolean): Drift[] {
    const more = this.count - this.lines.length;
    const lines =
      more > 0 ? [...this.lines, count(more, "more row differs", "more rows differ")] : this.lines;
    return lines.map((line) => ({ message: `${what}: ${line}`, refused }));
  }
}

function fields(old: SavedItem, item: PlannedItem): string {
  const now = { model: item.model, ...contentOf(item) };
  const was: Record<string, string> = { model: old.model, ...old.content };
  const names = [...new Set([...Object.keys(was), ...Object.keys(now)])];
  const changed = names.filter((name) => was[name] !== (now as Record<string, string>)[name]);
  return changed.length === 0 ? "its file or its order among identical rows" : changed.join(", ");
}

/** Variants that were ordered after the plan was saved are made by its run too. */
function orderedDrift(saved: SavedPlan, { ordered }: Plan, tolerance: number): Drift[] {
  const more = minus(ordered.credits, credits(saved.ordered));
  if (more <= noCredits) return [];
  const message = `orders: ${count(ordered.items, "variant")} ordered by now, for ${inCredits(more)} more than when planned`;
  return [{ message, refused: over(more, saved.items.planned, tolerance) }];
}

/** A smaller limit only takes longer, unless the plan fitted into a day and does not any more. */
function limitDrift(
  was: number | null,
  { atLeast, perDay: is }: Plan["requests"],
  tolerance: number,
): Drift[] {
  if (is === null || atLeast <= is || (was !== null && atLeast > was)) return [];
  const message = `limit: at least ${count(atLeast, "request")} needed, ${was ?? "unlimited"} a day when planned, now ${is}`;
  return [{ message, refused: over(atLeast - is, is, tolerance) }];
}

/**
 * A balance matters as far as the plan needs it: what it covered when the plan was saved, without what the plan's own
 * items have cost since. So an interrupted run may continue.
 */
function balanceDrift(
  saved: SavedPlan,
  { money: { balance } }: Plan,
  { spent, due }: Pick<ItemDrift, "spent" | "due">,
  tolerance: number,
): Drift[] {
  if (saved.balance === null || balance === null || balance >= due) return [];
  const before = credits(saved.balance);
  const { planned } = saved.items;
  const expected = minus(before < planned ? before : planned, spent);
  if (balance >= expected) return [];
  const message = `balance: ${inCredits(expected)} needed, now ${showCredits(balance)}`;
  return [{ message, refused: over(minus(expected, balance), expected, tolerance) }];
}

function over(difference: number, of: number, tolerance: number): boolean {
  return difference * 100 > Math.abs(of) * tolerance;
}
