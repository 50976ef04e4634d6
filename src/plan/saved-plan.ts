import { z } from "zod";
import {
  type Credits,
  credits,
  inCredits,
  minus,
  noCredits,
  plus,
  showCredits,
  sumOf,
  toNumber,
} from "../core/money.js";
import type { PlannedItem } from "../core/ports/draft.js";
import { type Listing, mapped, only } from "../text/listing.js";
import type { Plan } from "./plan.js";

/**
 * A plan in a file, and what has changed since it was saved. A run of it begins only when manifest, prices, limits and
 * balance are what they were, or off by no more than the tolerance; another account is never the same plan.
 */
const savedItem = z.object({
  key: z.string(),
  row: z.number(),
  id: z.string(),
  model: z.string(),
  credits: z.number(),
  due: z.boolean(),
  content: z.record(z.string(), z.string()),
});

const savedPlan = z.object({
  bulkgen: z.literal("plan"),
  version: z.literal(1),
  savedAt: z.string(),
  /** Absolute paths. */
  manifest: z.string(),
  workspace: z.string(),
  sandbox: z.boolean(),
  /** The flags that it was made with. */
  flags: z.array(z.array(z.string()).min(1).max(2)),
  origin: z.string(),
  user: z.string(),
  edition: z.string(),
  balance: z.number().nullable(),
  limits: z.object({ minute: z.number().nullable(), day: z.number().nullable() }),
  items: z.array(savedItem),
});

export type SavedPlan = z.infer<typeof savedPlan>;
type SavedItem = z.infer<typeof savedItem>;

/** Whether a JSON document claims to be a saved plan. */
export function isSavedPlan(document: unknown): boolean {
  return (document as { bulkgen?: unknown } | null)?.bulkgen === "plan";
}

/** Throws an error that describes the document's problem. */
export function readSavedPlan(document: unknown): SavedPlan {
  const { version } = document as { version?: unknown };
  if (version !== 1)
    throw new Error(`expected a saved plan of version 1, got version ${JSON.stringify(version ?? null)}`);
  const read = savedPlan.safeParse(document);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new Error(`expected a saved plan; its ${issue?.path.join(".")} is missing or damaged`);
}

