import { inCredits, showCredits, toNumber } from "../core/money.js";
import { count } from "../text/amounts.js";
import { type Cell, type Column, labelled, paint, table } from "../text/table.js";
import { shortText, terminalText, textWidth } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { iso, localMinute } from "../text/times.js";
import type { FoundOutput, FoundOutputs } from "../upkeep/archive/find.js";

/** How many files are listed for people. */
export const shownMax = 50;
const promptCharactersMax = 120;

const columns: readonly Column[] = [
  { title: "file", flexible: true },
  { title: "row" },
  { title: "model" },
  { title: "saved" },
  { title: "credits", align: "right" },
  { title: "prompt", flexible: true },
];

/** One line for each file, or a few if the terminal is too narrow: a file's name is never cut. */
export function foundTable({ newest, count: all }: FoundOutputs, style: TerminalStyle = plainStyle): string {
  if (all === 0) return "nothing found";
  const rows = newest.map(({ path, item, savedAt, charged }): Cell[] => [
    path,
    `${item.rowNumber} (${item.rowId})`,
    item.model,
    localMinute(savedAt),
    charged === null ? "" : showCredits(charged),
    shortText(item.prompt ?? "", promptCharactersMax),
  ]);
  const width = Math.max(...table(columns, rows).split("\n").map(textWidth));
  const isNarrow = style.width !== null && width > style.width;
  const lines = isNarrow ? newest.map((output) => foundLines(output, style)) : [table(columns, rows, style)];
  const more = all - rows.length;
  const rest = more > 0 ? [`and ${count(more, "more file", "more files")}: --json has every one`] : [];
  return [...lines, ...rest].join("\n");
}

function foundLines({ path, item, savedAt, charged }: FoundOutput, style: TerminalStyle): string {
  const facts = [`row ${item.rowNumber} (${item.rowId})`, item.model, `saved ${localMinute(savedAt)}`];
  const cost = charged === null ? [] : [inCredits(charged)];
  const prompt = shortText(item.prompt ?? "", promptCharactersMax);
  const lines: [string, string][] = [
    ["", [...facts, ...cost].join(", ")],
    ...(prompt ? [["", prompt] as [string, string]] : []),
  ];
  return `${paint(terminalText(path), "strong", style)}\n${labelled(lines, style)}`;
}

export function foundJson(found: FoundOutput) {
  const { path, jobName, item, number, charged, savedAt, paidIn, ...rest } = found;
  const { rowId, rowNumber, model, prompt, params, inputs } = item;
  return {
    file: path,
    job: jobName,
    run: paidIn,
    rowNumber,
    rowId,
    model,
    prompt,
    params,
    inputs,
    output: number,
    taskId: rest.taskId,
    externalTaskId: rest.externalTaskId,
    credits: charged === null ? null : toNumber(charged),
    savedAt: iso(savedAt),
    bytes: rest.bytes,
    sha256: rest.sha256,
    mime: rest.mime,
    check: rest.check,
  };
}
