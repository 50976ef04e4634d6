import { type Credits, inCredits, minus, noCredits, plus, showCredits } from "../core/money.js";
import type { Reaches, Sum } from "./cost.js";
import type { Finding, Fit } from "./plan.js";

/** What a run may spend besides what the balance pays for, and what counts against it already. */
export interface SpendingCaps {
  /** Of the run. */
  total: Spending | null;
  /** Of single models, at which the others go on. */
  models: ReadonlyMap<string, Spending>;
  /** The balance that must be left, with what may yet be taken from it. */
  keep: Credits | null;
  /** Of the day, over all runs of the account. */
  daily: Spending | null;
}

export interface Spending {
  most: Credits;
  spent: Credits;
}

/** What there is to spend. */
export interface Purse {
  caps: SpendingCaps;
  /** Null where the service does not tell it: the service judges then, and nothing can be kept of it. */
  balance: Credits | null;
}

export const noCaps: SpendingCaps = { total: null, models: new Map(), keep: null, daily: null };

/** A cap of the whole run, by its flag, and what it leaves to spend. */
interface Room {
  cap: "max-credits" | "max-credits-per-day" | "keep-credits";
  room: Credits;
}

/** The cap that leaves least; null where there is none. */
export function tightest({ caps, balance }: Purse): Room | null {
  const rooms: Room[] = [];
  if (caps.total) rooms.push({ cap: "max-credits", room: roomOf(caps.total) });
  if (caps.daily) rooms.push({ cap: "max-credits-per-day", room: roomOf(caps.daily) });
  if (caps.keep !== null)
    rooms.push({ cap: "keep-credits", room: Math.max(0, minus(balance ?? noCredits, caps.keep)) as Credits });
  const [least] = rooms.toSorted((a, b) => a.room - b.room);
  return least ?? null;
}

function roomOf({ most, spent }: Spending): Credits {
  return Math.max(0, minus(most, spent)) as Credits;
}

/** What the caps of models leave to spend on each. */
export function modelRooms({ models }: SpendingCaps): Map<string, Credits> {
  return new Map([...models].map(([model, spending]) => [model, roomOf(spending)]));
}

/** What caps will leave undone, a line for each that does. */
export function capWarnings(sums: readonly Sum[], purse: Purse, { models, caps }: Reaches): Finding[] {
  const found = tightest(purse);
  const undone = models.fit.items - caps.fit.items;
  if (found === null || undone === 0) return modelWarnings(sums, purse, models.made);
  const needed = plus(...sums.map((sum) => sum.credits));
  const today = found.cap === "max-credits-per-day" ? " today" : "";
  const message = `The run needs ${inCredits(needed)} and --${found.cap} leaves ${showCredits(found.room)}${today}: ${reachText(caps.fit)}; ${undoneText(undone)}.`;
  return [
    { kind: "over_cap", message, ...found, needed, undone, reaches: caps.fit },
    ...modelWarnings(sums, purse, models.made),
  ];
}

function modelWarnings(sums: readonly Sum[], { caps }: Purse, made: ReadonlyMap<number, number>): Finding[] {
  return [...modelRooms(caps)].flatMap(([model, room]): Finding[] => {
    const own = sums.filter((sum) => sum.model === model);
    const needed = plus(...own.map((sum) => sum.credits));
    if (needed <= room) return [];
    const due = own.reduce((count, sum) => count + sum.due, 0);
    const undone = due - own.reduce((count, { group }) => count + (made.get(group) ?? 0), 0);
    const message = `${model} needs ${inCredits(needed)} and --max-credits-per-model leaves ${showCredits(room)}: ${undone} of its ${due} ${undone === 1 ? "items stays" : "items stay"} undone.`;
    return [{ kind: "over_model_cap", message, model, needed, room, undone }];
  });
}

/** How far credits reach, as the rest of a sentence. */
export function reachText(fit: Fit): string {
  if (fit.rowNumber === null) return "it does not pay for the first item";
  const items = fit.items === 1 ? "1 item" : `${fit.items} items`;
  return `it reaches for ${items}, up to row ${fit.rowNumber} (${fit.rowId})`;
}

function undoneText(count: number): string {
  return count === 1 ? "1 item stays undone" : `${count} items stay undone`;
}
