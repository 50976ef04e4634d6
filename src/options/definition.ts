import type { Kept } from "./kept.js";

/**
 * The one definition of a flag. Parsing, help, completion, the settings file, the environment and the tables of the docs
 * all read it. Its name on the command line is that of its attribute: `maxCredits` is `--max-credits`, and `maxCredits` in the
 * library, which sets what a run keeps by the same table.
 */
export interface FlagDefinition<Value = unknown> {
  describe: string;
  /** Stands for the value in the help, such as `<n>`; null for a switch. */
  value: string | null;
  /** Reads one value; `before` is what the flag's earlier occurrences gave. Throws FlagError. */
  parse(text: string, before?: Value): Value;
  default?: Value;
  /** The default as people write it, if that differs from its value. */
  defaultText?: string;
  /** The only values that it takes. */
  choices?: readonly string[];
  /** What it says when it stands alone: the next word is its value only if it is one of the choices. */
  alone?: string;
  /** One letter, such as `o`. */
  short?: string;
  /** A switch that `--no-NAME` turns off. */
  negatable?: true;
  required?: true;
  /** Attributes of flags that cannot be used with it. */
  conflicts?: readonly string[];
  /** The attribute of the flag without which it means nothing. For flags of the command line alone. */
  needs?: string;
  /** `never`: belongs to one call. `own files`: only in the user's own file, because a folder may be somebody else's. */
  inFiles?: "never" | "own files";
  /**
   * What the settings file of a folder may do with it, as the folder may be somebody else's: set it (`free`), or set it once
   * this user has agreed to the value on this machine (`asks`; `asks outside` only for a path that leaves the folder).
   */
  fromFolder?: "free" | "asks" | "asks outside";
  /** The value is a path: `~` at its beginning is the home folder, and in a settings file it starts from that file's folder. */
  isPath?: true;
  /** The heading it stands under in the help. */
  group?: string;
  /** How a run keeps it; absent for what belongs to one call. */
  kept?: Kept;
}

export type FlagSet = Readonly<Record<string, FlagDefinition>>;

type ValueOf<Flag> = Flag extends FlagDefinition<infer Value> ? Value : never;
type WithDefault<Flags> = {
  [Name in keyof Flags]: Flags[Name] extends { default: unknown } ? Name : never;
}[keyof Flags];

/** The values of a set of flags, as a command is handed them. */
export type FlagsOf<Flags> = { -readonly [Name in WithDefault<Flags>]: ValueOf<Flags[Name]> } & {
  -readonly [Name in Exclude<keyof Flags, WithDefault<Flags>>]?: ValueOf<Flags[Name]>;
};

type Details<Value> = Partial<Omit<FlagDefinition<Value>, "default" | "describe" | "value" | "parse">>;

/** A flag with a value. */
export function option<Value>(
  value: string,
  describe: string,
  parse: Reader<Value>,
  details: Details<Value> & { default: NoInfer<Value> },
): FlagDefinition<Value> & { default: Value };
export function option<Value>(
  value: string,
  describe: string,
  parse: Reader<Value>,
  details?: Details<Value>,
): FlagDefinition<Value>;
export function option<Value>(
  value: string,
  describe: string,
  parse: Reader<Value>,
  details: Details<Value> & { default?: Value } = {},
): FlagDefinition<Value> {
  return {
    describe,
    value,
    parse,
    ...("choices" in parse ? { choices: parse.choices as string[] } : {}),
    ...details,
  };
}

type Reader<Value> = (text: string, before?: Value) => Value;

/** A flag without a value: it is given or not. */
export function toggle(describe: string, details: Details<boolean> = {}): FlagDefinition<boolean> {
  return { describe, value: null, parse: () => true, ...details };
}

/** The flags without their defaults, and only on the command line: options that are not given stay as they were. */
export function asChanges<Flags extends FlagSet>(
  flags: Flags,
): { [Name in keyof Flags]: Omit<Flags[Name], "default"> } {
  return Object.fromEntries(
    Object.entries(flags).map(([name, { default: _, defaultText: __, ...flag }]) => [
      name,
      { ...flag, inFiles: "never" as const },
    ]),
  ) as unknown as Flags;
}

/** A flag of `run` that `resume` can change. */
export function changeable<Flag extends FlagDefinition>(flag: Flag): Flag & { changeable: true } {
  return { ...flag, changeable: true };
}

/** Those of the flags that can be changed. */
export function changeablesOf<Flags extends FlagSet>(
  flags: Flags,
): { [Name in keyof Flags as Flags[Name] extends { changeable: true } ? Name : never]: Flags[Name] } {
  return Object.fromEntries(Object.entries(flags).filter(([, flag]) => "changeable" in flag)) as never;
}

/** Puts flags under a heading of the help. */
export function grouped<Flags extends FlagSet>(group: string, flags: Flags): Flags {
  return Object.fromEntries(
    Object.entries(flags).map(([name, flag]) => [name, { ...flag, group }]),
  ) as unknown as Flags;
}

/** `maxCredits` is `max-credits` on the command line and in settings files. */
export function nameOf(attribute: string): string {
  return attribute.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** `max-credits` is `BULKGEN_MAX_CREDITS` in the environment. */
export function variableOf(name: string): string {
  return `BULKGEN_${name.toUpperCase().replaceAll("-", "_")}`;
}
