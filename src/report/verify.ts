import { posix } from "node:path";
import type { FileFinding } from "../archive/examine.js";
import { count, fileSize } from "../text/amounts.js";
import { type Cell, labelled, type Tone } from "../text/table.js";
import { shortText } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";

/** What was found in one job's folder. */
interface ExaminedFolder {
  path: string;
  files: number;
  read: number;
  bytesRead: number;
  findings: readonly {
    kind: FileFinding["kind"];
    file: string;
    reason?: string;
    bytes?: number;
  }[];
}

export interface VerifyReport {
  folders: readonly ExaminedFolder[];
  /** Files that were broken or not in the index before a repair; null when none was asked for. */
  repaired: number | null;
  /** Why some files could not be downloaded yet; null if there are none, or without a repair. */
  later: string | null;
  /** Leftovers that were removed; null when that was not asked for. */
  removed: number | null;
  /** A run was in progress: the partial downloads are, or may be, its own. */
  inProgress: boolean;
  /** The command that repairs, and the one that cleans. */
  commands: { repair: string; clean: string; pay: string; resolve: string };
}

const shownMax = 20;
const nameCharactersMax = 160;

const kinds: readonly [ExaminedFolder["findings"][number]["kind"], Tone, string][] = [
  ["missing", "bad", "the file is gone"],
  ["damaged", "bad", "changed since it was archived"],
  ["unindexed", "warning", "intact, but without a line in index.jsonl"],
  ["uncopied", "bad", "intact, but the bucket has no good copy"],
  ["unproven", "warning", "nothing proves that they are whole: look at them, or play them to the end"],
  ["unknown", "dim", "untracked: not created by bulkgen, left untouched"],
  ["leftover", "dim", "partial downloads and files that failed their check"],
];

const ownPartial = "downloads of the run in progress, or files that failed their check";

const broken = ["missing", "damaged", "unindexed", "uncopied"];

/** Whether every file is unchanged and in the index. */
export function isSound({ folders }: Pick<VerifyReport, "folders">): boolean {
  return folders.every(({ findings }) => findings.every(({ kind }) => !broken.includes(kind)));
}

export function verifyText(facts: VerifyReport, style: TerminalStyle = plainStyle): string {
  const { folders, repaired, removed, inProgress } = facts;
  const sum = (of: (folder: ExaminedFolder) => number) => folders.reduce((all, each) => all + of(each), 0);
  const [files, read] = [sum((folder) => folder.files), sum((folder) => folder.read)];
  const depth =
    read === 0
      ? "checked for presence and size; --read-data reads every byte"
      : readText(files, read, folders);
  const lines: [string, Cell][] = [
    ["files", `${count(files, "file")} in ${count(folders.length, "folder")}, ${depth}`],
  ];
  if (isSound(facts)) lines.push(["sound", { text: "every file is intact", tone: "good" }]);
  for (const [kind, tone, said] of kinds)
    lines.push(...findingLines(folders, kind, tone, kind === "leftover" && inProgress ? ownPartial : said));
  if (repaired !== null) lines.push(["repaired", `${count(repaired, "file")} at no cost`]);
  if (removed !== null) lines.push(["removed", count(removed, "leftover")]);
  lines.push(...nextLines(facts));
  return labelled(lines, style);
}

function readText(files: number, read: number, folders: readonly ExaminedFolder[]): string {
  const bytes = fileSize(folders.reduce((all, each) => all + each.bytesRead, 0));
  return read === files ? `all read (${bytes})` : `${read} of them read (${bytes})`;
}

function findingLines(
  folders: readonly ExaminedFolder[],
  kind: string,
  tone: Tone,
  said: string,
): [string, Cell][] {
  const found = folders.flatMap(({ path, findings }) =>
    findings.filter((finding) => finding.kind === kind).map((finding) => ({ ...finding, path })),
  );
  if (found.length === 0) return [];
  const shown = found.slice(0, shownMax).map(({ path, file, reason, bytes }): [string, Cell] => {
    const size = bytes === undefined ? "" : `: ${fileSize(bytes)}`;
    return ["", shortText(`${posix.join(path, file)}${reason ? `: ${reason}` : size}`, nameCharactersMax)];
  });
  const more = found.length - shown.length;
  return [
    [said === ownPartial ? "partial" : kind, { text: `${found.length}, ${said}`, tone }],
    ...shown,
    ...(more > 0 ? [["", `and ${more} more: --json has every one`] as [string, Cell]] : []),
  ];
}

function nextLines(facts: VerifyReport): [string, Cell][] {
  const { folders, repaired, later, removed, inProgress, commands } = facts;
  const has = (kind: string) => folders.some(({ findings }) => findings.some((each) => each.kind === kind));
  const lines: [string, Cell][] = [];
  const repairs = broken.some((kind) => kind !== "uncopied" && has(kind))
    ? "downloads again what the service still has, at no cost"
    : "copies them to the bucket";
  if (!isSound(facts) && repaired === null) lines.push(["next", `\`${commands.repair}\` ${repairs}`]);
  if (repaired !== null && (has("missing") || has("damaged")))
    lines.push([
      "next",
      later === null
        ? `what is left cannot be downloaded: put it back from a copy, or pay for it again (\`${commands.pay}\`; if it is held, \`${commands.resolve}\`)`
        : `what is left was not downloaded yet: ${later}. \`${commands.repair}\` tries it again, at no cost`,
    ]);
  if (has("leftover") && removed === null && !inProgress)
    lines.push(["next", `\`${commands.clean}\` removes the leftovers`]);
  return lines;
}

export function verifyJson(facts: VerifyReport) {
  const { repaired, later, removed } = facts;
  const folders = facts.folders.map(({ path, files, read, bytesRead, findings }) => ({
    path,
    files,
    read,
    bytesRead,
    findings: findings.map(({ kind, file, reason = null, bytes = null }) => ({ kind, file, reason, bytes })),
  }));
  return { sound: isSound(facts), folders, repaired, later, removed };
}
