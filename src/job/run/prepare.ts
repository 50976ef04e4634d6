import { existsSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { announcedIn } from "../../api/announced.js";
import type { Me, Model } from "../../api/records.js";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { freeFor, reserveBytes } from "../../archive/disk/space.js";
import { Indexes, identityOf, indexName, isPruned } from "../../archive/index-file.js";
import { unwritableFolder, unwritableNames } from "../../archive/writable.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { deadlineOf, defaultRunOptions, type RunOptions } from "../../core/next/options.js";
import { type DurationEstimate, DurationEstimates } from "../../core/pace/pace.js";
import type { Run } from "../../core/ports/store.js";
import { digestOf, type Problem } from "../../core/problem.js";
import type { OwnLimits } from "../../core/quota/quota.js";
import { isOfFiles, manifestFolder } from "../../manifest/folder.js";
import { LocalInputs } from "../../manifest/local-inputs.js";
import { openManifest, type ReadOptions, whyNoManifest } from "../../manifest/read.js";
import type { Manifest } from "../../manifest/shape/manifest.js";
import { deadlineWarning, settlingWarning } from "../../plan/findings.js";
import { type Begun, begin, makePlan } from "../../plan/make-plan.js";
import type { Duplicates, OnMissing, Plan, PlanInput, Selection, SubmitOrder } from "../../plan/plan.js";
import {
  isPublishTarget,
  type PublishSettings,
  publishForms,
  publishPlace,
} from "../../publish/publisher.js";
import type { AccountReading } from "../../run/gate/balance.js";
import type { Draft } from "../../store/draft/draft.js";
import type { Store } from "../../store/workspace/workspace.js";
import type { Environment } from "../../text/environment.js";
import { nearest } from "../../text/nearest.js";
import { shellWord } from "../../text/shell.js";
import { leaves } from "../../text/within.js";
import { type FolderValue, notAgreed, unagreed } from "../../trust/trust.js";
import type { OpenAccount } from "../../workspace/account.js";
import { lostPicksText, picksToReplace } from "../../workspace/takes/lost-picks.js";
import type { Workspace } from "../../workspace/workspace.js";
import { type AfterSettings, afterCommands, commandNotes, commandsOfJob } from "../after/settings.js";
import { paidAlready } from "../paid/already.js";
import { type AgreeToForeignUse, foreignUse, mayBeBoughtByCopy } from "../paid/foreign-use.js";
import { type EditionChoice, editionOf, guessJob, knownJob } from "../paid/job-of.js";
import { isOwn, unfinishedOf } from "../paid/owner.js";
import { PlannedKeys } from "../paid/planned-keys.js";
import type { Question } from "../paid/question.js";
import { checkPublish } from "./publish-check.js";
import { checkModels, type SpendingOptions, spendingCaps } from "./spending-caps.js";

/** How a manifest is read and compared: what `plan` and `run` have in common. */
export interface SheetOptions {
  reading: ReadOptions;
  edition: EditionChoice;
  selection: Selection;
  duplicates: Duplicates;
  order: SubmitOrder;
  onMissing: OnMissing;
  /** The job's name, if the command line gives one. */
  job: string | null;
}

export interface PrepareOptions extends SheetOptions {
  manifest: string;
  /** Holds the plan, which can be read while the draft is open. */
  draft: Draft;
  /** The run's options, as far as they bear on the plan. */
  run: SpendingOptions &
    OwnLimits &
    Partial<
      Pick<RunOptions, "until" | "maxDurationMs" | "settleMs" | "errorIsFree" | "lanes" | "archiveOnly">
    >;
  clock: Clock;
  /** The folders of its history and files. */
  workspace: Pick<Workspace, "root" | "outFolder" | "stateFile" | "sharedFolder">;
  origin: string;
  sandbox: boolean;
  /** How local inputs are published; not at all if absent. */
  publish?: PublishSettings;
  /** The commands that flags and settings want to be run after files and the set. */
  after: AfterSettings;
  /** The job file's commands will be run too, so the user must have agreed to them. */
  runsCommands?: true;
  /** The machine's environment, which says how buckets are reached. */
  environment: Environment;
  /** Asks about what came with the folder. Throws EarlyExit for a no. Without it, only what was agreed to before is used. */
  agreeTo?: ((values: readonly FolderValue[]) => Promise<void>) | undefined;
  account: OpenAccount;
  /** The workspace's store, when there is one. */
  store: Store | null;
  /** Asks whether to buy although the key was used elsewhere. */
  agreeToForeignUse?: AgreeToForeignUse;
  /** Interrupts the reading of a large sheet. */
  signal: AbortSignal;
}

export interface PreparedPlan extends AccountReading {
  plan: Plan;
}

/**
 * Reads the manifest and checks it against the live models and the account. Makes two requests, or none if the file
 * cannot be read. Throws EarlyExit if nothing of the manifest can be planned.
 */
export async function prepare(given: PrepareOptions): Promise<PreparedPlan> {
  const { account, store } = given;
  const opened = await openedFor(given);
  await agreeToPlace(given, opened.manifest);
  const commandsNotes = await agreeToCommands(given, opened.manifest);
  const { edition: ofSheet } = opened.manifest;
  const options =
    given.edition === "first" && ofSheet !== undefined ? { ...given, edition: { name: ofSheet } } : given;
  const reading = await account.identify();
  const { models, unpriced = [] } = await account.models();
  checkModels(Object.keys(options.run.modelCaps ?? {}), models);
  const asked: Asked = { ...options, ...reading, models, unpriced, commandsNotes };
  const runs = (await store?.runs()) ?? [];
  const { manifest } = opened;
  const job = knownJob(manifest, runs, options.job);
  const plan = await planAs(asked, opened, job ?? manifest.name, runs);
  const who = { user: reading.me.user.id, origin: given.origin };
  const plannedKeys = (plan: Plan) => new PlannedKeys(plan, asked.draft, who, runs);
  const known = { who, runs, keys: plannedKeys(plan), guessed: null };
  if (job !== null || store === null) return { plan: await asPaid(plan, asked, known), ...reading };
  const { name, note, finding } = await guessJob(store, runs, plan, known.keys);
  if (note === null) return { plan: await asPaid(plan, asked, { ...known, guessed: finding }), ...reading };
  options.draft.clear();
  const other = await planAs(asked, await openedFor(options), name, runs);
  const continued = { ...other, notes: [note, ...other.notes] };
  return { plan: await asPaid(continued, asked, { ...known, keys: plannedKeys(other) }), ...reading };
}

/** The plan, with what is known of its items beyond the history: they may be paid for already. */
async function asPaid(
  plan: Plan,
  asked: Asked,
  known: Pick<Question, "who" | "runs" | "keys" | "guessed">,
): Promise<Plan> {
  const { runs } = known;
  const unfinished = unfinishedOf(runs, plan.job, plan.edition);
  const question = { ...asked, ...known, unfinished, agreed: asked.job !== null };
  const { blockers, warnings } = await paidAlready(plan, question, asked);
  plan.blockers.push(...blockers);
  plan.warnings.unshift(...warnings);
  const buys = plan.due > 0 || plan.ordered.items > 0;
  const asks = !asked.sandbox && buys && blockers.length === 0;
  if (asks && mayBeBoughtByCopy(runs, plan.edition, asked.edition)) {
    const settings = { settleMs: defaultRunOptions.settleMs, errorIsFree: false, ...asked.run };
    const message = await foreignUse(asked.account, asked, settings, asked.agreeToForeignUse);
    if (message !== null) plan.blockers.push({ kind: "foreign_use", message: `${message}.` });
  }
  return plan;
}

interface Opened {
  manifest: Manifest;
  begun: Begun;
}

/** Opens the manifest up to its first row. Throws EarlyExit if it has no rows. */
async function openedFor({ manifest: path, reading, after, draft, signal }: PrepareOptions): Promise<Opened> {
  const { file: afterFile } = afterCommands(after, null);
  const manifest = interruptible(await openManifest(path, { ...reading, afterFile }), signal);
  const begun = await begin(manifest, draft);
  if (begun === null) throw manifestProblems(draft.problems());
  return { manifest, begun };
}

/** Lets an interrupt take effect while a large sheet is read. */
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
  unpriced: readonly string[];
  /** What a person should know of the job file's commands. */
  commandsNotes: readonly string[];
}

