import { localMinute } from "../core/local-time.js";
import { showCredits, toNumber } from "../core/money.js";
import type { FoundOutput } from "../job/archive/find.js";
import { count } from "../text/amounts.js";
import { iso } from "../text/iso.js";
import { type Cell, type Column, plainStyle, type TerminalStyle, table } from "../text/table.js";
import { shortText } from "../text/terminal.js";

const shownMax = 50;
const promptCharactersMax = 120;

const columns: readonly Column[] = [
  { title: "file", flexible: true },
  { title: "row" },
  { title: "model" },
  { title: "saved" },
  { title: "credits", align: "right" },
  { title: "prompt", flexible: true },
];

export function foundTable(found: readonly FoundOutput[], style: TerminalStyle = plainStyle): string {
  if (found.length === 0) return "nothing found";
  const rows = found
    .slice(0, shownMax)
    .map(({ path, item, savedAt, charged }): Cell[] => [
      path,
      `${item.rowNumber} (${item.rowId})`,
      item.model,
      localMinute(savedAt),
      charged === null ? "" : showCredits(charged),
      shortText(item.prompt ?? "", promptCharactersMax),
    ]);
  const more = found.length - rows.length;
  const rest = more > 0 ? [`and ${count(more, "more file", "more files")}: --json has every one`] : [];
  return [table(columns, rows, style), ...rest].join("\n");
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
