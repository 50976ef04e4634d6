import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type IndexLine, indexName, JobIndex } from "../../archive/index-file.js";
import { itemKeys } from "../../core/identity.js";
import { inCredits } from "../../core/money.js";
import type { NewItem } from "../../core/ports/store.js";
import { hasReference } from "../../core/reference.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { indexFiles } from "../workspace/history.js";
import type { AskedPlan, KnownItems, PaymentSource, Question } from "./question.js";

interface Archived {
  line: IndexLine;
  folder: string;
  isGone: boolean;
}

/**
 * Items that the history does not have, or has as unpaid, may be in the archive's index: the workspace was deleted, left
 * behind or restored from an older copy, or others share the output folder. Without any history, the archives of other
 * jobs count too, because the sheet may have been renamed. Rejects with disk errors.
 */
export async function inArchive(
  plan: AskedPlan,
  { workspace, store, runs, agreed, draft, who, otherOrigins }: Question,
): Promise<PaymentSource<Archived>> {
  const { root, outFolder } = workspace;
  const own = jobFolder({ outFolder, jobName: plan.job });
  const mayBeRenamed = !agreed && runs.length === 0;
  const isWanted = (key: string) => otherOrigins.length > 0 || draft.holds(key);
  const lines = await linesIn(mayBeRenamed ? indexFiles(outFolder).map(dirname) : [own], isWanted);
  // A key has the address in it, so what was made at another address of the service has another key.
  const keysElsewhere = otherOrigins.map((origin) =>
    itemKeys({ origin, account: who.user, edition: plan.edition }),
  );
  const lineOf = ({ key, inputs, files, ...item }: NewItem) => {
    const found = lines.get(key);
    if (found !== undefined || hasReference(inputs)) return found;
    const others = keysElsewhere.map((keyOf) => keyOf({ ...item, inputs: { ...inputs, ...files } }));
    return others.map((other) => lines.get(other)).find((line) => line !== undefined);
  };
  const unknown = async ({ line, folder }: { line: IndexLine; folder: string }) => {
    // The history knows the file: another request followed its task, or it is another job's in the same folder.
    if (line.task !== "" && (await store?.find(line.task))?.length) return undefined;
    // Once the history is back, --missing decides about these.
    const isGone = line.bucket === undefined && !existsSync(join(folder, line.file));
    return isGone && line.task === "" ? undefined : { line, folder, isGone };
  };
  return {
    has(item) {
      const found = lineOf(item);
      return found && unknown(found);
    },
    finding({ found: those, credits }: KnownItems<Archived>, { items: all }) {
      const gone = those.filter(({ by }) => by.isGone).length;
      const newest = those
        .map(({ by }) => by)
        .reduce((newest, by) => (by.line.saved > newest.line.saved ? by : newest));
      const from = `the newest from ${newest.line.saved.slice(0, 10)}${gone > 0 ? `; the files of ${gone} are gone` : ""}`;
      const what = `${those.length} of ${count(all.length, "item")} ${those.length === 1 ? "is" : "are"} in the archive ${newest.folder} (${from})`;
      const out = outFolder === join(root, "outputs") ? "" : ` --out ${shellWord(outFolder)}`;
      const ways = `\`bulkgen doctor --rebuild${out}\` in ${root} restores them, --fresh or another --edition makes them again`;
      const message = `${what}, the workspace's history does not know them, and they would be paid again, for ${inCredits(credits)}: ${ways}.`;
      return { refused: true, finding: { kind: "archived_before", message } };
    },
  };
}

/** The index lines of wanted items in some jobs' folders, by item key. */
async function linesIn(
  folders: readonly string[],
  isWanted: (key: string) => boolean,
): Promise<Map<string, { line: IndexLine; folder: string }>> {
  const byKey = new Map<string, { line: IndexLine; folder: string }>();
  for (const folder of folders) {
    if (!existsSync(join(folder, indexName))) continue;
    for (const line of (await JobIndex.open(nodeDisk, folder)).latest())
      if (isWanted(line.key)) byKey.set(line.key, { line, folder });
  }
  return byKey;
}
