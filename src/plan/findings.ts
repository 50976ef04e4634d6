import { announcedIn } from "../api/announced.js";
import { type InputType, inputTypes, mediaFields, requiredFor } from "../api/inputs.js";
import type { Me, Model } from "../api/records.js";
import { serviceTime } from "../api/times.js";
import { budgetText } from "../core/budget.js";
import { inCredits, noCredits, showCredits, sumOf } from "../core/money.js";
import type { NewItem } from "../core/ports/store.js";
import { lateMsMax } from "../core/quota/quota.js";
import { foldedName, paramColumn } from "../manifest/shape/columns.js";
import type { Row } from "../manifest/shape/manifest.js";
import { count } from "../text/amounts.js";
import { localTime } from "../text/times.js";
import type { CheckedRow } from "./check-row.js";
import { coverageText } from "./cost.js";
import type { Finding, Fit, Money, OnMissing, Requests } from "./plan.js";

/** What blocks a run: the subscription, or a balance that is too small. */
export function blockersOf(me: Me, money: Money, fit: Fit): Finding[] {
  const blockers: Finding[] = [];
  if (me.subscription === null) {
    blockers.push({
      kind: "no_subscription",
      message: "The account has no active subscription: choose a plan in your dashboard first.",
    });
  } else if (me.subscription.status === "past_due") {
    blockers.push({
      kind: "past_due",
      message: "The subscription payment is past due: pay it in your dashboard first.",
    });
  }
  // If a cap ends the run before the balance does, the balance does not block it.
  const { needed, within, balance } = money;
  if (balance !== null && needed > noCredits && within > balance) {
    const { budget } = announcedIn(me);
    const left = budget
      ? `, and this key has ${budgetText(budget)}`
      : ` and the balance is ${showCredits(balance)}`;
    blockers.push({
      kind: "insufficient_credits",
      message: `The run needs ${inCredits(needed)}${left}: ${coverageText(fit)}.`,
      needed,
      balance,
      coverage: fit,
    });
  }
  return blockers;
}

/** Warnings: a run can handle these, but the user should know. */
export function warningsOf(me: Me, money: Money, requests: Requests): Finding[] {
  const warnings: Finding[] = [];
  if (money.balance === null) {
    const message = "The service does not report the balance, so the run may stop with too few credits.";
    warnings.push({ kind: "unreported_balance", message });
  }
  const status = me.subscription?.status;
  if (me.subscription && status === "canceled") {
    const until = me.subscription.current_period_end;
    warnings.push({ kind: "canceled", message: `The subscription is canceled and ends on ${until}.`, until });
  } else if (status !== undefined && status !== "active" && status !== "past_due") {
    const message = `The subscription's status "${status}" is unknown to this version of bulkgen; the run continues and the service decides.`;
    warnings.push({ kind: "unknown_subscription", message, status });
  }
  warnings.push(...periodWarnings(me, requests));
  const { atLeast, perDay } = requests;
  if (perDay !== null && atLeast > perDay) {
    const message = `The run needs at least ${atLeast} requests and the plan allows ${perDay} in 24 hours, so it will take several days.`;
    warnings.push({ kind: "day_limit", message, atLeast, perDay });
  }
  return warnings;
}

/** Warns if a request may arrive after the last counter reading: it would count as not charged and be sent again. */
export function settlingWarning([, last]: readonly [number, number]): Finding[] {
  if (last >= lateMsMax) return [];
  const [seconds, atLeast] = [last / 1_000, lateMsMax / 1_000];
  const message =
    `--settle-seconds decides ${seconds} s after a lost request whether it was charged, but it may still arrive up to ${atLeast} s later. ` +
    `It could then be paid for twice. Expected at least ${atLeast} as the last value, got ${seconds}.`;
  return [{ kind: "early_settling", message, seconds, atLeast }];
}

/** A run whose submitting ends before everything is made. */
export function deadlineWarning({ finishAt }: Requests, deadline: number | null): Finding[] {
  if (deadline === null || finishAt === null || finishAt <= deadline) return [];
  const message = `Submitting ends at ${localTime(deadline)}, and the run takes until about ${localTime(finishAt)}: some items may be left for the next run.`;
  return [{ kind: "deadline", message, until: new Date(deadline).toISOString(), finishAt }];
}

/** A period that ends, for good or before the run does. */
function periodWarnings({ subscription }: Me, { finishAt }: Requests): Finding[] {
  if (subscription === null) return [];
  const { current_period_end: until, cancel_at_period_end: ends, status } = subscription;
  const end = serviceTime(until);
  const warnings: Finding[] = [];
  if (ends && status !== "canceled") {
    const message = `The subscription ends with its period, on ${until}, and is not renewed.`;
    warnings.push({ kind: "ends", message, until });
  }
  if (finishAt === null || Number.isNaN(end) || finishAt <= end) return warnings;
  const then =
    ends || status === "canceled"
      ? "items left by then will be refused"
      : "the run continues if the next period is paid";
  const message = `The subscription's period ends on ${until}, and the run takes until about ${localTime(finishAt)}: ${then}.`;
  return [...warnings, { kind: "period_ends", message, until, finishAt }];
}

