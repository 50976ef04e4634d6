import type { Reason } from "../../core/reason.js";
import type { Machine } from "../../machine.js";
import { reasonText } from "../../report/progress.js";

/** Shorter waits are over before a person wonders (ms). */
const saidFromMs = 2_000;

/** Returns a function that prints on stderr why a command without a progress display waits, such as a plan in a pause of the service. */
export function waitPrinter({ stderr, clock }: Pick<Machine, "stderr" | "clock">) {
  return (reason: Reason): void => {
    const now = clock.now();
    if ((reason.until ?? now) - now >= saidFromMs) stderr.write(`bulkgen: ${reasonText(reason, now)}\n`);
  };
}
