import type { WaitReason } from "../../core/quota/quota.js";
import type { Machine } from "../../machine.js";
import { waitingLine } from "../../report/progress.js";

/** Shorter waits are over before a person wonders (ms). */
const saidFromMs = 2_000;

/** Says on stderr why a command without a progress display waits, such as a plan in a pause of the service. */
export function toldWait({ stderr, clock }: Pick<Machine, "stderr" | "clock">) {
  return (what: WaitReason, until: number): void => {
    const now = clock.now();
    if (until - now >= saidFromMs) stderr.write(`bulkgen: ${waitingLine(what, until, now)}\n`);
  };
}