/** The plan of a manifest for the job of that name, using its history. Throws EarlyExit. */
async function planAs(asked: Asked, opened: Opened, name: string, runs: readonly Run[]): Promise<Plan> {
  const { account, store, models, me, origin, draft } = asked;
  const manifest = { ...opened.manifest, name };
  const place = asked.publish === undefined ? null : publishPlace(asked.publish, manifest.publish ?? {});
  const inputs = new LocalInputs(resolve(asked.reading.cwd ?? ".", manifest.file));
  const edition = await editionOf(asked.edition, store, name);
  const unfinished = unfinishedOf(runs, name, edition);
  const isOthers = unfinished !== undefined && !isOwn(unfinished, { user: me.user.id, origin });
  const folder = jobFolder({ outFolder: asked.workspace.outFolder, jobName: name });
  if (isOfFiles(manifest.file) && !leaves(folder, manifestFolder(manifest.file)))
    throw new EarlyExit(
      "usage",
      `the files are the outputs of job ${name} itself. Choose another job with --job NAME. Nothing was sent.`,
    );
  const inTheWay = unwritableFolder(folder);
  if (inTheWay !== null)
    throw new EarlyExit(
      "usage",
      `no output can be saved: ${inTheWay}. Move it away, or choose another folder with --out`,
    );
  const charges = await account.accounts.highestCharges(account.accountId());
  const input: PlanInput = {
    manifest,
    draft,
    models,
    unpriced: asked.unpriced,
    me,
    origin,
    ...(store ? { ordered: await store.ordered(name, edition) } : {}),
    sandbox: asked.sandbox,
    edition,
    existing: store ? { [Symbol.asyncIterator]: () => store.history(name)[Symbol.asyncIterator]() } : [],
    ...(store ? { groups: () => store.priceGroups(name, edition) } : {}),
    leftOut: leftOutOfJob(runs.filter((run) => run.jobName === name && run.edition === edition)),
    others: {
      groups: async () => [
        ...((await store?.priceGroups(null, edition)) ?? []),
        ...charges.keys(),
        // A charge is forgotten when its list price rises.
        ...(await account.accounts.durations(account.accountId(), keysOf(models))).map(({ group }) => group),
      ],
      leftOut: together(leftOutBy(runs), await account.accounts.everLeftOut(account.accountId())),
    },
    selection: asked.selection,
    duplicates: asked.duplicates,
    order: asked.order,
    onMissing: asked.onMissing,
    missing: new Set(store ? (await missingFiles(store, name, asked.workspace)).keys() : []),
    charges,
    ...(await timingOf(account, models, me)),
    ownLimits: asked.run,
    ...(asked.run.lanes === undefined ? {} : { lanes: asked.run.lanes }),
    now: asked.clock.now(),
    sizes: (await store?.archivedSizes()) ?? [],
    roomBytes: asked.run.archiveOnly ? null : await roomFor(asked.workspace.outFolder),
    caps: await spendingCaps(asked, isOthers ? null : (unfinished?.id ?? null)),
    repair: asked.reading.repair ?? false,
    ...(asked.sandbox || place !== null || account.service.announced().inputs ? { localInputs: inputs } : {}),
    unwritable: unwritableNames(folder),
  };
  for (const problem of publishProblem(manifest)) draft.problem(problem);
  const plan = await makePlan(input, opened.begun);
  if (plan === null) throw manifestProblems(draft.problems());
  if (!asked.sandbox && plan.due > 0 && inputs.found.size > 0) await checkPublish(place, asked.environment);
  const { settleMs, until = null, maxDurationMs = null } = asked.run;
  const deadline = deadlineOf({ until, maxDurationMs }, asked.clock.now());
  plan.warnings.push(
    ...deadlineWarning(plan.requests, deadline),
    ...(settleMs ? settlingWarning(settleMs) : []),
  );
  plan.notes.push(
    ...(store ? await pickNotes(store, runs, plan) : []),
    ...otherFolders(runs, name, asked.workspace.outFolder),
    ...unknownDefault(asked.reading.defaults?.model, models),
    ...commandNotes(afterCommands(asked.after, plan.after), isWhole(plan)),
    ...asked.commandsNotes,
  );
  return plan;
}

