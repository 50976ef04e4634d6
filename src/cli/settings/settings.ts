import { dirname, resolve } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import { afterPrefixes, afterVariables } from "../../job/after/environment.js";
import { commandVariables } from "../../notify/command-variables.js";
import { type FlagDefinition, type FlagSet, nameOf, variableOf } from "../../options/definition.js";
import { type RunFlags, runFlags } from "../../options/run.js";
import type { Configured } from "../../options/shared.js";
import { FlagError } from "../../options/values.js";
import { shownValue } from "../../schedule/shown-value.js";
import { ownVariables } from "../../shell.js";
import type { Flag } from "../../store/schedules.js";
import type { Environment } from "../../text/environment.js";
import { fromHome } from "../../text/home.js";
import { leavesReally } from "../../text/inside.js";
import { nearest } from "../../text/nearest.js";
import type { FolderValue } from "../../trust/trust.js";
import { type ConfigFile, readConfig, userConfig, workspaceConfig } from "./config-file.js";

/**
 * The value of each flag, and where it comes from: the command line, else the environment, else `bulkgen.config.yaml`
 * in the workspace, else the one in the user's own config folder, else the default. Environment and files may set every
 * flag of `run` except those that belong to one call, and no other flag: a name such as BULKGEN_FAILED may be in the
 * environment for another reason.
 */

/** Found together with the workspace's `.env`, in env.ts. */
const ofService = ["baseUrl", "apiKeyFile"];

/** The words that the command line gives each flag, by attribute; a switch is given `true` or `false`. */
export type LineWords = Readonly<Record<string, readonly string[]>>;

/** The settings files that apply here, the workspace's first. Throws EarlyExit for a file that cannot be used. */
export async function configFiles(root: string, environment: Environment): Promise<ConfigFile[]> {
  const found = [
    await readConfig(workspaceConfig(root), false),
    await readConfig(userConfig(environment), true),
  ];
  const files = found.filter((file) => file !== null);
  for (const file of files)
    for (const [name, { place }] of file.settings) checkName(name, place, file, environment);
  return files;
}

function checkName(name: string, place: string, { own }: ConfigFile, environment: Environment): void {
  const flags = new Map(
    Object.entries(runFlags as FlagSet).map(([attribute, flag]) => [nameOf(attribute), flag]),
  );
  const flag = flags.get(name);
  if (name === "api-key") {
    throw new EarlyExit(
      "usage",
      `${place}: a key does not belong in this file. Set BULKGEN_API_KEY, or api-key-file in your own ${userConfig(environment)}.`,
    );
  }
  if (flag?.inFiles === "never")
    throw new EarlyExit("usage", `${place}: "${name}" applies to one call only. Give it as a flag.`);
  if (flag === undefined) {
    const settings = [...flags].filter(([, { inFiles }]) => inFiles !== "never").map(([known]) => known);
    const near = nearest(name, settings);
    const hint = near === undefined ? "" : ` Did you mean ${near}?`;
    throw new EarlyExit("usage", `${place}: ${JSON.stringify(name)} is not a setting.${hint}`);
  }
  if (flag.inFiles === "own files" && !own) {
    throw new EarlyExit(
      "usage",
      `${place}: ${name} is read from your own settings only (a flag, ${name === "api-key-file" ? "BULKGEN_API_KEY" : variableOf(name)}, or ${userConfig(environment)}), because this folder may come from somebody else.`,
    );
  }
}

/**
 * A misspelled variable must not be ignored, because it may be a cap. Variables with another purpose have names that
 * resemble no setting. Throws EarlyExit.
 */
export function checkVariables(environment: Environment): void {
  const settings = Object.entries(runFlags as FlagSet).filter(([, { inFiles }]) => inFiles !== "never");
  const variables = [...settings.map(([attribute]) => variableOf(nameOf(attribute))), ownVariables.key];
  const known = new Set<string>([
    ...variables,
    ...Object.values(ownVariables),
    ...commandVariables,
    ...afterVariables,
  ]);
  const names = variables.map((variable) => variable.slice(variablePrefix.length));
  for (const variable of Object.keys(environment)) {
    if (!variable.startsWith(variablePrefix) || known.has(variable)) continue;
    if (afterPrefixes.some((prefix) => variable.startsWith(prefix))) continue;
    const near = nearest(variable.slice(variablePrefix.length), names);
    if (near === undefined) continue;
    throw new EarlyExit(
      "usage",
      `the variable ${variable} is not a setting. Did you mean ${variablePrefix}${near}? Otherwise unset ${variable}.`,
    );
  }
}

const variablePrefix = "BULKGEN_";

