import type { ExitName } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { VerifyFlags } from "../../options/archive.js";
import { unreachableMsDefault } from "../../options/shared.js";
import { shownPath } from "../../report/problem-text.js";
import { isSound, type VerifyReport, verifyJson, verifyText } from "../../report/verify.js";
import { sandboxFlag, shellWord } from "../../text/shell.js";
import { repair } from "../../upkeep/archive/repair.js";
import { type Depth, type FolderReport, removeStrays, verifyWorkspace } from "../../upkeep/archive/verify.js";
import { lockOwnerOf } from "../../workspace/lock.js";
import { jobOptions, type PreparedRun } from "../output/job-options.js";
import { print } from "../output/print.js";
import { workspaceOf } from "../settings/workspace.js";
import type { Call } from "./call.js";

export async function verify({ flags, machine }: Call<VerifyFlags>): Promise<ExitName> {
  const { clock, random } = machine;
  const workspace = workspaceOf(flags, machine);
  const settings = { ...flags, unreachableWait: unreachableMsDefault, ifLocked: "fail" as const };
  const prepared = await jobOptions(settings, machine, workspace);
  const { display, options } = prepared;
  const check = (depth: Depth) =>
    verifyWorkspace({
      workspace,
      depth,
      clock,
      environment: machine.env,
      random,
      signal: options.interrupt,
      onProgress: (done, all) => display.counting(`${done} of ${all} files checked`),
    });
  const isRunning = async () => (await lockOwnerOf(workspace))?.run != null;
  const work = async () => {
    const ranBefore = await isRunning();
    const before = await check(depthOf(flags));
    const inProgress = ranBefore || (await isRunning());
    const { reports, repaired, later } = await afterRepair(before, flags, prepared, check);
    const removed =
      flags.clean && flags.yes
        ? await removeStrays({ ...options, signal: options.interrupt }, reports)
        : null;
    return { reports, repaired, later, removed, inProgress };
  };
  const verified = await work().finally(display.end);
  return show(verified, flags, machine);
}

function depthOf({ readData, subset }: VerifyFlags): Depth {
  if (subset !== undefined) return { percent: subset };
  return readData ? "all" : "sizes";
}

/** The reports after a repair, if one was asked for and is needed. */
async function afterRepair(
  reports: FolderReport[],
  { repair: isWanted }: VerifyFlags,
  { options }: PreparedRun,
  check: (depth: Depth) => Promise<FolderReport[]>,
): Promise<Pick<Verified, "reports" | "repaired" | "later">> {
  if (!isWanted) return { reports, repaired: null, later: null };
  const before = brokenCount(reports);
  if (before === 0) return { reports, repaired: 0, later: null };
  const later = await repair(reports, options);
  // Intact files need not be read again. A damaged one may still be damaged, and have the right size.
  const after = (await check({ files: damagedIn(reports) })).map((report) => asRead(report, reports));
  return { reports: after, repaired: before - brokenCount(after), later };
}

function asRead(report: FolderReport, before: readonly FolderReport[]): FolderReport {
  const { read = 0, bytesRead = 0 } = before.find(({ path }) => path === report.path)?.examination ?? {};
  return { ...report, examination: { ...report.examination, read, bytesRead } };
}

function damagedIn(reports: readonly FolderReport[]): Set<string> {
  const findings = reports.flatMap(({ examination }) => examination.findings);
  return new Set(findings.flatMap((finding) => (finding.kind === "damaged" ? [finding.identity] : [])));
}

function brokenCount(reports: readonly FolderReport[]): number {
  const broken = ["missing", "damaged", "unindexed", "uncopied"];
  return reports
    .flatMap(({ examination }) => examination.findings)
    .filter(({ kind }) => broken.includes(kind)).length;
}

interface Verified {
  reports: readonly FolderReport[];
  repaired: number | null;
  later: string | null;
  removed: number | null;
  inProgress: boolean;
}

function show(
  { reports, repaired, later, removed, inProgress }: Verified,
  flags: VerifyFlags,
  machine: Machine,
): ExitName {
  const workspace = flags.workspace === undefined ? "" : ` --workspace ${shellWord(flags.workspace)}`;
  const there = `${workspace}${sandboxFlag(flags)}`;
  const verifies = `bulkgen verify${there}`;
  // A damaged file may have the right size: a check of sizes would find nothing to repair, nor may another sample.
  const depth = flags.readData || flags.subset !== undefined ? " --read-data" : "";
  const commands = {
    repair: `${verifies}${depth} --repair`,
    clean: `${verifies} --clean --yes`,
    pay: `bulkgen run SHEET${there} --missing pay`,
    resolve: `bulkgen resolve${there}`,
  };
  const facts = (shown: (path: string) => string): VerifyReport => ({
    folders: reports.map(({ path, examination }) => ({ path: shown(path), ...examination })),
    repaired,
    later,
    removed,
    inProgress,
    commands,
  });
  const whole = facts((path) => path);
  const shown = facts((path) => shownPath(path, machine.cwd));
  const isWell = isSound(whole);
  if (!flags.quiet || flags.json || !isWell)
    print(flags, machine, "verify", verifyJson(whole), (style) => verifyText(shown, style));
  return isWell ? "done" : "failed";
}
