import { type Command, InvalidArgumentError } from "commander";
import { type Plan, paidForKinds } from "../../plan/plan.js";
import type { Flag } from "../../store/schedules.js";
import { jsonPieces } from "../../text/json-stream.js";
import { givenFlags } from "../flags/given.js";
import { type ManifestFlags, manifestPath, sheetOptions, withManifest } from "../flags/manifest.js";
import { withCaps } from "../flags/run.js";
import { type SharedFlags, withService } from "../flags/shared.js";
import { endWith } from "../output/ending.js";
import type { CapFlags } from "../output/session.js";

interface PlanFlags extends SharedFlags, ManifestFlags, CapFlags {
  rows?: boolean;
  save?: string;
}

/** Flags that say how a plan is shown and asked for, not what it is. */
const ofLooking = [
  "--rows",
  "--save",
  "--json",
  "--quiet",
  "--log-level",
  "--workspace",
  "--base-url",
  "--api-key-file",
];

export function definePlan(program: Command): void {
  const command = withCaps(withManifest(withService(program.command("plan"))))
    .description("check and price a manifest; spends nothing")
    .option("--rows", "list every item")
    .option("-o, --save <file>", "save the plan, for bulkgen run FILE (a name that ends in .json)", planFile);
  const given = givenFlags(command, ofLooking);
  command.action((manifest: string, flags: PlanFlags) => plan(manifest, flags, given));
}

function planFile(text: string): string {
  if (text.endsWith(".json")) return text;
  throw new InvalidArgumentError(`expected a name that ends in .json, got ${JSON.stringify(text)}.`);
}

async function plan(manifest: string, flags: PlanFlags, given: readonly Flag[]): Promise<void> {
  const [
    { planJob },
    { spendingOptions, workspaceOf },
    { refuseUnusable },
    { forLooking },
    { connect },
    { openLog },
    { interruption },
    { systemClock },
  ] = await Promise.all([
    import("../../job/run/plan-job.js"),
    import("../output/session.js"),
    import("../../job/place/place.js"),
    import("../../job/workspace/workspace.js"),
    import("../settings/connect.js"),
    import("../output/log.js"),
    import("../output/signals.js"),
    import("../../system.js"),
  ]);
  const found = workspaceOf(flags, manifest);
  refuseUnusable(found);
  // A rehearsal whose account is gone with the command could not be run as it is saved.
  const workspace = flags.save === undefined ? forLooking(found, flags.sandbox ?? false) : found;
  const options = {
    workspace,
    manifest: manifestPath(manifest),
    connect: () => connect(flags, workspace, { manifest }),
    ...sheetOptions(flags),
    spending: spendingOptions(flags),
    clock: systemClock,
    log: await openLog(flags.logLevel),
    signal: interruption(),
  };
  await planJob(options, async (made) => {
    await print(made, flags);
    if (flags.save !== undefined) {
      const { writePlan } = await import("../output/saved-plan.js");
      const how = { manifest: options.manifest, workspace: found.root, sandbox: flags.sandbox ?? false };
      await writePlan(flags.save, made, { ...how, flags: given });
      if (!flags.json)
        process.stdout.write(`\nsaved: \`bulkgen run ${flags.save}\` makes it as it is planned\n`);
    }
    endAs(made);
  });
}

function endAs({ problems, blockers }: Plan): void {
  if (problems.length > 0) endWith("usage");
  else if (blockers.some((blocker) => blocker.kind === "insufficient_credits")) endWith("credits");
  else if (blockers.some(({ kind }) => paidForKinds.includes(kind))) endWith("usage");
  else if (blockers.length > 0) endWith("key");
}

async function print(made: Plan, flags: PlanFlags): Promise<void> {
  if (flags.json) {
    const { planJson } = await import("../output/plan-json.js");
    for (const piece of jsonPieces(planJson(made))) await written(piece);
    return;
  }
  const [{ planText, rowsTable }, { terminalStyle }] = await Promise.all([
    import("../../report/plan-table.js"),
    import("../../text/table.js"),
  ]);
  const look = terminalStyle(process.stdout, process.env);
  process.stdout.write(`${planText(made, process.cwd(), look)}\n`);
  if (flags.rows) process.stdout.write(`\n${rowsTable(made.items, look)}\n`);
}

/** A reader may be slower than the plan is read. */
async function written(text: string): Promise<void> {
  await new Promise<void>((done) => process.stdout.write(text, () => done()));
}
