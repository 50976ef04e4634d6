import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { FlagSet } from "../../options/definition.js";
import { manifestFlags } from "../../options/manifest.js";
import { type RunFlags, runFlags } from "../../options/run.js";
import { serviceFlags } from "../../options/shared.js";
import type { Plan } from "../../plan/plan.js";
import { DamagedPlan, driftOf, readSavedPlan, type SavedPlan, savePlan } from "../../plan/saved-plan.js";
import { SavedItems } from "../../store/saved-items.js";
import type { Flag } from "../../store/schedules.js";
import { leavesReally } from "../../text/inside.js";
import { jsonPieces } from "../../text/pieces.js";
import { terminalText } from "../../text/terminal.js";
import { agree, type FolderValue } from "../../trust/trust.js";
import { refuseKeptIn } from "../../upkeep/archive/kept-files.js";
import { writeWhole } from "../../whole-file.js";
import type { ConfigFile } from "./config-file.js";
import { fileTrouble } from "./file-trouble.js";
import {
  configFiles,
  flagAsGiven,
  folderValues,
  lineOf,
  runAttribute,
  runFlagsOf,
  writtenValues,
} from "./settings.js";
import { workspaceOf } from "./workspace.js";

/** What a plan is about: a run of it takes these as they were planned, whatever settings and environment say now. */
const fixed = [...Object.keys(manifestFlags), "sandbox"];

/**
 * Whether a plan has this flag of its run. A plan may come from somebody else, so it is trusted as a settings file of
 * the workspace is: it consents to nothing, names no key, service or database, and runs no command that this
 * user has not agreed to.
 */
function isKept(attribute: string): boolean {
  const flag = (runFlags as FlagSet)[attribute];
  return fixed.includes(attribute) || (flag?.inFiles === undefined && !(attribute in serviceFlags));
}

/** The flags that a plan is saved with: what decides about its rows from anywhere, the others as the line gives them. */
export function flagsToSave(
  given: readonly Flag[],
  files: readonly ConfigFile[],
  { cwd, env }: Machine,
): Flag[] {
  const ofRun = given.filter(([name]) => runAttribute(name) !== undefined);
  const kept = Object.keys(runFlags).filter(isKept);
  const flags = kept.flatMap((attribute) =>
    fixed.includes(attribute)
      ? flagAsGiven(attribute, ofRun, files, env)
      : flagAsGiven(attribute, ofRun, [], {}),
  );
  // The output folder stays the same wherever the plan is run from.
  return flags.map((flag) =>
    flag[0] === "--out" && flag[1] !== undefined ? ["--out", resolve(cwd, flag[1])] : flag,
  );
}

/** The given flags that a run of the plan needs again, because the plan does not keep them. */
export function flagsToRepeat(given: readonly Flag[]): string[] {
  const repeated = ["baseUrl", "models", "maxPrice"];
  const isRepeated = (attribute = "") =>
    repeated.includes(attribute) || (runFlags as FlagSet)[attribute]?.inFiles === "own files";
  return [...new Set(given.map(([name]) => name))].filter((name) => isRepeated(runAttribute(name)));
}

/** Writes a plan to the file of `-o`. Throws EarlyExit for a plan that cannot be run. */
export async function writePlan(
  file: string,
  plan: Plan,
  how: { manifest: string; workspace: string; sandbox: boolean; flags: readonly Flag[] },
  machine: Machine,
): Promise<void> {
  const { cwd, clock } = machine;
  if (how.manifest === "-")
    throw new EarlyExit(
      "usage",
      "-o: expected a manifest in a file, got standard input, which can be read only once",
    );
  if (plan.problems.length > 0)
    throw new EarlyExit(
      "usage",
      `-o: the manifest has problems, so ${file} was not written. Fix them and plan again.`,
    );
  const flags = how.flags.map(([name, value]) => (value === undefined ? [name] : [name, value]));
  const savedAt = new Date(clock.now()).toISOString();
  const pieces = jsonPieces(savePlan(plan, { ...how, flags, savedAt }), "\n");
  const path = resolve(cwd, file);
  const workspace = workspaceOf({ workspace: how.workspace, sandbox: how.sandbox }, machine);
  await refuseKeptIn({ file: `-o: ${file}`, path, workspace }, clock, { manifest: how.manifest });
  try {
    await writeWhole(path, pieces);
  } catch (error) {
    throw new EarlyExit("usage", `-o: ${fileTrouble(error, path)}. The plan was not saved.`);
  }
  // Its user has just given these flags.
  const { sharedFolder, root } = workspaceOf({ workspace: how.workspace }, machine);
  agree(sharedFolder, root, writtenValues(how.flags, root, ""), clock.now());
  agree(sharedFolder, dirname(path), placesOf(path, how), clock.now());
}

/** The saved plan in a file; null for any other file, such as a manifest. Throws EarlyExit for a damaged plan. */
export function savedPlanIn(file: string, { cwd }: Machine): SavedPlan | null {
  const path = resolve(cwd, file);
  if (file === "-" || !file.endsWith(".json") || !existsSync(path)) return null;
  try {
    return readSavedPlan(piecesOf(path), () => new SavedItems());
  } catch (error) {
    if (error instanceof DamagedPlan) throw new EarlyExit("usage", `${path}: ${error.message}. Plan again.`);
    // A file that cannot be read is refused as a manifest.
    if ((error as NodeJS.ErrnoException).syscall !== undefined) return null;
    throw error;
  }
}