/** Every flag with its value. Throws EarlyExit for a value that a flag does not take. */
export function flagValues(
  flags: FlagSet,
  line: LineWords,
  files: readonly ConfigFile[],
  environment: Environment,
): Record<string, unknown> {
  const ofFiles: string[] = [];
  const configured: Configured = {};
  const values: Record<string, unknown> = { configured, ofFiles };
  const all = wordsOfAll(flags, line, files, environment);
  for (const [attribute, flag] of Object.entries(flags)) {
    const found = all.get(attribute) ?? null;
    if (found !== null && ofService.includes(attribute) && found.source === "file") {
      configured[attribute as keyof Configured] = { value: found.words.join(""), from: found.file };
    } else if (found === null || (ofService.includes(attribute) && found.source === "environment")) {
      if (flag.default !== undefined) values[attribute] = flag.default;
    } else {
      const value = parsed(flag, found.words, found.from);
      if (found.source === "file") ofFiles.push(attribute);
      if (value !== undefined) values[attribute] = value;
    }
  }
  return values;
}

/** The values of the command line alone, to refuse wrong ones before any file is read. Throws EarlyExit. */
export function checkLine(flags: FlagSet, line: LineWords): void {
  for (const [attribute, words] of Object.entries(line)) {
    const flag = flags[attribute];
    if (flag) parsed(flag, words, `--${nameOf(attribute)}`);
  }
}

/**
 * The values in force that a folder brings along and that do something outward. `baseUrl` is judged together with the key
 * that the address would get.
 */
export function folderValues(
  flags: FlagSet,
  line: LineWords,
  files: readonly ConfigFile[],
  environment: Environment,
): FolderValue[] {
  return [...wordsOfAll(flags, line, files, environment)].flatMap(([attribute, found]) => {
    const isOwn = files.some(({ path, own }) => own && path === found.file);
    if (found.source !== "file" || isOwn || attribute === "baseUrl") return [];
    const setting = nameOf(attribute);
    const from = found.from.replace(`: ${setting}`, "");
    return found.words
      .filter((word) => needsAgreement(attribute, word, dirname(found.file)))
      .map((value) => ({ setting, value, from }));
  });
}

/** Whether a folder may set this only after the user has agreed to the value. */
function needsAgreement(attribute: string, word: string, folder: string): boolean {
  const policy = (runFlags as FlagSet)[attribute]?.fromFolder;
  if (policy === "asks outside") return leavesReally(folder, resolve(folder, word));
  return policy !== "free";
}

/** Values that need agreement among flags that were written down, such as those of a saved plan in that folder. */
export function writtenValues(given: readonly Flag[], folder: string, from: string): FolderValue[] {
  return given.flatMap(([name, value]) => {
    const attribute = runAttribute(name);
    if (attribute === undefined || value === undefined || !needsAgreement(attribute, value, folder))
      return [];
    return [{ setting: nameOf(attribute), value, from }];
  });
}

interface Words {
  words: readonly string[];
  source: "line" | "environment" | "file";
  /** 0 for the line; more for what comes after it. */
  rank: number;
  /** In front of a message about them: `--name`, `VARIABLE: name` or `file:line:column: name`. */
  from: string;
  file: string;
}

/**
 * What is said about each flag. Where two cannot be used together, the one that is said first in the order of the sources
 * wins, as `--publish` does over a variable for `--publish-command`. Throws EarlyExit if one source says both.
 */
function wordsOfAll(
  flags: FlagSet,
  line: LineWords,
  files: readonly ConfigFile[],
  environment: Environment,
): Map<string, Words> {
  const all = new Map(
    Object.entries(flags).flatMap(([attribute, flag]) => {
      const found = wordsOf(attribute, flag, line, files, environment);
      return found === null ? [] : [[attribute, found] as const];
    }),
  );
  for (const [attribute, { conflicts = [] }] of Object.entries(flags))
    for (const other of conflicts) {
      const [one, two] = [all.get(attribute), all.get(other)];
      if (one === undefined || two === undefined) continue;
      if (one.rank === two.rank)
        throw new EarlyExit("usage", `${one.from} cannot be used with ${nameOf(other)}.`);
      all.delete(one.rank < two.rank ? other : attribute);
    }
  return all;
}

