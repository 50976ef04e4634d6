import { EarlyExit } from "../../core/exit.js";
import {
  type Credits,
  credits,
  inCredits,
  noCredits,
  plus,
  priceText,
  showCredits,
} from "../../core/money.js";
import type { Log } from "../../core/ports/send.js";
import type { Offer } from "../../job/orders/request.js";
import type { Plan } from "../../plan/plan.js";
import { offerText, planText } from "../../report/plan-table.js";
import { count } from "../../text/amounts.js";
import { terminalStyle } from "../../text/terminal-style.js";
import type { PreparedRun } from "./job-options.js";
import { confirmed, type YesQuestion } from "./question.js";

interface ConsentFlags {
  yes?: boolean;
  /** In credits. */
  maxPrice?: number;
  json?: boolean;
  quiet?: boolean;
}

/** The terminal for the question, and the signal that ends the wait for an answer. */
type Asking = Pick<PreparedRun, "display" | "options" | "machine">;

/** Shows what a run would cost and asks; `--yes` answers. Throws EarlyExit without a terminal to ask on. */
export async function askConsent(
  plan: Plan,
  flags: ConsentFlags,
  { display, options, machine }: Asking,
): Promise<boolean> {
  const { cwd, stderr, env } = machine;
  // A plan that is refused does not come this far.
  if (!flags.quiet && !flags.json) display.say(planText(plan, cwd, terminalStyle(stderr, env), []));
  else sayLost(plan, options.log);
  const toMake = plan.due + plan.ordered.items;
  if (toMake === 0) return true;
  display.end();
  const { needed, within, after } = plan.money;
  const items = `${within < needed ? "up to " : ""}${count(toMake, "item")}`;
  const left = after === null || after < 0 ? "" : ` (${showCredits(after)} left after)`;
  if (isWithin(flags, within) || within === noCredits) return true;
  return confirmed(flags, machine, options.interrupt, spending(within, `${items}${left}`));
}

/** The summary counts items with lost files as archived, and a nightly run shows nobody its plan. */
function sayLost({ warnings }: Plan, log: Log): void {
  for (const { kind, message } of warnings) if (kind === "missing_files") log.warn({}, message);
}

/** Whether the price was agreed to beforehand by --max-price. Throws EarlyExit if it is higher. */
export function isWithin({ maxPrice }: Pick<ConsentFlags, "maxPrice">, price: Credits): boolean {
  if (maxPrice === undefined) return false;
  if (price <= credits(maxPrice)) return true;
  throw new EarlyExit(
    "usage",
    `the price is ${inCredits(price)}, more than --max-price ${maxPrice} allows. Nothing was submitted.`,
  );
}

/** Shows a few items with their price, counts those that are submitted with them, and asks. Throws EarlyExit as above. */
export async function askPrice(
  { what, items, credits: offered, rest, note }: Offer & { what: string },
  flags: ConsentFlags,
  { display, options, machine }: Asking,
): Promise<boolean> {
  if (!flags.quiet && !flags.json) {
    if (items.length > 0) display.say(offerText(what, items, offered));
    if (rest.items > 0)
      display.say(
        `continuing the run also submits ${count(rest.items, "other item")}, ${priceText(rest.credits)}`,
      );
    if (note !== null) display.say(note);
  }
  display.end();
  const price = plus(offered, rest.credits);
  if (isWithin(flags, price) || price === noCredits) return true;
  return confirmed(
    flags,
    machine,
    options.interrupt,
    spending(price, count(items.length + rest.items, "item")),
  );
}

export function spending(credits: Credits, what: string): YesQuestion {
  return {
    would: "this run would spend credits",
    question: `Spend ${inCredits(credits)} on ${what}?`,
    done: "submitted",
  };
}