/** Whether a run of the plan makes all that the sheet asks for. */
export function isWhole({ isPart, selection, problems }: Plan): boolean {
  return !isPart && selection === null && problems.length === 0;
}

/** A history that was rebuilt does not know what its runs left out. */
function leftOutOfJob(runs: readonly Run[]): LeftOut | null {
  return runs.some(({ options }) => options.rebuilt) ? null : leftOutBy(runs);
}

/** The defaults that the runs left out, by model. */
function leftOutBy(runs: readonly Run[]): LeftOut {
  const all: LeftOut = new Map();
  for (const run of runs)
    for (const [model, keys] of Object.entries(run.options.leftOut ?? {}))
      all.set(model, new Set([...(all.get(model) ?? []), ...keys]));
  return all;
}

/** What a run does to what a person has picked. */
async function pickNotes(store: Store, runs: readonly Run[], { job, changed }: Plan): Promise<string[]> {
  const known = runs.find(({ jobName }) => jobName === job);
  if (known === undefined) return [];
  const notes = [await picksToReplace(store, changed), await lostPicksText(store, known.jobId)];
  return notes.filter((note) => note !== null);
}

type LeftOut = Map<string, Set<string>>;

function together(some: LeftOut, others: LeftOut): LeftOut {
  const all = new Map(some);
  for (const [model, keys] of others) all.set(model, new Set([...(all.get(model) ?? []), ...keys]));
  return all;
}

