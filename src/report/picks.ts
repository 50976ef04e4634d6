import { type Cell, type Column, labelled, table } from "../text/table.js";
import { shortText, terminalText } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import type { Picked, PickedItem } from "../upkeep/archive/picks.js";

const columns: readonly Column[] = [
  { title: "item" },
  { title: "job" },
  { title: "file", flexible: true },
  { title: "prompt", flexible: true },
];

const promptCharactersMax = 60;

/** What is picked, and the commands that use it. `flags` are those that the user has to type again. */
export function picksTable(
  picked: readonly PickedItem[],
  flags: string,
  style: TerminalStyle = plainStyle,
): string {
  if (picked.length === 0) return `nothing is picked; pick with \`bulkgen pick ITEM${flags}\``;
  const rows = picked.map(({ rowId, job, files, prompt, lost }): Cell[] => [
    rowId,
    job,
    fileText(files, lost),
    shortText(prompt ?? "", promptCharactersMax),
  ]);
  const next = labelled(
    [
      ["show them", `\`bulkgen gallery${flags} --picked\``],
      ["pack them", `\`bulkgen export${flags} --picked --zip picked.zip\``],
    ],
    style,
  );
  return [table(columns, rows, style), next].join("\n\n");
}

function fileText(files: PickedItem["files"], lost: PickedItem["lost"]): string {
  if (lost === "replaced") return "was replaced by a new version; pick again";
  if (lost === "gone") return "no row asks for it any more";
  if (lost === "pruned") return "its file was pruned";
  return files.length === 0 ? "its file is lost" : files.join(", ");
}

/** What a pick changed, a line for each item. */
export function pickedText(items: readonly Picked[], undo: boolean): string {
  return items.map((one) => terminalText(undo ? undoneLine(one) : pickedLine(one))).join("\n");
}

function pickedLine({ rowId, before, insteadOf, note }: Picked): string {
  const others = insteadOf.map((other) => (other === rowId ? "its earlier version" : other));
  const more = note === null ? "" : `. ${note}`;
  if (others.length > 0) return `${rowId} is picked instead of ${others.join(", ")}${more}`;
  return `${rowId} ${before ? "was picked already" : "is picked"}${more}`;
}

function undoneLine({ rowId, before }: Picked): string {
  return before ? `${rowId} is not picked any more` : `${rowId} was not picked`;
}
