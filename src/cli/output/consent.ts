import { EarlyExit } from "../../core/exit.js";
import type { Credits } from "../../core/money.js";
import type { Plan } from "../../plan/plan.js";
import { offerText, planText } from "../../report/plan-table.js";
import { terminalStyle } from "../../text/table.js";
import type { Prepared } from "./session.js";

interface ConsentFlags {
  yes?: boolean;
  json?: boolean;
  quiet?: boolean;
}

/** Where the question is asked, and the signal that ends the wait for an answer. */
type Asking = Pick<Prepared, "display" | "options">;

/** Shows what a run would cost and asks; `--yes` answers. Throws EarlyExit where nobody can be asked. */
export async function askConsent(
  plan: Plan,
  flags: ConsentFlags,
  { display, options }: Asking,
): Promise<boolean> {
  if (!flags.quiet && !flags.json)
    display.say(planText(plan, process.cwd(), terminalStyle(process.stderr, process.env)));
  return plan.due === 0 || confirmed(flags, options.interrupt);
}

/** Shows a few items with their price and asks. Throws EarlyExit where nobody can be asked. */
export async function askPrice(
  offer: { what: string; items: readonly { rowId: string; price: Credits }[]; credits: Credits },
  flags: ConsentFlags,
  { display, options }: Asking,
): Promise<boolean> {
  if (!flags.quiet && !flags.json) display.say(offerText(offer.what, offer.items, offer.credits));
  return confirmed(flags, options.interrupt);
}

/** Asks, whatever it is about. Throws EarlyExit where nobody can be asked. */
export async function confirmed(
  flags: Pick<ConsentFlags, "yes">,
  interrupt: AbortSignal,
  { would, done } = { would: "this run would spend credits", done: "submitted" },
): Promise<boolean> {
  if (flags.yes) return true;
  if (!process.stdin.isTTY) {
    throw new EarlyExit(
      "usage",
      `${would} and there is no terminal to ask on: add --yes. Nothing was ${done}.`,
    );
  }
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const unanswered = new AbortController();
  terminal.once("SIGINT", () => unanswered.abort("interrupted"));
  // Ctrl-D, or a terminal that went away: nobody says yes.
  terminal.once("close", () => unanswered.abort("closed"));
  const signal = AbortSignal.any([unanswered.signal, interrupt]);
  try {
    const answer = await terminal.question("Go on? [y/N] ", { signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    if (!signal.aborted) throw error;
    process.stderr.write("\n");
    if (!interrupt.aborted && unanswered.signal.reason !== "interrupted") return false;
    throw new EarlyExit("interrupted", `interrupted; nothing was ${done}`);
  } finally {
    terminal.close();
  }
}
