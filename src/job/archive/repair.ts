import { nodeDisk } from "../../archive/disk/node-disk.js";
import type { IndexLine } from "../../archive/index-file.js";
import { setAside, writeLine } from "../../archive/mend.js";
import { toNumber } from "../../core/money.js";
import type { ArchivedOutput, Item, Run, Store } from "../../core/ports/store.js";
import { ownVersion } from "../../package-file.js";
import { continueJob } from "../run/continue-job.js";
import type { JobOptions } from "../run/run-job.js";
import { type FolderReport, knownFile } from "./verify.js";

/** One output that is gone or spoiled, and where it belongs. */
interface Broken {
  folder: string;
  output: ArchivedOutput;
  /** What is wrong with the file that is there; null when it is gone. */
  reason: string | null;
}

/**
 * Repairs what was found: lines that the index lacks are written, damaged files are set aside, and what is missing is
 * fetched again from its task. That costs no credits: nothing is submitted meanwhile, not even what a run left planned.
 */
export async function repair(reports: readonly FolderReport[], options: JobOptions): Promise<void> {
  for (const { output, folder } of unindexed(reports)) await writeLine(nodeDisk, folder, lineOf(output));
  const groups = new Map<number, Task[]>();
  const give = (run: number | null, task: Task) => {
    if (run !== null) groups.set(run, [...(groups.get(run) ?? []), task]);
  };
  // What was made elsewhere has no task to be fetched from.
  for (const each of reports.flatMap(brokenIn).filter(({ output }) => output.taskId !== "")) {
    const run = each.output.item.runId ?? each.output.paidIn;
    give(run, (store, of) => giveBack(store, of, each));
  }
  for (const item of reports.flatMap(owedIn)) give(item.runId, (store) => askAgain(store, item));
  for (const [number, tasks] of groups) await refetch(number, tasks, options);
}

/** What has to be done about one output, with the workspace held, so that its run fetches it. */
type Task = (store: Store, run: Run) => Promise<void>;

async function refetch(number: number, tasks: readonly Task[], options: JobOptions): Promise<void> {
  await continueJob(
    { ...options, fetchOnly: true },
    {
      async choose(store) {
        const run = await store.run(number);
        if (!run) throw new Error(`no run ${number} for an archived item`);
        return run;
      },
      async change({ store }, run) {
        for (const task of tasks) await task(store, run);
        return run;
      },
    },
    async () => undefined,
  );
}

/** The order matters: a file that is set aside is still known to be damaged when a crash follows. */
async function giveBack(store: Store, run: Run, { folder, output, reason }: Broken): Promise<void> {
  if (reason !== null) await setAside(nodeDisk, folder, knownFile(output), reason);
  if (output.item.runId === null) await store.add(run.id, [output.item]);
  await store.lost(output.item.id, output.number);
  // Its address is from back then; asking for a fresh one is quicker than finding that out.
  await store.expire(output.item.id, "its file is fetched again");
}

/** One that an earlier repair could not fetch. */
async function askAgain(store: Store, { id, state }: Item): Promise<void> {
  const attempt = await store.attempt(id);
  if (!attempt?.taskId) return;
  if (state === "held") await store.apply(id, "refetch", { nextAt: 0 });
  await store.expire(id, "fetched again");
}

/** Items that the index tells of and the workspace knows to be without their file. */
function owedIn({ owed, examination }: FolderReport): Item[] {
  const missing = new Set(
    examination.findings.flatMap((finding) =>
      finding.kind === "missing" ? [finding.identity.split("\n")[0]] : [],
    ),
  );
  return owed.filter(({ key }) => missing.has(key));
}

function brokenIn({ path, outputs, examination }: FolderReport): Broken[] {
  const known = new Map(outputs.map((output) => [knownFile(output).identity, output]));
  return examination.findings.flatMap((finding) => {
    if (finding.kind !== "missing" && finding.kind !== "damaged") return [];
    const output = known.get(finding.identity);
    if (output === undefined) return [];
    return [{ folder: path, output, reason: finding.kind === "damaged" ? finding.reason : null }];
  });
}

function unindexed(reports: readonly FolderReport[]): { folder: string; output: ArchivedOutput }[] {
  return reports.flatMap(({ path, outputs, examination }) => {
    const wanted = new Set(
      examination.findings.flatMap((finding) => (finding.kind === "unindexed" ? [finding.identity] : [])),
    );
    return outputs
      .filter((output) => wanted.has(knownFile(output).identity))
      .map((output) => ({ folder: path, output }));
  });
}

function lineOf(output: ArchivedOutput): IndexLine {
  const { item, number, file, bytes, sha256, mime, check, taskId, externalTaskId, charged } = output;
  const { rowId, key, model, prompt, params, inputs } = item;
  return {
    item: rowId,
    key,
    task: taskId,
    external_task: externalTaskId,
    model,
    prompt,
    params,
    inputs,
    credits: charged === null ? null : toNumber(charged),
    created: output.createdAt,
    completed: output.completedAt,
    output: number,
    file,
    bytes,
    sha256,
    mime,
    check,
    saved: new Date(output.savedAt).toISOString(),
    bulkgen: ownVersion(),
  };
}
