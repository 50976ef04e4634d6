import { resolve } from "node:path";
import type { ExitName } from "../../core/exit.js";
import type { AdoptFlags } from "../../options/archive.js";
import { manifestPath, sheetOptions } from "../../options/manifest.js";
import { adoptionText } from "../../report/adoption.js";
import { adoptFolder } from "../../upkeep/archive/adopt-folder.js";
import { jobOptions } from "../output/job-options.js";
import { print } from "../output/print.js";
import { workspaceFor } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function adopt({
  flags,
  args,
  machine,
}: Call<AdoptFlags, { folder: string; manifest: string }>): Promise<ExitName | undefined> {
  const { folder, manifest } = args;
  const workspace = await workspaceFor(manifest, flags, machine);
  const { options, display } = await jobOptions(flags, machine, workspace);
  const adoption = await adoptFolder({
    ...options,
    ...sheetOptions(flags, machine),
    folder: resolve(machine.cwd, folder),
    manifest: manifestPath(manifest, machine),
    dryRun: flags.dryRun ?? false,
  }).finally(display.end);
  const facts = { dryRun: flags.dryRun ?? false, ...adoption };
  print(flags, machine, "adopt", facts, () => adoptionText(facts, machine.cwd));
  return adoption.refused.length > 0 ? "failed" : undefined;
}