/** Each piece is overwritten by the next. */
function* piecesOf(path: string): Generator<Uint8Array> {
  const descriptor = openSync(path, "r");
  try {
    const piece = Buffer.allocUnsafe(65_536);
    for (let length = readSync(descriptor, piece); length > 0; length = readSync(descriptor, piece))
      yield piece.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * The flags of a run of a saved plan: those it was made with, except where the line gives another value, and the
 * settings of its own workspace. `line` has the words of all of them; `brought` is what came with the plan and its workspace
 * and needs the user's agreement. Throws EarlyExit when the line or the settings
 * contradict what the plan is about.
 */
export async function flagsOfPlan(
  saved: SavedPlan,
  { workspace = saved.workspace }: Pick<RunFlags, "workspace">,
  given: readonly Flag[],
  machine: Machine,
): Promise<{ flags: RunFlags; line: Flag[]; brought: FolderValue[] }> {
  const planned = saved.flags.map(
    ([name = "", value]): Flag => (value === undefined ? [name] : [name, value]),
  );
  for (const [name] of planned) {
    const attribute = runAttribute(name);
    if (attribute === undefined || !isKept(attribute))
      throw new EarlyExit("usage", `the saved plan has ${name}, which a plan cannot set. Plan again.`);
  }
  // A person who rehearses types --sandbox with every command.
  const ofLine = given.filter(
    ([name, value]) =>
      runAttribute(name) !== undefined && !(name === "--sandbox" && value === undefined && saved.sandbox),
  );
  for (const [name] of ofLine)
    if (fixed.includes(runAttribute(name) ?? ""))
      throw new EarlyExit(
        "usage",
        `${name}: the saved plan has set it. Leave it out, or plan again to change it.`,
      );
  const isGiven = (attribute: string | undefined) =>
    ofLine.some(([name]) => runAttribute(name) === attribute);
  const line = [...planned.filter(([name]) => !isGiven(runAttribute(name))), ...ofLine];
  const { root } = workspaceOf({ workspace }, machine);
  const files = await configFiles(root, machine.env);
  const flags = runFlagsOf(line, files, machine.env);
  if (flags.sandbox && !saved.sandbox)
    throw new EarlyExit(
      "usage",
      "the saved plan is for the real service, but your settings say sandbox (BULKGEN_SANDBOX or bulkgen.config.yaml). Nothing was submitted. Plan again to rehearse, or remove that setting to spend credits.",
    );
  const ofPlan = runFlagsOf(planned, [], {});
  const merged = Object.fromEntries(
    Object.entries(flags).filter(([attribute]) => !fixed.includes(attribute)),
  ) as unknown as RunFlags;
  for (const attribute of fixed as (keyof RunFlags)[])
    if (ofPlan[attribute] !== undefined) Object.assign(merged, { [attribute]: ofPlan[attribute] });
  merged.sandbox = saved.sandbox;
  merged.workspace = workspace;
  // The plan has an edition already: --fresh would choose the next one.
  delete merged.fresh;
  delete merged.edition;
  if (saved.edition !== "") merged.edition = saved.edition;
  const brought = [
    ...planValues(saved, root).filter(({ setting }) => !isGiven(runAttribute(`--${setting}`))),
    ...folderValues(runFlags, lineOf(line), files, machine.env),
  ];
  return { flags: merged, line, brought };
}

/** What a saved plan, which may come from somebody else, does outward. */
export function planValues({ flags }: Pick<SavedPlan, "flags">, root: string): FolderValue[] {
  const given = flags.map(([name = "", value]): Flag => (value === undefined ? [name] : [name, value]));
  return writtenValues(given, root, "the saved plan");
}

/**
 * The files and folders outside its own folder that a saved plan in `path` names. A run of it reads and changes them, and the
 * plan may come from somebody else. The agreements belong to the plan's folder.
 */
export function placesOf(
  path: string,
  { manifest, workspace }: Pick<SavedPlan, "manifest"> & Partial<Pick<SavedPlan, "workspace">>,
): FolderValue[] {
  return Object.entries({ manifest, workspace }).flatMap(([setting, value]) =>
    value !== undefined && leavesReally(dirname(path), value)
      ? [{ setting, value, from: "the saved plan" }]
      : [],
  );
}

/**
 * Reports what has changed since the plan was saved, and closes its items. Throws EarlyExit if it is more than the
 * tolerance allows.
 */
export function checkDrift(
  saved: SavedPlan,
  plan: Plan,
  tolerance: number,
  say: (line: string) => void,
): void {
  const drift = driftOf(saved, plan, tolerance).map((each) => ({
    ...each,
    message: terminalText(each.message),
  }));
  saved.items.close();
  const refused = drift.filter((each) => each.refused);
  if (refused.length > 0) {
    const lines = drift.map(({ message }) => `  ${message}`).join("\n");
    throw new EarlyExit(
      "usage",
      `the plan of ${saved.savedAt} is out of date; the changes exceed --tolerance ${tolerance}%:\n${lines}\nNothing was submitted. Plan again, or raise --tolerance.`,
    );
  }
  for (const { message } of drift) say(`changed since the plan was saved, within --tolerance: ${message}`);
}
