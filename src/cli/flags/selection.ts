import type { Filter, Selection } from "../../plan/plan.js";
import { type FlagsOf, grouped, option, toggle } from "./definition.js";
import { anyText, FlagError, positive } from "./values.js";

const inFiles = "never";

/** Flags that choose rows. */
export const selectionFlags = grouped("Which rows:", {
  filter: option("<key=value>", "only rows with this value; * and ? match any text; repeatable", filter, {
    inFiles,
  }),
  onlyFailed: toggle("only rows whose item failed", { inFiles }),
  range: option("<from:to>", "only rows with these numbers, such as 2:50, 100: or 7", range, { inFiles }),
  sample: option("<n>", "only this many rows, chosen at random", positive, { inFiles }),
  seed: option("<text>", "choose other rows at random; the same text chooses the same rows", anyText),
  first: option("<n>", "only the first rows that the other flags leave", positive, { inFiles }),
});
export type SelectionFlags = FlagsOf<typeof selectionFlags>;

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