/** Archived items whose files are gone, and how to get them back. */
export function missingWarning(
  missing: readonly Pick<NewItem, "rowId" | "price">[],
  way: OnMissing,
): Finding[] {
  if (missing.length === 0) return [];
  const items = missing.map(({ rowId }) => rowId);
  const credits = sumOf(missing.map(({ price }) => price));
  const named = items.slice(0, namesMax).join(", ");
  const more = items.length > namesMax ? ` and ${items.length - namesMax} more` : "";
  const what = `${count(missing.length, "archived item has", "archived items have")} lost files (${named}${more})`;
  const consequence = {
    report: `--missing fetch downloads them again at no cost while the service has them, --missing pay makes them again${credits === noCredits ? "" : ` for ${inCredits(credits)}`}`,
    fetch: "they are downloaded again at no cost",
    pay:
      credits === noCredits
        ? "they are made again at no cost"
        : `they are made and paid for again: ${inCredits(credits)}`,
  }[way];
  return [{ kind: "missing_files", message: `${what}: ${consequence}.`, items, credits }];
}

const namesMax = 5;

/** How many different notes are listed: every cell may have been changed in another way. */
const aboutMax = 100;
const numbersMax = 5;

/** A note about several rows, with the first row numbers. */
export class Gathered {
  private readonly numbers = new Map<string, { first: number[]; last: number; count: number }>();
  private more = 0;

  add(about: string, number: number): void {
    const known = this.numbers.get(about);
    if (known === undefined && this.numbers.size >= aboutMax) this.more++;
    else if (known === undefined) this.numbers.set(about, { first: [number], last: number, count: 1 });
    else if (known.last !== number) {
      known.last = number;
      known.count++;
      if (known.first.length < numbersMax) known.first.push(number);
    }
  }

  lines(): string[] {
    const lines = [...this.numbers].map(([about, { first, count }]) => {
      const more = count > first.length ? ` and ${count - first.length} more` : "";
      return `${about} (${count === 1 ? "row" : "rows"} ${first.join(", ")}${more})`;
    });
    return this.more === 0 ? lines : [...lines, `and ${this.more} more like these`];
  }
}

/** The fields that some input type names. None is for sound, so no type can exclude sound. */
const judged = mediaFields.filter((field) => inputTypes.some((type) => requiredFor(type).includes(field)));

const none: string[] = [];

/** A whole text in one pair of quotes: of a sheet in which other quotes stand for those of CSV, or of a spreadsheet. */
const quoted = /^\s*(?:"[^"]*"|'[^']*'|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|‘[^‘’]*’)\s*$/;

/** Collects notes about rows: a million similar rows become one line. */
export class Notes {
  private readonly inputs = new Gathered();
  private readonly leftOut = new Map<string, Set<string>>();
  private readonly repaired = new Gathered();
  private readonly quotes = new Gathered();

  add({ row, model, without, repairs }: CheckedRow): void {
    if (model !== null) {
      for (const about of inputNotes(row, model)) this.inputs.add(about, row.number);
      for (const { key } of without)
        this.leftOut.set(key, (this.leftOut.get(key) ?? new Set()).add(model.model_key));
    }
    for (const { column, from, to } of repairs)
      this.repaired.add(`${column}: "${from}" was read as "${to}"`, row.number);
    if (quoted.test(row.prompt ?? ""))
      this.quotes.add("the prompt is in quotes, which are sent with it", row.number);
  }

  /** `taken` are the defaults that some model takes. */
  all(taken: ReadonlySet<string>): string[] {
    const left = [...this.leftOut].filter(([key]) => taken.has(key));
    return [
      ...this.inputs.lines(),
      ...left.map(
        ([key, models]) =>
          `the default ${key} is left out for ${[...models].join(", ")}, which ${models.size === 1 ? "does" : "do"} not accept it`,
      ),
      ...this.repaired.lines(),
      ...this.quotes.lines(),
    ];
  }
}

/** Inputs that do not match a model's input type. They are sent anyway: the service decides. */
function inputNotes(row: Row, model: Model): string[] {
  if (!inputTypes.includes(model.input_type as InputType)) return [];
  const said = judged.filter((field) => row.inputs[field] !== undefined);
  if (said.length === 0) return none;
  const takes = requiredFor(model.input_type);
  return said
    .filter((field) => !takes.includes(field))
    .map((field) => `model ${model.model_key} does not list ${field} as an input; it is sent anyway`);
}

/** Whether the service lists what a model needs, and no prompt among it. It may take one all the same. */
export function listsNoPrompt({ input_type: type }: Model): boolean {
  return inputTypes.includes(type as InputType) && !requiredFor(type).includes("prompt");
}

/** Items that are bought again for a prompt that their model does not list. */
export function changedPromptNotes(changed: Iterable<{ model: string; number: number }>): string[] {
  const gathered = new Gathered();
  for (const { model, number } of changed)
    gathered.add(
      `model ${model} does not list prompt as an input; it is sent anyway, and its change alone makes a new item`,
      number,
    );
  return gathered.lines();
}

/** A column `aspect_ratio` does nothing; its author most likely meant `params.aspect_ratio`. */
export function unusedParamColumns(unused: readonly string[], models: readonly Model[]): Finding[] {
  return unused.flatMap((column) => {
    const name = foldedName(column);
    const taking = models.filter((model) => model.parameters?.some(({ key }) => key === name));
    if (taking.length === 0) return [];
    const message = `column "${column}" does nothing; did you mean "${paramColumn(name)}"?`;
    return { kind: "unused_param_column", message, column, models: taking.map((model) => model.model_key) };
  });
}
