import { type Command, InvalidArgumentError } from "commander";
import type { Filter, Selection } from "../../plan/plan.js";
import { positive } from "./values.js";

/** Flags that say which rows a command is about. */
export interface SelectionFlags {
  filter?: Filter[];
  onlyFailed?: boolean;
  range?: { from: number; to: number };
  sample?: number;
  seed?: string;
  first?: number;
}

export function withSelection(command: Command): Command {
  return command
    .option(
      "--filter <key=value>",
      "only rows where it is so; * and ? stand for any text; repeatable",
      filter,
    )
    .option("--only-failed", "only rows whose item failed")
    .option("--range <from:to>", "only rows with these numbers, such as 2:50, 100: or 7", range)
    .option("--sample <n>", "only so many rows, drawn by lot", positive)
    .option("--seed <text>", "draw others; the same text draws the same rows")
    .option("--first <n>", "only the first rows of what the other flags leave", positive);
}

export function selectionOf(flags: SelectionFlags): Selection {
  return {
    filters: flags.filter ?? [],
    onlyFailed: flags.onlyFailed ?? false,
    range: flags.range ?? null,
    sample: flags.sample ?? null,
    seed: flags.seed ?? "",
    first: flags.first ?? null,
  };
}

function filter(text: string, gathered: Filter[] = []): Filter[] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError(`expected key=value, got ${JSON.stringify(text)}.`);
  return [...gathered, { key: text.slice(0, at).trim(), pattern: text.slice(at + 1) }];
}

function range(text: string): { from: number; to: number } {
  const match = /^(\d{1,9})?(?:(:|-)(\d{1,9})?)?$/.exec(text.trim());
  const [, first, sign, last] = match ?? [];
  const from = Number(first ?? 1);
  const to = sign === undefined ? from : Number(last ?? Number.POSITIVE_INFINITY);
  if (match && (first ?? last) !== undefined && from <= to) return { from, to };
  throw new InvalidArgumentError(
    `expected row numbers such as 2:50, 100:, :20 or 7, got ${JSON.stringify(text)}.`,
  );
}
