import { resolve } from "node:path";
import { defined } from "../core/defined.js";
import type { EditionChoice } from "../job/paid/job-of.js";
import type { SheetOptions } from "../job/run/prepare.js";
import type { Machine } from "../machine.js";
import type { ReadOptions } from "../manifest/read.js";
import type { Defaults } from "../manifest/shape/manifest.js";
import {
  allRows,
  duplicatesChoices,
  type Filter,
  missingChoices,
  type Selection,
  submitOrders,
} from "../plan/plan.js";
import type { Flag } from "../store/schedules.js";
import { localDay } from "../text/times.js";
import { type FlagsOf, grouped, nameOf, option, toggle } from "./definition.js";
import { anyText, FlagError, givenName, oneOf, parameter, positive } from "./values.js";

const inFiles = "never";

/** Flags that choose rows. */
export const selectionFlags = grouped("Which rows:", {
  filter: option("<key=value>", "only rows with this value; * and ? match any text; repeatable", filter, {
    inFiles,
  }),
  onlyFailed: toggle("only rows whose item failed", { inFiles }),
  range: option("<from:to>", "only rows with these numbers, such as 2:50, 100: or 7", range, { inFiles }),
  sample: option("<n>", "only this many rows, chosen at random", positive, { inFiles }),
  seed: option("<text>", "seed of --sample; the same text chooses the same rows", anyText, {
    fromFolder: "free",
  }),
  first: option("<n>", "only the first rows that the other flags leave", positive, { inFiles }),
});
export type SelectionFlags = FlagsOf<typeof selectionFlags>;

export function selectionOf(flags: SelectionFlags): Selection {
  return {
    filters: flags.filter ?? allRows.filters,
    onlyFailed: flags.onlyFailed ?? allRows.onlyFailed,
    range: flags.range ?? allRows.range,
    sample: flags.sample ?? allRows.sample,
    seed: flags.seed ?? allRows.seed,
    first: flags.first ?? allRows.first,
  };
}

function filter(text: string, before: Filter[] = []): Filter[] {
  const at = text.indexOf("=");
  if (at < 1) throw new FlagError(`expected key=value, got ${JSON.stringify(text)}`);
  return [...before, { key: text.slice(0, at).trim(), pattern: text.slice(at + 1) }];
}

function range(text: string): { from: number; to: number } {
  const match = /^(\d{1,9})?(?:(:|-)(\d{1,9})?)?$/.exec(text.trim());
  const [, first, sign, last] = match ?? [];
  const from = Number(first ?? 1);
  const to = sign === undefined ? from : Number(last ?? Number.POSITIVE_INFINITY);
  if (match && (first ?? last) !== undefined && from <= to) return { from, to };
  throw new FlagError(`expected row numbers such as 2:50, 100:, :20 or 7, got ${JSON.stringify(text)}`);
}

/** Flags that say how a manifest is read. */
export const manifestFlags = {
  ...grouped("The manifest:", {
    model: option("<key>", "model for rows that name none", anyText, { fromFolder: "free" }),
    prompt: option("<text>", "prompt for rows that have none", anyText, { fromFolder: "free" }),
    param: option("<key=value>", "parameter for rows that do not set it; repeatable", parameter, {
      fromFolder: "free",
    }),
    sheet: option("<name>", "sheet of a workbook (default: the first)", anyText, { inFiles: "never" }),
    headerRow: option("<n>", "row of the header (default: found, also below titles)", positive, {
      fromFolder: "free",
    }),
    delimiter: option(
      "<name>",
      "separator between the cells of a CSV: comma, semicolon or tab (default: detected)",
      oneOf("comma", "semicolon", "tab"),
      { fromFolder: "free" },
    ),
    repair: toggle("undo what spreadsheets change, such as 16:9 into 16:09; lists each change", {
      fromFolder: "free",
    }),
    allowDamagedText: toggle("accept text with signs of damage, such as ???? or #REF!", {
      fromFolder: "free",
    }),
    skipHeadings: toggle("leave out rows that look like headings or totals", { fromFolder: "free" }),
    maxItems: option("<n>", "refuse a job that makes more items than this (default: 100000)", positive, {
      fromFolder: "free",
    }),
    job: option(
      "<name>",
      "job that the manifest belongs to (default: its name, or that of its file)",
      givenName,
      { fromFolder: "free" },
    ),
    edition: option("<name>", "make everything again under this name, once", givenName, { inFiles: "never" }),
    fresh: toggle("start a new edition, or continue the newest unfinished one", {
      inFiles: "never",
      conflicts: ["edition"],
    }),
    duplicates: option("<what>", "identical rows: keep, merge or error", oneOf(...duplicatesChoices), {
      default: "keep",
      fromFolder: "free",
    }),
    order: option(
      "<what>",
      "submit first: by priority (then in sheet order), in sheet order, or the cheapest",
      oneOf(...submitOrders),
      { default: "priority", fromFolder: "free" },
    ),
    missing: option(
      "<what>",
      "archived files that are gone: report, fetch (no credits) or pay",
      oneOf(...missingChoices),
      { default: "report", fromFolder: "free" },
    ),
  }),
  ...selectionFlags,
};
export type ManifestFlags = FlagsOf<typeof manifestFlags>;

/** How the flags say that a manifest is read. */
export function sheetOptions(flags: ManifestFlags, machine: Machine): SheetOptions {
  const { duplicates, order, missing } = flags;
  return {
    reading: readingOf(flags, machine),
    edition: editionOf(flags),
    selection: selectionOf(flags),
    duplicates,
    order,
    onMissing: missing,
    job: flags.job ?? null,
  };
}

/** The given flags that decide how the manifest is read, and which rows. The edition is on record with the run. */
export function sheetFlagsOf(given: readonly Flag[]): (readonly string[])[] {
  const names = [...Object.keys(manifestFlags), "skipInvalid"].map((attribute) => `--${nameOf(attribute)}`);
  return given
    .filter(([name]) => names.includes(name) && name !== "--edition" && name !== "--fresh")
    .map(([name, value]) => (value === undefined ? [name] : [name, value]));
}

/** The manifest's absolute path; standard input has none. */
export function manifestPath(manifest: string, { cwd }: Pick<Machine, "cwd">): string {
  return manifest === "-" ? manifest : resolve(cwd, manifest);
}

export function readingOf(
  flags: Omit<ManifestFlags, keyof SelectionFlags>,
  { stdin, clock, cwd }: Machine,
): ReadOptions {
  const { sheet, headerRow, delimiter, maxItems } = flags;
  return {
    defaults: defaultsOf(flags),
    stdin,
    cwd,
    today: localDay(clock.now()),
    repair: flags.repair ?? false,
    allowDamagedText: flags.allowDamagedText ?? false,
    skipHeadings: flags.skipHeadings ?? false,
    ...defined({ sheet, headerRow, delimiter, itemsMax: maxItems }),
  };
}

function defaultsOf({ model, prompt, param }: Pick<ManifestFlags, "model" | "prompt" | "param">): Defaults {
  return {
    ...defined({ model, prompt, params: param }),
  };
}

function editionOf({ edition, fresh }: ManifestFlags): EditionChoice {
  return fresh ? "fresh" : edition === undefined ? "first" : { name: edition };
}
