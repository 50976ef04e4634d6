import { dirname, resolve } from "node:path";
import type { ExitName } from "../../core/exit.js";
import { runJob } from "../../job/run/run-job.js";
import { manifestPath, sheetFlagsOf, sheetOptions } from "../../options/manifest.js";
import { afterSettings, type RunFlags, runOptions } from "../../options/run.js";
import { scheduledIn } from "../../schedule/scheduled-run.js";
import { shellWord } from "../../text/shell.js";
import { sharedFolderOf } from "../../workspace/workspace.js";
import { agreeToValues } from "../output/agreement.js";
import { askConsent } from "../output/consent.js";
import { followed } from "../output/follow.js";
import { jobOptions } from "../output/job-options.js";
import { checkDrift, flagsOfPlan, placesOf, savedPlanIn } from "../settings/saved-plan.js";
import { workspaceFor, workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function run({
  flags: called,
  args,
  given,
  machine,
}: Call<RunFlags & { tolerance: number }, { manifest: string }>): Promise<ExitName> {
  const saved = savedPlanIn(args.manifest, machine);
  const command = `bulkgen trust ${shellWord(args.manifest)}`;
  if (saved) {
    const path = resolve(machine.cwd, args.manifest);
    const sharedFolder = sharedFolderOf(machine.env);
    const places = placesOf(path, called.workspace === undefined ? saved : { manifest: saved.manifest });
    await agreeToValues(places, { root: dirname(path), sharedFolder }, machine, command);
  }
  const { flags, line, brought } = saved
    ? await flagsOfPlan(saved, called, given, machine)
    : { flags: called, line: given, brought: [] };
  const manifest = saved?.manifest ?? args.manifest;
  const { schedule, due } = scheduledIn(machine.env);
  await agreeToValues(brought, workspaceOf(flags, machine, manifest), machine, command);
  const workspace = await workspaceFor(manifest, flags, machine);
  const prepared = await jobOptions(flags, machine, workspace, command);
  return followed(prepared, flags, (show) =>
    runJob(
      {
        ...prepared.options,
        manifest: manifestPath(manifest, machine),
        ...sheetOptions(flags, machine),
        skipInvalid: flags.skipInvalid ?? false,
        after: afterSettings(flags),
        run: { ...runOptions(flags), sheetFlags: sheetFlagsOf(line) },
        scheduled: schedule === null || due === null ? null : { schedule, due },
        async consent(plan) {
          if (saved) checkDrift(saved, plan, called.tolerance, prepared.display.say);
          return askConsent(plan, flags, prepared);
        },
      },
      show,
    ),
  );
}