function keysOf(models: readonly Model[]): string[] {
  return models.map(({ model_key: key }) => key);
}

/** Where the job has files that this run's output folder does not have: what is renamed in the sheet is not renamed there. */
function otherFolders(runs: readonly Run[], jobName: string, outFolder: string): string[] {
  const others = runs.filter((run) => run.jobName === jobName && run.outFolder !== outFolder);
  return [...new Set(others.map((run) => run.outFolder))]
    .filter((folder) => existsSync(join(jobFolder({ outFolder: folder, jobName }), indexName)))
    .map(
      (folder) =>
        `files of earlier runs are in ${jobFolder({ outFolder: folder, jobName })} and stay there under their names; --out ${shellWord(folder)} continues in that folder`,
    );
}

/**
 * A job file may come from somebody else, and may name a place of theirs for the local files. Throws EarlyExit until this
 * user has agreed to it, unless a flag or variable names another place, or the sandbox takes the files themselves.
 */
async function agreeToPlace(
  { publish, sandbox, workspace, agreeTo }: PrepareOptions,
  manifest: Manifest,
): Promise<void> {
  const to = manifest.publish?.to;
  if (
    to === undefined ||
    !isPublishTarget(to) ||
    sandbox ||
    !publish ||
    publish.given.to != null ||
    publish.given.command != null
  )
    return;
  await agreeToValues([{ setting: "publish", value: to, from: manifest.file }], manifest, workspace, agreeTo);
}

/**
 * Nor is a command of a job file run before this user has agreed to exactly this one, in a rehearsal neither. A plan runs none,
 * and says what its run will ask.
 */
async function agreeToCommands(
  { after, runsCommands, run, workspace, agreeTo, manifest: path, reading }: PrepareOptions,
  manifest: Manifest,
): Promise<string[]> {
  const values = commandsOfJob(manifest, after);
  if (!runsCommands) {
    const asked = notAgreed(workspace.sharedFolder, workspace.root, values);
    const named = shellWord(isAbsolute(path) ? relative(reading.cwd ?? ".", path) : path);
    return asked.length === 0
      ? []
      : [
          `\`bulkgen run\` does not begin before you have agreed to ${asked.length === 1 ? "this command" : "these commands"} of the job file on this machine: \`bulkgen trust ${named}\` shows and asks`,
        ];
  }
  if (run.archiveOnly && afterCommands(after, manifest.after ?? null).file !== "")
    throw new EarlyExit(
      "usage",
      "the command after each file needs the file on this disk, and --archive-only keeps none here. Nothing was sent. Leave out one of them.",
    );
  await agreeToValues(values, manifest, workspace, agreeTo);
  return [];
}

