import type { Me } from "../api/records.js";
import { EarlyExit } from "../core/exit.js";
import { type Credits, plus } from "../core/money.js";
import type { Store } from "../core/store.js";
import { readLocalInputs } from "../manifest/local-inputs.js";
import { type ReadOptions, readManifest } from "../manifest/read.js";
import type { Duplicates } from "../plan/expand.js";
import { makePlan } from "../plan/make-plan.js";
import type { OnMissing, Order, Plan } from "../plan/plan.js";
import type { Selection } from "../plan/select.js";
import type { OpenAccount } from "./account.js";
import { type EditionChoice, editionOf } from "./edition.js";
import { missingFiles } from "./missing-files.js";

/** How a manifest is read and compared: what `plan` and `run` have in common. */
export interface SheetOptions {
  reading: ReadOptions;
  edition: EditionChoice;
  selection: Selection;
  duplicates: Duplicates;
  order: Order;
  onMissing: OnMissing;
}

export interface PrepareOptions extends SheetOptions {
  manifest: string;
  maxCredits: Credits | null;
  origin: string;
  sandbox: boolean;
  account: OpenAccount;
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
  const { account, store, origin, maxCredits } = options;
  const manifest = await readManifest(options.manifest, options.reading);
  if (manifest.rows.length === 0) throw manifestProblems(manifest.problems);
  const me = await account.identify();
  const { models } = await account.models();
  const localInputs = options.sandbox ? await readLocalInputs(manifest) : undefined;
  const edition = await editionOf(options.edition, store, manifest.name);
  const runs = ((await store?.runs()) ?? []).filter((run) => run.jobName === manifest.name);
  const unfinished = runs.findLast(
    (run) => run.edition === edition && run.state !== "finished" && run.state !== "cancelled",
  );
  const spending = unfinished ? await store?.spending(unfinished.id) : undefined;
  const plan = makePlan({
    manifest,
    models,
    me,
    origin,
    edition,
    // A variant is nobody's row.
    existing: ((await store?.itemsOf(manifest.name)) ?? []).filter((item) => item.variant === 1),
    selection: options.selection,
    duplicates: options.duplicates,
    order: options.order,
    onMissing: options.onMissing,
    missing: new Set(store ? (await missingFiles(store, manifest.name)).keys() : []),
    charges: await account.accounts.highestCharges(account.accountId()),
    maxCredits,
    repair: options.reading.repair ?? false,
    ...(localInputs ? { localInputs } : {}),
    ...(spending ? { spent: plus(spending.charged, spending.pending) } : {}),
  });
  return { plan, me };
}

/** A manifest that cannot be run, with all that is wrong with it. */
export function manifestProblems(problems: Plan["problems"]): EarlyExit {
  const count = `${problems.length} ${problems.length === 1 ? "problem" : "problems"} in the manifest`;
  return new EarlyExit("usage", `${count}; nothing was submitted`, problems);
}