export function savePlan(
  plan: Plan,
  how: Pick<SavedPlan, "savedAt" | "manifest" | "workspace" | "sandbox"> & {
    flags: readonly (readonly string[])[];
  },
): Omit<SavedPlan, "items"> & { items: Listing<SavedItem> } {
  return {
    ...({ bulkgen: "plan", version: 1 } as const),
    ...how,
    flags: how.flags.map((flag) => [...flag]),
    origin: plan.origin,
    user: plan.user,
    edition: plan.edition,
    balance: plan.money.balance === null ? null : toNumber(plan.money.balance),
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
  return [
    ...manifestDrift(saved, plan, tolerance),
    ...dueDrift(saved, plan, tolerance),
    ...priceDrift(saved, plan, tolerance),
    ...limitDrift("requests a minute", saved.limits.minute, plan.requests.perMinute, tolerance),
    ...limitDrift("requests a day", saved.limits.day, plan.requests.perDay, tolerance),
    ...balanceDrift(saved, plan, tolerance),
  ];
}

function differs(what: string, was: string, is: string): Drift[] {
  if (was === is) return [];
  return [{ message: `${what}: planned for ${was || "the first"}, now ${is || "the first"}`, refused: true }];
}

/** How many rows are listed. */
const rowsMax = 8;

function manifestDrift(saved: SavedPlan, { items, unselected }: Plan, tolerance: number): Drift[] {
  const before = new Map(saved.items.map((item) => [item.key, item]));
  const now = new Set(mapped(items, (item) => item.key));
  // With --only-failed an item is not selected any more once it is made.
  for (const key of unselected) now.add(key);
  const gone = new Map(saved.items.filter(({ key }) => !now.has(key)).map((item) => [item.id, item]));
  const lines: string[] = [];
  for (const item of only(items, ({ key }) => !before.has(key))) {
    const old = gone.get(item.rowId);
    gone.delete(item.rowId);
    const row = `row ${item.rowNumber} (${item.rowId})`;
    lines.push(old ? `${row}: ${fields(old, item)} changed` : `${row} is new`);
  }
  for (const item of gone.values()) lines.push(`row ${item.row} (${item.id}) is gone`);
  return aboutRows("manifest", lines, over(lines.length, saved.items.length, tolerance));
}

function aboutRows(what: string, lines: readonly string[], refused: boolean): Drift[] {
  const more = lines.length - rowsMax;
  const told = more > 0 ? [...lines.slice(0, rowsMax), `${more} more rows differ`] : lines;
  return told.map((line) => ({ message: `${what}: ${line}`, refused }));
}

/** Items that were done or had failed when the plan was saved, and are to be paid for now. */
function dueDrift(saved: SavedPlan, { items }: Plan, tolerance: number): Drift[] {
  const before = new Map(saved.items.map((item) => [item.key, item]));
  const lines: string[] = [];
  let more = noCredits;
  for (const { key, rowNumber, rowId, price, due } of items) {
    if (!due || before.get(key)?.due !== false) continue;
    lines.push(`row ${rowNumber} (${rowId}) is due again, for ${inCredits(price)}`);
    more = plus(more, price);
  }
  const planned = saved.items.filter(({ due }) => due).map((item) => credits(item.credits));
  return aboutRows("items", lines, over(more, sumOf(planned), tolerance));
}

function fields(old: SavedItem, item: PlannedItem): string {
  const now = { model: item.model, ...contentOf(item) };
  const was: Record<string, string> = { model: old.model, ...old.content };
  const names = [...new Set([...Object.keys(was), ...Object.keys(now)])];
  const changed = names.filter((name) => was[name] !== (now as Record<string, string>)[name]);
  return changed.length === 0 ? "its file or its order among identical rows" : changed.join(", ");
}

function priceDrift(saved: SavedPlan, { items }: Plan, tolerance: number): Drift[] {
  const before = new Map(saved.items.map((item) => [item.key, item]));
  const dearer = new Map<string, Drift>();
  for (const { key, model, price, due } of items) {
    const old = before.get(key);
    if (!old || !due) continue;
    const was = credits(old.credits);
    if (price <= was) continue;
    const message = `price: ${model} was ${inCredits(was)}, now ${showCredits(price)}`;
    dearer.set(message, { message, refused: over(minus(price, was), was, tolerance) });
  }
  return [...dearer.values()];
}

function limitDrift(what: string, was: number | null, is: number | null, tolerance: number): Drift[] {
  if (is === null || (was !== null && is >= was)) return [];
  const refused = was === null || over(was - is, was, tolerance);
  return [{ message: `limit: ${was ?? "unlimited"} ${what} when planned, now ${is}`, refused }];
}

/**
 * The cost of this plan's own items is not drift: an interrupted run of it may continue. Failed items have cost nothing.
 */
function balanceDrift(saved: SavedPlan, { items, money }: Plan, tolerance: number): Drift[] {
  const { balance } = money;
  if (saved.balance === null || balance === null) return [];
  const unpaid = new Set<string>();
  for (const { key, due, standing } of items) if (due || standing === "failed") unpaid.add(key);
  const own = saved.items.filter((item) => item.due && !unpaid.has(item.key));
  const spent = own.reduce<Credits>((sum, item) => plus(sum, credits(item.credits)), noCredits);
  const expected = minus(credits(saved.balance), spent);
  if (balance >= expected) return [];
  const message = `balance: ${inCredits(expected)} expected, now ${showCredits(balance)}`;
  return [{ message, refused: over(minus(expected, balance), expected, tolerance) }];
}

function over(difference: number, of: number, tolerance: number): boolean {
  return difference * 100 > Math.abs(of) * tolerance;
}