async function agreeToValues(
  values: readonly FolderValue[],
  { file }: Pick<Manifest, "file">,
  { sharedFolder, root }: PrepareOptions["workspace"],
  agreeTo: PrepareOptions["agreeTo"],
): Promise<void> {
  const asked = notAgreed(sharedFolder, root, values);
  if (asked.length === 0) return;
  if (agreeTo === undefined) throw unagreed(root, asked, `bulkgen trust ${shellWord(file)}`);
  await agreeTo(asked);
}

/** The problem of a job file that names a place where nothing can be published. */
export function publishProblem({ publish, file }: Manifest): Problem[] {
  if (publish === undefined || isPublishTarget(publish.to)) return [];
  const place = { file, row: null, column: "publish", ...publish.mark };
  return [
    { place, message: "local inputs cannot be published there", expected: publishForms, got: publish.to },
  ];
}

/** A note about a mistyped default model that no row may need. If a row needs it, that row has a problem. */
function unknownDefault(named: string | undefined, models: readonly Model[]): string[] {
  if (named === undefined || models.some(({ model_key: key }) => key === named)) return [];
  const near = nearest(
    named,
    models.map(({ model_key: key }) => key),
  );
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  return [`--model ${named} is not a model of the service${hint}`];
}

/** Free bytes where the files go; null if the system does not report it. */
async function roomFor(folder: string): Promise<number | null> {
  const free = await freeFor(nodeDisk, folder).catch(() => null);
  return free === null ? null : free - reserveBytes;
}

/** Known generation times, and the requests of the last day and minute. */
async function timingOf(
  { accounts, accountId }: OpenAccount,
  models: readonly Model[],
  me: Me,
): Promise<{ pace: (group: string) => DurationEstimate; usedToday: number; usedNow: number }> {
  const paces = new DurationEstimates(announcedIn(me).providers);
  const categories = new Map(models.map((model) => [model.model_key, model.category]));
  const known = await accounts.durations(accountId(), [...categories.keys()]);
  for (const { model, group, ms } of known) {
    paces.register(group, model, categories.get(model) ?? "");
    paces.finished(group, 0, ms);
  }
  const { day, minute } = await accounts.quota(accountId());
  const pace = (group: string) => {
    const [model = ""] = JSON.parse(group) as [string];
    paces.register(group, model, categories.get(model) ?? "");
    return paces.of(group);
  };
  return { pace, usedToday: day.used, usedNow: minute.used };
}

/** The refusal of a manifest, with all its problems, and the notes that may explain them. */
export function manifestProblems(problems: Iterable<Problem>, notes: readonly string[] = []): EarlyExit {
  const digest = digestOf(problems);
  const count = `${digest.count} ${digest.count === 1 ? "problem" : "problems"} in the manifest`;
  const hints = notes.filter((note) => note.includes("did you mean")).map((note) => `. Note: ${note}`);
  return new EarlyExit("usage", `${count}; nothing was submitted${hints.join("")}`, digest);
}

/** Throws EarlyExit if there is no file at the path of a manifest. Call it before anything is made. */
export async function mustBeManifest(path: string): Promise<void> {
  const problem = await whyNoManifest(path);
  if (problem !== null) throw manifestProblems([problem]);
}

/**
 * The numbers of the files, by item key, that are neither where they were saved, nor in a folder of the job's runs, nor
 * in the current output folder: a person may have renamed the folder.
 */
export async function missingFiles(
  store: Store,
  jobName: string,
  { outFolder: current }: Pick<Workspace, "outFolder">,
): Promise<Map<string, number[]>> {
  const runs = (await store.runs()).filter((run) => run.jobName === jobName);
  const folders = [...new Set([jobFolder({ outFolder: current, jobName }), ...runs.map(jobFolder)])];
  const missing = new Map<string, number[]>();
  const indexes = new Indexes(nodeDisk);
  for (const { key, number, taskId: task, file, outFolder, bucket } of await store.files(jobName)) {
    const isIn = (folder: string) => existsSync(join(folder, file));
    const own = jobFolder({ outFolder, jobName });
    // Only `verify` reads buckets.
    if (bucket != null || isIn(own) || folders.some(isIn)) continue;
    // The history may be a copy of before it was pruned.
    const line = (await indexes.of(own)).find(identityOf({ key, task, output: number }));
    if (isPruned(line?.check)) continue;
    missing.set(key, [...(missing.get(key) ?? []), number]);
  }
  return missing;
}
