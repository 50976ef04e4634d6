import { type Credits, credits, showCredits } from "../core/money.js";
import type { RunOptions } from "../core/next/options.js";

/** How a run keeps a flag: `resume` goes on with it, and `status` shows it. */
export interface Kept {
  /** Its name among the options of the run. */
  as: keyof RunOptions;
  /** The option for a value of the flag, given the option so far; null where something else than the flag alone decides. */
  of: ((value: unknown, before: unknown) => unknown) | null;
  /** The option as the flag takes it, once for each occurrence; nothing of an option that the flag does not show. */
  texts(option: unknown): readonly string[];
}

interface Details<Value, Option> {
  of?: ((value: Value, before: Option | undefined) => Option) | null;
  texts?(option: Option): readonly string[];
}

/** The run keeps the value as it is, unless the details say otherwise. */
export function kept<Name extends keyof RunOptions, Value = NonNullable<RunOptions[Name]>>(
  as: Name,
  {
    of = (value) => value as never,
    texts = (option) => [String(option)],
  }: Details<Value, NonNullable<RunOptions[Name]>> = {},
): Kept {
  return { as, of, texts } as Kept;
}

type NamesOf<Type> = {
  [Name in keyof RunOptions]-?: Type extends RunOptions[Name] ? Name : never;
}[keyof RunOptions];

/** An amount of credits. */
export function keptCredits(as: NamesOf<Credits>): Kept {
  return kept<typeof as, number>(as, {
    of: (amount) => credits(amount),
    texts: (option) => [showCredits(option as Credits)],
  });
}

/** Milliseconds, in the largest unit that gives a whole number. */
export function keptTime(as: "maxDurationMs" | "overdueWaitMs" | "afterMs"): Kept {
  return kept(as, { texts: (ms) => [timeText(ms)] });
}

/** The options that values of flags set. */
export function keptValues(
  flags: Readonly<Record<string, { kept?: Kept }>>,
  values: Readonly<Record<string, unknown>>,
  before: Partial<RunOptions>,
): Partial<RunOptions> {
  const options: Record<string, unknown> = {};
  for (const [name, { kept }] of Object.entries(flags)) {
    const value = values[name];
    if (!kept?.of || value === undefined || value === false) continue;
    options[kept.as] = kept.of(value, before[kept.as]);
  }
  return options;
}

export function timeText(ms: number): string {
  if (ms > 0 && ms % 3_600_000 === 0) return `${ms / 3_600_000}h`;
  if (ms > 0 && ms % 60_000 === 0) return `${ms / 60_000}m`;
  return `${ms / 1_000}s`;
}
