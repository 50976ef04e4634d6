import { resolve } from "node:path";
import type { Command } from "commander";
import type { Adoption } from "../../job/archive/adopt-folder.js";
import { manifestPath, sheetOptions, withManifest } from "../flags/manifest.js";
import { withCarry, withService } from "../flags/shared.js";
import { endWith } from "../output/ending.js";
import type { RunFlags } from "../output/session.js";

interface AdoptFlags extends RunFlags {
  dryRun?: boolean;
}

export function defineAdopt(program: Command): void {
  const command = program
    .command("adopt")
    .argument("<folder>", "the folder with the files; it stays as it is");
  withCarry(withManifest(withService(command)))
    .description(
      "take files that were made elsewhere into the archive, for the rows that are called like them",
    )
    .option("--out <folder>", "where the files go (default: outputs in the workspace)")
    .option("--dry-run", "only show what would be taken")
    .action(adopt);
}

/** What a run of files alone goes by: it submits nothing. */
const nothingToSubmit = {
  retries: 0,
  downloads: 1,
  overdueWait: 0,
  onInsufficient: "refuse",
  onDailyLimit: "stop",
} as const;

async function adopt(folder: string, manifest: string, flags: AdoptFlags): Promise<void> {
  const [{ adoptFolder }, { jobOptions, runOptions, settledWorkspace }] = await Promise.all([
    import("../../job/archive/adopt-folder.js"),
    import("../output/session.js"),
  ]);
  const workspace = settledWorkspace(flags, manifest, { make: true });
  const { options, display } = await jobOptions(flags, workspace);
  const adoption = await adoptFolder({
    ...options,
    ...sheetOptions(flags),
    folder: resolve(folder),
    manifest: manifestPath(manifest),
    run: runOptions({ ...flags, ...nothingToSubmit }),
    dryRun: flags.dryRun ?? false,
  });
  display.end();
  await print(adoption, flags);
  if (adoption.refused.length > 0) endWith("usage");
}

async function print(adoption: Adoption, flags: AdoptFlags): Promise<void> {
  const { adoptionText } = await import("../../report/adoption.js");
  const text = flags.json
    ? JSON.stringify({ dryRun: flags.dryRun ?? false, ...adoption })
    : adoptionText({ dryRun: flags.dryRun ?? false, ...adoption }, process.cwd());
  process.stdout.write(`${text}\n`);
}
