import { resolve } from "node:path";
import { defined } from "../core/defined.js";
import type { Problem } from "../core/problem.js";
import type { EditionChoice } from "../job/paid/job-of.js";
import { publishProblem, type SheetOptions } from "../job/run/prepare.js";
import type { Host } from "../machine.js";
import { openManifest, type ReadOptions } from "../manifest/read.js";
import type { Row } from "../manifest/shape/manifest.js";
import { ItemNames } from "../plan/names.js";
import { allRows } from "../plan/plan.js";
import { localDay } from "../text/times.js";
import { checkManifestSettings } from "./settings.js";

/** How a manifest is read. */
export interface ReadSettings {
  /** The model for rows that name none. */
  model?: string;
  /** The prompt for rows that have none. */
  prompt?: string;
  /** Params for rows that do not set them. */
  params?: Readonly<Record<string, string>>;
  /** The sheet of a workbook; the first by default. */
  sheet?: string;
  /** Undo what spreadsheets change, such as 16:9 into 16:09. */
  repair?: boolean;
  /** Leave out rows that look like headings or totals. Default: false. */
  skipHeadings?: boolean;
  /** Refuse a job that makes more items than this; 100,000 by default. */
  maxItems?: number;
}

/** How a manifest is read, and which of its items are made. */
export interface SheetSettings extends ReadSettings {
  /** The job that the manifest belongs to: its name, or that of its file, by default. */
  job?: string;
  /** Buy though the key was charged for requests that this machine did not send. Default: false. */
  acceptForeignUse?: boolean;
  /** Make everything again under this name, once. */
  edition?: string;
  /** Start a new edition, or continue the newest unfinished one. */
  fresh?: boolean;
  /** Only rows with this value in this column; `*` and `?` match any text. */
  filter?: Readonly<Record<string, string>>;
  /** Only this many rows. */
  first?: number;
  /** Only rows whose item failed. */
  onlyFailed?: boolean;
}

/** A row of a manifest, in one of its combinations, with its templates rendered. */
export interface ManifestRow
  extends Pick<
    Row,
    "number" | "id" | "model" | "prompt" | "params" | "inputs" | "output" | "repeat" | "priority" | "step"
  > {
  /** Every cell as written, by column. */
  cells: Readonly<Record<string, string>>;
}

export interface ReadManifest {
  /** The job's name. */
  name: string;
  columns: readonly string[];
  rows: ManifestRow[];
  /** What is wrong with the file and its rows; nothing can be planned of those rows. */
  problems: Problem[];
  /** Remarks that stop nothing. */
  notes: string[];
}

/** Never throws because of the file's content. Throws RangeError for a setting that has no meaning. */
export async function readRows(on: Host, manifest: string, settings: ReadSettings): Promise<ReadManifest> {
  checkManifestSettings(manifest, settings);
  const opened = await openManifest(resolve(on.cwd, manifest), readingOf(on, settings));
  const names = new ItemNames();
  const problems = [...publishProblem(opened)];
  const rows: ManifestRow[] = [];
  const parts = opened.parts();
  for (;;) {
    const { value, done } = await parts.next();
    if (done) {
      const { refusal, notes } = value;
      const { name, columns } = opened;
      if (refusal !== null) return { name, columns, rows: [], problems: [refusal, ...problems], notes };
      return { name, columns, rows, problems, notes };
    }
    for (const problem of value.problems) problems.push(problem);
    for (const row of value.rows) {
      problems.push(...names.check(row));
      rows.push(shownRow(row));
    }
  }
}

function shownRow(row: Row): ManifestRow {
  const { number, id, model, prompt, params, inputs, output, repeat, priority, step, columns: cells } = row;
  return { number, id, model, prompt, params, inputs, output, repeat, priority, step, cells };
}

function readingOf({ clock, cwd }: Host, settings: ReadSettings): ReadOptions {
  const { model, prompt, params, sheet, repair = false, skipHeadings = false, maxItems } = settings;
  return {
    defaults: {
      ...defined({ model, prompt }),
      ...(params === undefined ? {} : { params: { ...params } }),
    },
    cwd,
    today: localDay(clock.now()),
    repair,
    skipHeadings,
    ...defined({ sheet, itemsMax: maxItems }),
  };
}

/** @internal */
export function sheetOptionsOf(on: Host, settings: SheetSettings): SheetOptions {
  const { job = null, filter = {}, first = null, onlyFailed = false } = settings;
  const filters = Object.entries(filter).map(([key, pattern]) => ({ key, pattern }));
  return {
    reading: readingOf(on, settings),
    edition: editionOf(settings),
    selection: { ...allRows, filters, first, onlyFailed },
    duplicates: "keep",
    order: "priority",
    onMissing: "report",
    job,
  };
}

function editionOf({ edition, fresh = false }: SheetSettings): EditionChoice {
  return fresh ? "fresh" : edition === undefined ? "first" : { name: edition };
}
