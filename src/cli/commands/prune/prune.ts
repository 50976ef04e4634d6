import { relative } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { PruneFlags } from "../../../options/archive.js";
import { count, fileSize } from "../../../text/amounts.js";
import { type Cell, table } from "../../../text/table.js";
import { terminalText } from "../../../text/terminal.js";
import type { TerminalStyle } from "../../../text/terminal-style.js";
import { localTime } from "../../../text/times.js";
import { type Pruning, pruneWorkspace } from "../../../upkeep/archive/prune.js";
import { agreeToValues } from "../../output/agreement.js";
import { openDisplay } from "../../output/open-display.js";
import { print } from "../../output/print.js";
import { confirmed } from "../../output/question.js";
import { workspaceToChange } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/** Removes old files of the archive, after it has shown what goes. */
export async function prune({ flags, machine }: Call<PruneFlags>): Promise<undefined> {
  const { clock, stderr } = machine;
  const before = clock.now() - flags.olderThan;
  const display = openDisplay(flags.quiet ?? false, machine);
  const signal = machine.interrupt();
  const workspace = workspaceToChange(flags, machine);
  let isShown = false;
  const { pruning, removed } = await pruneWorkspace({
    workspace,
    before,
    keepPicked: flags.keepPicked ?? false,
    clock,
    signal,
    async consent(found) {
      if (flags.dryRun) return false;
      const all = found.files + found.quarantine.files;
      const what = `${count(all, "file")}, ${fileSize(found.bytes + found.quarantine.bytes)}`;
      if (!flags.yes && !flags.json) {
        isShown = true;
        stderr.write(`${pruningText(found, before, machine.cwd)}\n`);
      }
      await agreeToValues(found.outside, workspace, machine);
      const question = {
        would: `this would remove ${what} for good`,
        question: `Remove ${what}, for good?`,
        done: "removed",
      };
      if (await confirmed(flags, machine, signal, question)) return true;
      throw new EarlyExit("usage", "not confirmed; nothing was removed");
    },
    onProgress: (what, done, all) => display.counting(`${done} of ${all} files ${what}`),
  }).finally(display.end);
  const { files, bytes, groups, quarantine, kept } = pruning;
  const document = {
    before: new Date(before).toISOString(),
    removed,
    files,
    bytes,
    groups: [...groups],
    quarantine,
    kept,
  };
  if (flags.quiet && !flags.json) return undefined;
  print(flags, machine, "prune", document, (style) => {
    const all = files + quarantine.files;
    if (all === 0) return pruningText(pruning, before, machine.cwd, style);
    const what = `${count(all, "file")}, ${fileSize(bytes + quarantine.bytes)}`;
    const shown = isShown ? [] : [pruningText(pruning, before, machine.cwd, style)];
    return [...shown, removed ? `removed ${what}` : `nothing was removed: --dry-run`].join("\n");
  });
  return undefined;
}

function pruningText(
  { files, groups, quarantine, kept }: Pruning,
  before: number,
  cwd: string,
  style?: TerminalStyle,
): string {
  const lines: string[] = [];
  if (files + quarantine.files === 0)
    lines.push(`nothing to remove that was saved before ${localTime(before)}`);
  if (groups.length > 0) {
    const columns = [
      { title: "job", flexible: true },
      { title: "edition", flexible: true },
      { title: "folder", flexible: true },
      ...["files", "size", "superseded", "picked"].map((title) => ({ title, align: "right" as const })),
    ];
    const rows = groups.map((group): Cell[] => [
      terminalText(group.job),
      terminalText(group.edition),
      terminalText(relative(cwd, group.folder) || "."),
      group.files,
      fileSize(group.bytes),
      group.superseded,
      group.picked,
    ]);
    lines.push(table(columns, rows, style));
  }
  if (quarantine.files > 0)
    lines.push(
      `${count(quarantine.files, "download")} that failed the check, ${fileSize(quarantine.bytes)}, in _quarantine`,
    );
  const stays = Object.entries(keptWords).flatMap(([reason, words]) => {
    const number = kept[reason as keyof Pruning["kept"]];
    return number === 0 ? [] : [`${number} ${words}`];
  });
  if (stays.length > 0) lines.push(`As old, and kept: ${stays.join(", ")}.`);
  if (files > 0)
    lines.push(
      "Index, receipts and spend log stay: what was paid for is on record, and no run pays for it again.",
    );
  return lines.join("\n");
}

const keptWords: Readonly<Record<keyof Pruning["kept"], string>> = {
  picked: "of picked items",
  unfinished: "of jobs that are not finished",
  undecided: "that wait for approval",
  needed: "that other items take as input",
  changed: "that have changed since",
  elsewhere: "behind a symbolic link, or in a folder of no run",
  bucket: "in a bucket only",
};
