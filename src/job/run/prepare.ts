import { resolve } from "node:path";
import type { Model } from "../../api/records.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { freeFor, reserveBytes } from "../../archive/disk/space.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { DurationEstimate } from "../../core/pace/pace.js";
import { DurationEstimates } from "../../core/pace/paces.js";
import type { Draft } from "../../core/ports/draft.js";
import type { Run, Store } from "../../core/ports/store.js";
import { digestOf, type Problem } from "../../core/problem.js";
import type { OwnLimits } from "../../core/quota/quota.js";
import { LocalInputs } from "../../manifest/local-inputs.js";
import { openManifest, type ReadOptions } from "../../manifest/read.js";
import type { Manifest } from "../../manifest/shape/manifest.js";
import { type Begun, begin, makePlan } from "../../plan/make-plan.js";
import type { Duplicates, OnMissing, Plan, PlanInput, Selection, SubmitOrder } from "../../plan/plan.js";
import type { AccountReading } from "../../run/gate/balance.js";
import type { OpenAccount } from "../workspace/account.js";
import { missingFiles } from "../workspace/missing-files.js";
import type { Workspace } from "../workspace/workspace.js";
import { type EditionChoice, editionOf } from "./edition.js";
import { guessJob, knownJob } from "./job-of.js";
import { archivedBefore, paidBefore } from "./paid-before.js";
import { checkModels, type SpendingOptions, spendingCaps } from "./spending-caps.js";
import { othersRun, unfinishedOf } from "./unfinished.js";

/** How a manifest is read and compared: what `plan` and `run` have in common. */
export interface SheetOptions {
  reading: ReadOptions;
  edition: EditionChoice;
  selection: Selection;
  duplicates: Duplicates;
  order: SubmitOrder;
  onMissing: OnMissing;
  /** The job's name, where the command says it. */
  job: string | null;
}

export interface PrepareOptions extends SheetOptions {
  manifest: string;
  /** The plan is made in it, and can be read as long as it is open. */
  draft: Draft;
  /** What the run may spend. */
  spending: SpendingOptions;
  clock: Clock;
  /** Where its history and its files are. */
  workspace: Pick<Workspace, "root" | "outFolder" | "stateFile">;
  origin: string;
  sandbox: boolean;
  account: OpenAccount;
  ownLimits?: OwnLimits;
  /** The workspace's store, when there is one. */
  store: Store | null;
  /** Ends the reading of a large sheet. */
  signal: AbortSignal;
}

export interface PreparedPlan extends AccountReading {
  plan: Plan;
}

/**
 * Reads the manifest and holds it against the live models and the account. Costs two requests and nothing else; a file
 * that cannot be read at all costs none. Throws EarlyExit for a manifest of which nothing can be planned.
 */
export async function prepare(options: PrepareOptions): Promise<PreparedPlan> {
  const { account, store } = options;
  const opened = await openedFor(options);
  const reading = await account.identify();
  const { models } = await account.models();
  checkModels(options.spending, models);
  const asked: Asked = { ...options, ...reading, models };
  const runs = (await store?.runs()) ?? [];
  const { manifest } = opened;
  const job = knownJob(manifest, runs, options.job);
  const plan = await planAs(asked, opened, job ?? manifest.name, runs);
  if (job !== null || store === null) return { plan: await withPaid(plan, options), ...reading };
  const { name, note, finding } = await guessJob(store, runs, plan, options.draft);
  if (note !== null) {
    options.draft.clear();
    const other = await planAs(asked, await openedFor(options), name, runs);
    return { plan: { ...other, notes: [note, ...other.notes] }, ...reading };
  }
  if (finding?.kind === "made_before") plan.blockers.push(finding);
  else if (finding) plan.warnings.unshift(finding);
  return { plan: await withPaid(plan, options), ...reading };
}

/** The plan, with what the archive and the account's books say against it. */
async function withPaid(plan: Plan, options: PrepareOptions): Promise<Plan> {
  const findings = [await archivedBefore(options, plan, options.draft), await paidBefore(options, plan)];
  plan.blockers.push(...findings.filter((finding) => finding !== null));
  return plan;
}

