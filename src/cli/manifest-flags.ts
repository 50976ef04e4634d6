import type { Command } from "commander";
import type { EditionChoice } from "../job/edition.js";
import type { SheetOptions } from "../job/prepare.js";
import type { Defaults } from "../manifest/manifest.js";
import type { Duplicates } from "../plan/expand.js";
import type { OnMissing, Order } from "../plan/plan.js";
import { type SelectionFlags, selectionOf, withSelection } from "./selection-flags.js";
import { oneOf, parameter } from "./values.js";

/** Flags that say how a manifest is read: shared by `plan` and `run`. */
export interface ManifestFlags extends SelectionFlags {
  duplicates: Duplicates;
  order: Order;
  missing: OnMissing;

  model?: string;
  prompt?: string;
  param?: Record<string, string>;
  edition?: string;
  fresh?: boolean;
}

export function withManifest(command: Command): Command {
  return withSelection(command)
    .option("--model <key>", "model of the rows that name none")
    .option("--prompt <text>", "prompt of the rows that have none")
    .option("--param <key=value>", "parameter of the rows that do not set it; may be repeated", parameter)
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
    defaults: defaultsOf(flags),
    edition: editionOf(flags),
    selection: selectionOf(flags),
    duplicates,
    order,
    onMissing: missing,
  };
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
