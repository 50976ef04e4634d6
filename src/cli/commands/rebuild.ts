import { type RebuildOffer, rebuildWorkspace } from "../../job/rebuild/rebuild.js";
import { count } from "../../report/amounts.js";
import { lookFor } from "../../report/look.js";
import { rebuiltText } from "../../report/rebuilt.js";
import { systemClock } from "../../system.js";
import type { SharedFlags } from "../flags/shared.js";
import { confirmed } from "../output/consent.js";
import { workspaceOf } from "../output/job-options.js";
import { interruption } from "../output/signals.js";

/** `bulkgen doctor --rebuild`. */
export async function rebuild(flags: SharedFlags & { out?: string; yes?: boolean }): Promise<void> {
  const interrupt = interruption();
  const rebuilt = await rebuildWorkspace({
    workspace: workspaceOf(flags),
    clock: systemClock,
    consent: (offer) => {
      if (!flags.quiet && !flags.json) process.stderr.write(`${offerText(offer)}\n`);
      const would = offer.present ? "this would replace the database" : "this would make a database";
      return confirmed(flags, interrupt, { would, done: "changed" });
    },
  });
  const { counts, ...facts } = rebuilt;
  const text = flags.json
    ? JSON.stringify({ ...facts, counts })
    : rebuiltText(rebuilt, lookFor(process.stdout, process.env));
  process.stdout.write(`${text}\n`);
}

function offerText({ database, found, present, readable }: RebuildOffer): string {
  const come = `${count(found, "item")} would come back from receipts and archive`;
  if (!present) return `${database} is missing; ${come}.`;
  const now =
    readable === null
      ? "cannot be read"
      : `can be read and knows ${count(readable, "item")}: what only it knows would be gone`;
  return `${database} ${now}; ${come}. The old database is kept beside it.`;
}
