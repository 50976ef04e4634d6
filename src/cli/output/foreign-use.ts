import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { Display } from "./display.js";
import { confirmed } from "./question.js";

/** Whether to buy although the key was charged for requests that this machine did not send. Asks on a terminal. */
export async function agreesToForeignUse(
  what: string,
  flags: { acceptForeignUse?: boolean },
  {
    display,
    interrupt,
    machine,
  }: { display: Pick<Display, "end">; interrupt: AbortSignal; machine: Machine },
): Promise<boolean> {
  if (flags.acceptForeignUse) return true;
  if (!machine.stdin.isTTY) return false;
  display.end();
  machine.stderr.write(`bulkgen: ${what}.\n`);
  const question = { would: "", question: "Continue all the same?", done: "submitted" };
  if (await confirmed({}, machine, interrupt, question)) return true;
  throw new EarlyExit("usage", "not confirmed; nothing was submitted");
}
