import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { type IndexLine, indexName, isPruned, JobIndex } from "../../archive/index-file.js";
import { normalText, priceGroup, shortId } from "../../core/identity.js";
import { isPaid } from "../../core/item.js";
import { inCredits } from "../../core/money.js";
import { count } from "../../text/amounts.js";
import { shellWord } from "../../text/shell.js";
import { indexFiles } from "../../workspace/history.js";
import type { PlannedKeys } from "./planned-keys.js";
import type { AskedPlan, KnownItems, PaymentSource, Question } from "./question.js";

interface Line {
  line: IndexLine;
  folder: string;
}

interface Archived extends Line {
  isGone: boolean;
}

/**
 * Items that the history does not have, or has as unpaid, may be in the archive's index: the workspace was deleted, left
 * behind or restored from an older copy, or others share the output folder. Without any history, the archives of other
 * jobs count too, because the sheet may have been renamed. Rejects with disk errors.
 */
export async function inArchive(
  plan: AskedPlan,
  { workspace, store, runs, agreed, keys }: Question,
): Promise<PaymentSource<Archived>> {
  const { root, outFolder } = workspace;
  const own = jobFolder({ outFolder, jobName: plan.job });
  const mayBeRenamed = !agreed && runs.length === 0;
  const folders = mayBeRenamed ? indexFiles(outFolder).map(dirname) : [own];
  const lines = await linesIn(folders, keys);
  const same = mayBeRenamed ? await linesByRequest(folders, plan.edition) : null;
  const unknown = async ({ line, folder }: Line) => {
    // The history knows the file: another request followed its task, or it is another job's in the same folder.
    if (line.task !== "" && (await store?.find(line.task))?.length) return undefined;
    // What was adopted has no task.
    const known = line.task === "" ? ((await store?.find(shortId(line.key))) ?? []) : [];
    if (known.some((item) => item.key === line.key && isPaid(item))) return undefined;
    // Once the history is back, --missing decides about these.
    const isGone = line.bucket === undefined && !existsSync(join(folder, line.file));
    return isGone && line.task === "" && !isPruned(line.check) ? undefined : { line, folder, isGone };
  };
  return {
    has(item) {
      const requests = [item.params, ...(plan.otherParams[item.key] ?? [])].map((params) =>
        requestOf({ ...item, params }),
      );
      const request = requests.find((each) => same?.get(each)?.length);
      const found = lines.get(item.key) ?? (request === undefined ? undefined : same?.get(request)?.pop());
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

/**
 * The index lines of some jobs' folders by what they asked for. Without any history nothing says for whom they were made
 * and at which address of the service, which are part of a key.
 */
async function linesByRequest(folders: readonly string[], edition: string): Promise<Map<string, Line[]>> {
  const byRequest = new Map<string, Line[]>();
  for (const folder of folders)
    for (const line of (await JobIndex.open(nodeDisk, folder)).latest()) {
      if (line.output > 1 || (line.edition ?? "") !== edition) continue;
      const request = requestOf(line);
      byRequest.set(request, [...(byRequest.get(request) ?? []), { line, folder }]);
    }
  return byRequest;
}

function requestOf({
  model,
  prompt,
  params,
  inputs,
}: Pick<IndexLine, "model" | "prompt" | "params" | "inputs">): string {
  const named = Object.entries(inputs).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([priceGroup({ model, params }), normalText(prompt ?? ""), named]);
}

/** The index lines of the plan's items in some jobs' folders, by item key. */
async function linesIn(folders: readonly string[], keys: PlannedKeys): Promise<Map<string, Line>> {
  const byKey = new Map<string, Line>();
  for (const folder of folders) {
    if (!existsSync(join(folder, indexName))) continue;
    for (const line of (await JobIndex.open(nodeDisk, folder)).latest()) {
      const planned = keys.find(line.key);
      if (planned !== undefined) byKey.set(planned.key, { line, folder });
    }
  }
  return byKey;
}