interface Opened {
  manifest: Manifest;
  begun: Begun;
}

/** Opens the manifest up to its first row. Throws EarlyExit when it has none. */
async function openedFor({ manifest: path, reading, draft, signal }: PrepareOptions): Promise<Opened> {
  const manifest = interruptible(await openManifest(path, reading), signal);
  const begun = await begin(manifest, draft);
  if (begun === null) throw manifestProblems(draft.problems());
  return { manifest, begun };
}

/** A large sheet takes its time: between its parts it can be left. */
function interruptible(manifest: Manifest, signal: AbortSignal): Manifest {
  const { parts } = manifest;
  async function* watched() {
    const all = parts();
    for (;;) {
      if (signal.aborted)
        throw new EarlyExit("interrupted", "interrupted while planning; nothing was submitted");
      const { value, done } = await all.next();
      if (done) return value;
      yield value;
    }
  }
  return { ...manifest, parts: watched };
}

interface Asked extends Omit<PrepareOptions, "manifest">, AccountReading {
  models: readonly Model[];
}

/** The plan of a manifest as a job of that name, whose history says what was made already. Throws EarlyExit. */
async function planAs(asked: Asked, opened: Opened, name: string, runs: readonly Run[]): Promise<Plan> {
  const { account, store, models, me, origin, draft } = asked;
  const manifest = { ...opened.manifest, name };
  const edition = await editionOf(asked.edition, store, name);
  const unfinished = unfinishedOf(runs, name, edition);
  const others = othersRun(unfinished, { user: me.user.id, origin });
  const input: PlanInput = {
    manifest,
    draft,
    models,
    me,
    origin,
    edition,
    existing: store?.history(name) ?? [],
    selection: asked.selection,
    duplicates: asked.duplicates,
    order: asked.order,
    onMissing: asked.onMissing,
    missing: new Set(store ? (await missingFiles(store, name)).keys() : []),
    charges: await account.accounts.highestCharges(account.accountId()),
    ...(await timingOf(account, models)),
    ...(asked.ownLimits ? { ownLimits: asked.ownLimits } : {}),
    now: asked.clock.now(),
    sizes: (await store?.archivedSizes()) ?? [],
    roomBytes: await roomFor(asked.workspace.outFolder),
    caps: await spendingCaps(asked, others === null ? (unfinished?.id ?? null) : null),
    repair: asked.reading.repair ?? false,
    ...(asked.sandbox
      ? { localInputs: new LocalInputs(resolve(asked.reading.cwd ?? ".", manifest.file)) }
      : {}),
  };
  const plan = await makePlan(input, opened.begun);
  if (plan === null) throw manifestProblems(draft.problems());
  if (others !== null) plan.blockers.push(others);
  return plan;
}

/** What the archive may take where the files go; null where the system does not tell. */
async function roomFor(folder: string): Promise<number | null> {
  const free = await freeFor(nodeDisk, folder).catch(() => null);
  return free === null ? null : free - reserveBytes;
}

/** What is known of how long generations take, and of the requests of the last day. */
async function timingOf(
  { accounts, accountId }: OpenAccount,
  models: readonly Model[],
): Promise<{ pace: (group: string) => DurationEstimate; usedToday: number }> {
  const paces = new DurationEstimates();
  const categories = new Map(models.map((model) => [model.model_key, model.category]));
  const known = await accounts.durations(accountId(), [...categories.keys()]);
  for (const { model, group, ms } of known) {
    paces.introduce(group, model, categories.get(model) ?? "");
    paces.finished(group, 0, ms);
  }
  const { day } = await accounts.quota(accountId());
  const pace = (group: string) => {
    const [model = ""] = JSON.parse(group) as [string];
    paces.introduce(group, model, categories.get(model) ?? "");
    return paces.of(group);
  };
  return { pace, usedToday: day.used };
}

/** A manifest that cannot be run, with all that is wrong with it. */
export function manifestProblems(problems: Iterable<Problem>): EarlyExit {
  const digest = digestOf(problems);
  const count = `${digest.count} ${digest.count === 1 ? "problem" : "problems"} in the manifest`;
  return new EarlyExit("usage", `${count}; nothing was submitted`, digest);
}
