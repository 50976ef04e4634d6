import { closeSync, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { resolve } from "node:path";
import { Command } from "commander";
import { EarlyExit } from "../../core/exit.js";
import type { Plan } from "../../plan/plan.js";
import type { SavedPlan } from "../../plan/saved-plan.js";
import type { Flag } from "../../store/schedules.js";
import { systemClock } from "../../system.js";
import { jsonPieces } from "../../text/json-stream.js";
import { withManifest } from "../flags/manifest.js";
import { withCaps } from "../flags/run.js";
import { runFlagsOf } from "../settings/settings.js";
import type { RunFlags } from "./session.js";

/** Writes a plan where `-o` says. Throws EarlyExit for one that could not be run anyway. */
export async function writePlan(
  file: string,
  plan: Plan,
  how: { manifest: string; workspace: string; sandbox: boolean; flags: readonly Flag[] },
): Promise<void> {
  if (how.manifest === "-")
    throw new EarlyExit("usage", "-o: expected a manifest in a file, got standard input, which is read once");
  if (plan.problems.length > 0)
    throw new EarlyExit("usage", `-o: a manifest with problems is no plan; ${file} is not written`);
  const { savePlan } = await import("../../plan/saved-plan.js");
  const flags = how.flags.map(([name, value]) => (value === undefined ? [name] : [name, value]));
  const savedAt = new Date(systemClock.now()).toISOString();
  const pieces = jsonPieces(savePlan(plan, { ...how, flags, savedAt }), "\n");
  try {
    writePieces(file, pieces);
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

/** The saved plan in a file; null when it is something else, such as a manifest. Throws EarlyExit for a spoilt one. */
export async function savedPlanIn(file: string): Promise<SavedPlan | null> {
  if (file === "-" || !file.endsWith(".json") || !existsSync(file)) return null;
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
  const { isSavedPlan, readSavedPlan } = await import("../../plan/saved-plan.js");
  if (!isSavedPlan(document)) return null;
  try {
    return readSavedPlan(document);
  } catch (error) {
    throw new EarlyExit("usage", `${resolve(file)}: ${(error as Error).message}. Plan again.`);
  }
}

/** What a plan was made with is not said again: these flags are the plan's. */
function ofPlan(): { name: string; attribute: string }[] {
  const command = withManifest(new Command());
  return command.options.map((option) => ({ name: option.name(), attribute: option.attributeName() }));
}

/** The flags of a run, with those of its plan. Throws EarlyExit where both say something. */
export function flagsOfPlan(saved: SavedPlan, flags: RunFlags, command: Command): RunFlags {
  const planned = runFlagsOf(saved.flags as unknown as Flag[], [], {}) as unknown as Record<string, unknown>;
  const merged = { ...flags } as unknown as Record<string, unknown>;
  for (const { name, attribute } of [...ofPlan(), { name: "sandbox", attribute: "sandbox" }]) {
    if (command.getOptionValueSource(attribute) === "cli")
      throw new EarlyExit("usage", `--${name}: the saved plan says it already; plan again to change it`);
    merged[attribute] = planned[attribute];
  }
  // An edition that was numbered when it was planned is that one, not the next.
  merged["fresh"] = undefined;
  merged["edition"] = saved.edition === "" ? undefined : saved.edition;
  merged["workspace"] ??= saved.workspace;
  for (const option of withCaps(new Command()).options) {
    const attribute = option.attributeName();
    if (command.getOptionValueSource(attribute) !== "cli")
      merged[attribute] = planned[attribute] ?? merged[attribute];
  }
  return merged as unknown as RunFlags;
}

/** Tells what has changed since the plan was saved. Throws EarlyExit when it is more than the tolerance allows. */
export async function checkDrift(
  saved: SavedPlan,
  plan: Plan,
  tolerance: number,
  say: (line: string) => void,
): Promise<void> {
  const { driftOf } = await import("../../plan/saved-plan.js");
  const drift = driftOf(saved, plan, tolerance);
  const refused = drift.filter((each) => each.refused);
  if (refused.length > 0) {
    const lines = drift.map(({ message }) => `  ${message}`).join("\n");
    throw new EarlyExit(
      "usage",
      `what was planned at ${saved.savedAt} has changed, by more than --tolerance ${tolerance}%:\n${lines}\nNothing was submitted. Plan again, or allow more.`,
    );
  }
  for (const { message } of drift) say(`since the plan was saved, within --tolerance: ${message}`);
}
