import { type Command, Option } from "commander";
import type { Depth, FolderReport } from "../../job/archive/verify.js";
import type { VerifyReport } from "../../report/verify.js";
import { withService } from "../flags/shared.js";
import { percentage } from "../flags/values.js";
import { endWith } from "../output/ending.js";
import type { CarryFlags, Prepared } from "../output/session.js";

interface VerifyFlags extends CarryFlags {
  readData?: boolean;
  subset?: number;
  repair?: boolean;
  clean?: boolean;
  yes?: boolean;
}

export function defineVerify(program: Command): void {
  withService(program.command("verify"))
    .description("check that every archived file is there as it was saved; repair what can be repaired")
    .addOption(new Option("--read-data", "read and hash every byte").conflicts("subset"))
    .option("--subset <share>", "read and hash a share of the files, drawn by lot, such as 10%", percentage)
    .option("--repair", "fetch missing and damaged files again, for no credits, and mend the index")
    .option("--clean", "list the leftovers of broken downloads; with --yes, remove them")
    .option("--yes", "remove what --clean lists")
    .action(verify);
}

async function verify(flags: VerifyFlags): Promise<void> {
  const [{ verifyWorkspace }, { jobOptions, workspaceOf }, { systemClock, systemRandom }] = await Promise.all(
    [import("../../job/archive/verify.js"), import("../output/session.js"), import("../../system.js")],
  );
  const workspace = workspaceOf(flags);
  const settings = { ...flags, unreachableWait: 300_000, ifLocked: "fail" as const };
  const prepared = await jobOptions(settings, workspace);
  const { display, options } = prepared;
  const look = (depth: Depth) =>
    verifyWorkspace({
      workspace,
      depth,
      clock: systemClock,
      random: systemRandom,
      signal: options.interrupt,
      onProgress: (done, all) => display.status(`${done} of ${all} files checked`),
    });
  const before = await look(depthOf(flags));
  const { reports, repaired } = await mended(before, flags, prepared, look);
  const removed = flags.clean && flags.yes ? await clean(reports, prepared) : null;
  display.end();
  await show({ reports, repaired, removed }, flags);
}

function depthOf({ readData, subset }: VerifyFlags): Depth {
  if (subset !== undefined) return { percent: subset };
  return readData ? "all" : "sizes";
}

/** The reports after a repair, where one was asked for and is needed. */
async function mended(
  reports: FolderReport[],
  { repair: isWanted }: VerifyFlags,
  { options }: Prepared,
  look: (depth: Depth) => Promise<FolderReport[]>,
): Promise<{ reports: FolderReport[]; repaired: number | null }> {
  if (!isWanted) return { reports, repaired: null };
  const before = brokenCount(reports);
  if (before === 0) return { reports, repaired: 0 };
  const { repair } = await import("../../job/archive/repair.js");
  await repair(reports, options);
  // What was repaired was hashed when it came, and what was read before it need not be read again.
  const after = (await look("sizes")).map((report) => asRead(report, reports));
  return { reports: after, repaired: before - brokenCount(after) };
}

function asRead(report: FolderReport, before: readonly FolderReport[]): FolderReport {
  const { read = 0, bytesRead = 0 } = before.find(({ path }) => path === report.path)?.examination ?? {};
  return { ...report, examination: { ...report.examination, read, bytesRead } };
}

function brokenCount(reports: readonly FolderReport[]): number {
  const broken = ["missing", "damaged", "unindexed"];
  return reports
    .flatMap(({ examination }) => examination.findings)
    .filter(({ kind }) => broken.includes(kind)).length;
}

async function clean(reports: readonly FolderReport[], { options }: Prepared): Promise<number> {
  const { removeStrays } = await import("../../job/archive/verify.js");
  return removeStrays({ ...options, signal: options.interrupt }, reports);
}

interface Verified {
  reports: readonly FolderReport[];
  repaired: number | null;
  removed: number | null;
}

async function show({ reports, repaired, removed }: Verified, flags: VerifyFlags): Promise<void> {
  const [{ isSound, verifyJson, verifyText }, { terminalStyle }, { shownPath }] = await Promise.all([
    import("../../report/verify.js"),
    import("../../text/table.js"),
    import("../../report/problem-text.js"),
  ]);
  const sandbox = flags.sandbox ? " --sandbox" : "";
  const commands = {
    repair: `bulkgen verify${sandbox} --repair`,
    clean: `bulkgen verify${sandbox} --clean --yes`,
  };
  const facts = (shown: (path: string) => string): VerifyReport => ({
    folders: reports.map(({ path, examination }) => ({ path: shown(path), ...examination })),
    repaired,
    removed,
    commands,
  });
  const here = process.cwd();
  const text = flags.json
    ? JSON.stringify(verifyJson(facts((path) => path)))
    : verifyText(
        facts((path) => shownPath(path, here)),
        terminalStyle(process.stdout, process.env),
      );
  process.stdout.write(`${text}\n`);
  endWith(isSound(facts((path) => path)) ? "done" : "failed");
}
