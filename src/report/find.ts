import { type Credits, showCredits, toNumber } from "../core/money.js";
import { shortText } from "../text/terminal.js";
import { count } from "./amounts.js";
import { minute } from "./status.js";
import { type Cell, type Column, type Look, plainLook, table } from "./table.js";

/** A file of the archive and the row that it came from. */
export interface FoundFacts {
  /** As it is shown. */
  path: string;
  jobName: string;
  item: {
    rowId: string;
    rowNumber: number;
    model: string;
    prompt: string | null;
    params: Readonly<Record<string, string>>;
    inputs: Readonly<Partial<Record<string, string>>>;
  };
  number: number;
  taskId: string;
  externalTaskId: string | null;
  charged: Credits | null;
  savedAt: number;
  bytes: number;
  sha256: string;
  mime: string;
  check: string;
  paidIn: number;
}

const shownMax = 50;
const promptCharactersMax = 120;

const columns: readonly Column[] = [
  { title: "file", flexible: true },
  { title: "row" },
  { title: "model" },
  { title: "saved (UTC)" },
  { title: "credits", align: "right" },
  { title: "prompt", flexible: true },
];

export function foundTable(found: readonly FoundFacts[], look: Look = plainLook): string {
  if (found.length === 0) return "nothing found";
  const rows = found
    .slice(0, shownMax)
    .map(({ path, item, savedAt, charged }): Cell[] => [
      path,
      `${item.rowNumber} (${item.rowId})`,
      item.model,
      minute(savedAt),
      charged === null ? "" : showCredits(charged),
      shortText(item.prompt ?? "", promptCharactersMax),
    ]);
  const more = found.length - rows.length;
  const rest = more > 0 ? [`and ${count(more, "more file", "more files")}: --json has every one`] : [];
  return [table(columns, rows, look), ...rest].join("\n");
}

export function foundJson(found: FoundFacts): Record<string, unknown> {
  const { path, jobName, item, number, charged, savedAt, paidIn, ...rest } = found;
  const { rowId, rowNumber, model, prompt, params, inputs } = item;
  return {
    file: path,
    ...{ job: jobName, run: paidIn, row: rowNumber, id: rowId, model, prompt, params, inputs },
    output: number,
    ...{ taskId: rest.taskId, externalTaskId: rest.externalTaskId },
    credits: charged === null ? null : toNumber(charged),
    saved: new Date(savedAt).toISOString(),
    ...{ bytes: rest.bytes, sha256: rest.sha256, mime: rest.mime, check: rest.check },
  };
}
