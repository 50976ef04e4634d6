import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { EditionChoice } from "../../job/run/edition.js";
import type { SheetOptions } from "../../job/run/prepare.js";
import { itemsMaxDefault } from "../../manifest/combinations.js";
import { type DelimiterName, delimiters } from "../../manifest/formats/csv.js";
import type { ReadOptions } from "../../manifest/read.js";
import type { Defaults } from "../../manifest/shape/manifest.js";
import type { Duplicates, OnMissing, SubmitOrder } from "../../plan/plan.js";
import { systemClock } from "../../system.js";
import { type SelectionFlags, selectionOf, withSelection } from "./selection.js";
import { jobName, oneOf, parameter, positive } from "./values.js";

/** Flags that say how a manifest is read: shared by `plan` and `run`. */
export interface ManifestFlags extends SelectionFlags {
  job?: string;
  duplicates: Duplicates;
  order: SubmitOrder;
  missing: OnMissing;

  model?: string;
  prompt?: string;
  param?: Record<string, string>;
  edition?: string;
  fresh?: boolean;
  sheet?: string;
  delimiter?: DelimiterName;
  repair?: boolean;
  maxItems?: number;
}

export function withManifest(command: Command): Command {
  const names = Object.keys(delimiters) as DelimiterName[];
  return withSelection(command)
    .argument("<manifest>", "CSV, XLSX, JSON, JSONL or YAML file with the rows; - reads standard input")
    .option("--model <key>", "model of the rows that name none")
    .option("--prompt <text>", "prompt of the rows that have none")
    .option("--param <key=value>", "parameter of the rows that do not set it; may be repeated", parameter)
    .option("--sheet <name>", "sheet of a workbook (default: its first)")
    .addOption(
      new Option(
        "--delimiter <name>",
        `what parts the cells of a CSV: ${names.join(", ")} (default: detected)`,
      ).argParser(oneOf(...names)),
    )
    .option("--repair", "read 16:09 as the option 16:9, and whatever else a spreadsheet changed; tells each")
    .option(
      "--max-items <n>",
      `refuse a job whose combinations make more items (default: ${itemsMaxDefault})`,
      positive,
    )
    .option(
      "--job <name>",
      "the job that the manifest belongs to (default: its name, or its file's)",
      jobName,
    )
    .option("--edition <name>", "make everything anew under this name, once")
    .option("--fresh", "start a new edition, or go on with the newest unfinished one")
    .option(
      "--duplicates <what>",
      "rows that ask for the very same thing: keep, merge or error",
      oneOf("keep", "merge", "error"),
      "keep",
    )
    .option(
      "--order <what>",
      "submit first: by priority (then as in the sheet), as in the sheet, or the cheapest",
      oneOf("priority", "sheet", "cheapest"),
      "priority",
    )
    .option(
      "--missing <what>",
      "archived files that are gone: report, fetch (no credits) or pay",
      oneOf("report", "fetch", "pay"),
      "report",
    );
}

/** All that the flags say about how a manifest is read. */
export function sheetOptions(flags: ManifestFlags): SheetOptions {
  const { duplicates, order, missing } = flags;
  return {
    reading: readingOf(flags),
    edition: editionOf(flags),
    selection: selectionOf(flags),
    duplicates,
    order,
    onMissing: missing,
    job: flags.job ?? null,
  };
}

/** The manifest's absolute path; standard input has none. */
export function manifestPath(manifest: string): string {
  return manifest === "-" ? manifest : resolve(manifest);
}

export function readingOf(flags: ManifestFlags): ReadOptions {
  const { sheet, delimiter, maxItems } = flags;
  return {
    defaults: defaultsOf(flags),
    stdin: process.stdin,
    today: localDay(systemClock.now()),
    repair: flags.repair ?? false,
    ...(sheet === undefined ? {} : { sheet }),
    ...(delimiter === undefined ? {} : { delimiter }),
    ...(maxItems === undefined ? {} : { itemsMax: maxItems }),
  };
}

/** The day here, as `2026-11-21`. */
function localDay(at: number): string {
  const day = new Date(at);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

function defaultsOf({ model, prompt, param }: ManifestFlags): Defaults {
  return {
    ...(model === undefined ? {} : { model }),
    ...(prompt === undefined ? {} : { prompt }),
    ...(param === undefined ? {} : { params: param }),
  };
}

function editionOf({ edition, fresh }: ManifestFlags): EditionChoice {
  return fresh ? "fresh" : edition === undefined ? "first" : { name: edition };
}
