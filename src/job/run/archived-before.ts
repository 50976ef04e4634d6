import { existsSync } from "node:fs";
import { join } from "node:path";
import { jobFolder } from "../../archive/disk/job-folder.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { indexName, JobIndex } from "../../archive/index-file.js";
import { inCredits, noCredits, plus } from "../../core/money.js";
import type { Draft } from "../../core/ports/draft.js";
import type { Finding, Plan } from "../../plan/plan.js";
import type { PrepareOptions } from "./prepare.js";

/**
 * What the history does not know may have its files in the archive all the same: its workspace was deleted or not brought
 * along, or others share the output folder. It would be paid for again. Null where nothing of the plan is there, where
 * all is to be made anew, and for a rehearsal. Rejects with errors of the disk.
 */
export async function archivedBefore(
  { workspace, edition, sandbox }: Pick<PrepareOptions, "workspace" | "edition" | "sandbox">,
  plan: Pick<Plan, "job" | "items" | "standings">,
  draft: Pick<Draft, "holds">,
): Promise<Finding | null> {
  const { root, outFolder } = workspace;
  const folder = jobFolder({ outFolder, jobName: plan.job });
  if (sandbox || edition === "fresh" || !plan.standings.new) return null;
  if (!existsSync(join(folder, indexName))) return null;
  const lines = (await JobIndex.open(nodeDisk, folder)).all().filter(({ key }) => draft.holds(key));
  const byKey = new Map(lines.map((line) => [line.key, line]));
  if (byKey.size === 0) return null;
  let [items, price, newest] = [0, noCredits, ""];
  for (const { key, due, standing, price: each } of plan.items) {
    const line = due && standing === "new" ? byKey.get(key) : undefined;
    // What is gone is missed by whoever asks for it.
    if (line === undefined || !existsSync(join(folder, line.file))) continue;
    items++;
    price = plus(price, each);
    if (line.saved > newest) newest = line.saved;
  }
  if (items === 0) return null;
  const all = plan.items.length;
  const what = `${items} of ${all === 1 ? "1 item is" : `${all} items are`} in the archive ${folder} (the newest from ${newest.slice(0, 10)})`;
  const out = outFolder === join(root, "outputs") ? "" : ` --out ${outFolder}`;
  const ways = `\`bulkgen doctor --rebuild${out}\` in ${root} brings them back, --fresh or another --edition makes them anew`;
  return {
    kind: "archived_before",
    message: `${what}, the workspace's history does not know them, and they would be paid again, for ${inCredits(price)}: ${ways}.`,
  };
}
