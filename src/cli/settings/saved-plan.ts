import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { Plan } from "../../plan/plan.js";
import { driftOf, isSavedPlan, readSavedPlan, type SavedPlan, savePlan } from "../../plan/saved-plan.js";
import type { Flag } from "../../store/schedules.js";
import { jsonPieces } from "../../text/json-stream.js";
import { nameOf } from "../flags/definition.js";
import { manifestFlags } from "../flags/manifest.js";
import { capFlags, type RunFlags } from "../flags/run.js";
import { runFlagsOf } from "./settings.js";

/** Writes a plan to the file of `-o`. Throws EarlyExit for a plan that cannot be run. */
export function writePlan(
  file: string,
  plan: Plan,
  how: { manifest: string; workspace: string; sandbox: boolean; flags: readonly Flag[] },
  { cwd, clock }: Machine,
): void {
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
  try {
    writePieces(resolve(cwd, file), pieces);
  } catch (error) {
    throw new EarlyExit("usage", `-o: ${(error as Error).message}`);
  }
}

function writePieces(file: string, pieces: Iterable<string>): void {
  const descriptor = openSync(file, "w");
  try {
    for (const piece of pieces) writeSync(descriptor, piece);
  } finally {
    closeSync(descriptor);
  }
}

/** The saved plan in a file; null for any other file, such as a manifest. Throws EarlyExit for a damaged plan. */
export function savedPlanIn(file: string, { cwd }: Machine): SavedPlan | null {
  const path = resolve(cwd, file);
  if (file === "-" || !file.endsWith(".json") || !existsSync(path)) return null;
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
  if (!isSavedPlan(document)) return null;
  try {
    return readSavedPlan(document);
  } catch (error) {
    throw new EarlyExit("usage", `${path}: ${(error as Error).message}. Plan again.`);
  }
}

/** The flags of a run of a saved plan. Throws EarlyExit when the command line sets a flag that the plan has set. */
export function flagsOfPlan<Flags extends RunFlags>(
  saved: SavedPlan,
  flags: Flags,
  given: readonly Flag[],
): Flags {
  const planned = runFlagsOf(saved.flags as unknown as Flag[], [], {}) as unknown as Record<string, unknown>;
  const merged = { ...flags } as unknown as Record<string, unknown>;
  const isGiven = (attribute: string) => given.some(([name]) => name === `--${nameOf(attribute)}`);
  for (const attribute of [...Object.keys(manifestFlags), "sandbox"]) {
    if (isGiven(attribute)) {
      const name = `--${nameOf(attribute)}`;
      throw new EarlyExit("usage", `${name}: the saved plan has set it. To change it, plan again.`);
    }
    merged[attribute] = planned[attribute];
  }
  // An edition that was numbered when it was planned is that one, not the next.
  merged["fresh"] = undefined;
  merged["edition"] = saved.edition === "" ? undefined : saved.edition;
  merged["workspace"] ??= saved.workspace;
  for (const attribute of Object.keys(capFlags))
    if (!isGiven(attribute)) merged[attribute] = planned[attribute] ?? merged[attribute];
  return merged as unknown as Flags;
}

/** Reports what has changed since the plan was saved. Throws EarlyExit if it is more than the tolerance allows. */
export function checkDrift(
  saved: SavedPlan,
  plan: Plan,
  tolerance: number,
  say: (line: string) => void,
): void {
  const drift = driftOf(saved, plan, tolerance);
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
