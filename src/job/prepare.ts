import type { Me, Model } from "../api/records.js";
import { EarlyExit } from "../core/exit.js";
import { type Credits, plus } from "../core/money.js";
import type { Pace } from "../core/pace.js";
import { Paces } from "../core/paces.js";
import type { OwnLimits } from "../core/quota.js";
import type { Run, Store } from "../core/store.js";
import { type LocalInput, readLocalInputs } from "../manifest/local-inputs.js";
import type { Manifest } from "../manifest/manifest.js";
import { type ReadOptions, readManifest } from "../manifest/read.js";
import type { Duplicates } from "../plan/expand.js";
import { makePlan } from "../plan/make-plan.js";
import type { OnMissing, Order, Plan } from "../plan/plan.js";
import type { Selection } from "../plan/select.js";
import type { OpenAccount } from "./account.js";
import { type EditionChoice, editionOf } from "./edition.js";
import { guessJob, knownJob } from "./job-of.js";
import { missingFiles } from "./missing-files.js";

/** How a manifest is read and compared: what `plan` and `run` have in common. */
export interface SheetOptions {
  reading: ReadOptions;
  edition: EditionChoice;
  selection: Selection;
  duplicates: Duplicates;
  order: Order;
  onMissing: OnMissing;
  /** The job's name, where the command says it. */
  job: string | null;
}

export interface PrepareOptions extends SheetOptions {
  manifest: string;
  maxCredits: Credits | null;
  origin: string;
  sandbox: boolean;
  account: OpenAccount;
  ownLimits?: OwnLimits;
  /** The workspace's store, when there is one. */
  store: Store | null;
}

export interface Prepared {
  plan: Plan;
  me: Me;
}

/**
 * Reads the manifest and holds it against the live models and the account. Costs two requests and nothing else; a file
 * that cannot be read at all costs none.
 */
export async function prepare(options: PrepareOptions): Promise<Prepared> {
  const { account, store } = options;
  const manifest = await readManifest(options.manifest, options.reading);
  if (manifest.rows.length === 0) throw manifestProblems(manifest.problems);
  const me = await account.identify();
  const { models } = await account.models();
  const localInputs = options.sandbox ? await readLocalInputs(manifest) : undefined;
  const input: Asked = { ...options, manifest, models, me, ...(localInputs ? { localInputs } : {}) };
  const runs = (await store?.runs()) ?? [];
  const job = knownJob(manifest, runs, options.job);
  const plan = await planAs(input, job ?? manifest.name, runs);
  if (job !== null || store === null) return { plan, me };
  const { name, note, finding } = await guessJob(store, runs, plan);
  if (note !== null) {
    const other = await planAs(input, name, runs);
    return { plan: { ...other, notes: [note, ...other.notes] }, me };
  }
  if (finding?.kind === "made_before") plan.blockers.push(finding);
  else if (finding) plan.warnings.unshift(finding);
  return { plan, me };
}

interface Asked extends Omit<PrepareOptions, "manifest"> {
  manifest: Manifest;
  models: readonly Model[];
  me: Me;
  localInputs?: ReadonlyMap<string, LocalInput>;
}

/** The plan of a manifest as a job of that name, whose history says what was made already. */
async function planAs(asked: Asked, name: string, runs: readonly Run[]): Promise<Plan> {
  const { account, store, models, me, origin, maxCredits, localInputs } = asked;
  const edition = await editionOf(asked.edition, store, name);
  const unfinished = runs.findLast(
    (run) =>
      run.jobName === name &&
      run.edition === edition &&
      run.state !== "finished" &&
      run.state !== "cancelled",
  );
  const spending = unfinished ? await store?.spending(unfinished.id) : undefined;
  return makePlan({
    manifest: { ...asked.manifest, name },
    models,
    me,
    origin,
    edition,
    // A variant is nobody's row.
    existing: ((await store?.itemsOf(name)) ?? []).filter((item) => item.variant === 1),
    selection: asked.selection,
    duplicates: asked.duplicates,
    order: asked.order,
    onMissing: asked.onMissing,
    missing: new Set(store ? (await missingFiles(store, name)).keys() : []),
    charges: await account.accounts.highestCharges(account.accountId()),
    ...(await timingOf(account, models)),
    ...(asked.ownLimits ? { ownLimits: asked.ownLimits } : {}),
    maxCredits,
    repair: asked.reading.repair ?? false,
    ...(localInputs ? { localInputs } : {}),
    ...(spending ? { spent: plus(spending.charged, spending.pending) } : {}),
  });
}

/** What is known of how long generations take, and of the requests of the last day. */
async function timingOf(
  { accounts, accountId }: OpenAccount,
  models: readonly Model[],
): Promise<{ pace: (group: string) => Pace; usedToday: number }> {
  const paces = new Paces();
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
export function manifestProblems(problems: Plan["problems"]): EarlyExit {
  const count = `${problems.length} ${problems.length === 1 ? "problem" : "problems"} in the manifest`;
  return new EarlyExit("usage", `${count}; nothing was submitted`, problems);
}