function wordsOf(
  attribute: string,
  flag: FlagDefinition,
  line: LineWords,
  files: readonly ConfigFile[],
  environment: Environment,
): Words | null {
  const name = nameOf(attribute);
  const given = line[attribute];
  if (given) return { words: given, source: "line", rank: 0, from: `--${name}`, file: "" };
  const setting = (runFlags as FlagSet)[attribute];
  if (setting === undefined || setting.inFiles === "never" || flag.inFiles === "never") return null;
  const variable = environment[variableOf(name)];
  if (variable !== undefined)
    return {
      words: [flag.isPath ? fromHome(variable, environment) : variable],
      source: "environment",
      rank: 1,
      from: `${variableOf(name)}: ${name}`,
      file: "",
    };
  const index = files.findIndex(({ settings }) => settings.has(name));
  const file = files[index];
  const inFile = file?.settings.get(name);
  if (!file || !inFile) return null;
  const words = flag.isPath
    ? inFile.words.map((word) => word && resolve(dirname(file.path), fromHome(word, environment)))
    : inFile.words;
  return { words, source: "file", rank: 2 + index, from: `${inFile.place}: ${name}`, file: file.path };
}

function parsed(flag: FlagDefinition, words: readonly string[], from: string): unknown {
  if (flag.value === null) return switchOf(words, from) || (flag.negatable ? false : undefined);
  try {
    // Flags that may be repeated collect their values; of the others the last one counts.
    return words.reduce<unknown>((before, word) => flag.parse(word, before), undefined);
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    throw new EarlyExit("usage", `${from}: ${error.message}`);
  }
}

function switchOf(words: readonly string[], from: string): boolean {
  const word = words.at(-1) ?? "";
  if (/^(true|yes|on|1)$/i.test(word)) return true;
  if (/^(false|no|off|0|)$/i.test(word)) return false;
  throw new EarlyExit("usage", `${from}: expected true or false, got ${JSON.stringify(word)}`);
}

/** The flags of a run that is given these flags. */
export function runFlagsOf(
  given: readonly Flag[],
  files: readonly ConfigFile[],
  environment: Environment,
): RunFlags {
  return flagValues(runFlags, lineOf(given), files, environment) as unknown as RunFlags;
}

/** The attribute of a flag of `run` as it is written, such as `--max-credits` or `--no-work`; undefined for others. */
export function runAttribute(name: string): string | undefined {
  const [found] =
    Object.entries(runFlags as FlagSet).find(
      ([attribute, { negatable }]) =>
        name === `--${nameOf(attribute)}` || (negatable && name === `--no-${nameOf(attribute)}`),
    ) ?? [];
  return found;
}

/** Flags as they were written, by attribute. */
export function lineOf(given: readonly Flag[]): LineWords {
  const line: Record<string, string[]> = {};
  for (const [name, value] of given) {
    const attribute = runAttribute(name);
    if (attribute === undefined) throw new EarlyExit("usage", `unknown flag ${name}`);
    const word = value ?? String(name === `--${nameOf(attribute)}`);
    line[attribute] = [...(line[attribute] ?? []), word];
  }
  return line;
}

/** The flag of `run` as a line would give it, with what the line, else the environment, else a file says. */
export function flagAsGiven(
  attribute: string,
  given: readonly Flag[],
  files: readonly ConfigFile[],
  environment: Environment,
): Flag[] {
  const flag = (runFlags as FlagSet)[attribute];
  const found = flag && wordsOf(attribute, flag, lineOf(given), files, environment);
  if (!found) return [];
  const name = nameOf(attribute);
  if (flag.value !== null) return found.words.map((word): Flag => [`--${name}`, word]);
  if (switchOf(found.words, found.from)) return [[`--${name}`]];
  return flag.negatable ? [[`--no-${name}`]] : [];
}

/** A setting with its value, for people. */
export interface EffectiveSetting {
  name: string;
  value: string;
  /** A flag, a variable, a place in a file, or `default`. */
  from: string;
}

/** Every setting of a run with a value. Parts of addresses that may be secret are not shown. Throws EarlyExit. */
export function effectiveSettings(
  given: readonly Flag[],
  files: readonly ConfigFile[],
  environment: Environment,
): EffectiveSetting[] {
  const line = lineOf(given);
  checkLine(runFlags, line);
  const all = wordsOfAll(runFlags, line, files, environment);
  return Object.entries(runFlags as FlagSet).flatMap(([attribute, flag]) => {
    const name = nameOf(attribute);
    if (ofService.includes(attribute) || flag.inFiles === "never") return [];
    const found = all.get(attribute);
    if (found !== undefined) {
      parsed(flag, found.words, found.from);
      const setting = files.find(({ settings }) => settings.has(name))?.settings.get(name);
      const from =
        found.source === "line"
          ? `--${name}`
          : found.source === "environment"
            ? variableOf(name)
            : (setting?.place ?? found.file);
      const words = found.source === "file" ? (setting?.words ?? []) : found.words;
      return [{ name, value: shownValue(name, words), from }];
    }
    if (flag.default === undefined) return [];
    return [{ name, value: flag.defaultText ?? String(flag.default), from: "default" }];
  });
}
