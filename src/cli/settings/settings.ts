import { dirname, resolve } from "node:path";
import { Command, InvalidArgumentError, type Option } from "commander";
import { EarlyExit } from "../../core/exit.js";
import type { Flag } from "../../store/schedules.js";
import { nearest } from "../../text/nearest.js";
import { withRun } from "../flags/run.js";
import type { RunFlags } from "../output/session.js";
import { type ConfigFile, type FileSetting, readConfig, userConfig, workspaceConfig } from "./config-file.js";
import type { Setting } from "./env.js";

/**
 * What holds and where it comes from: a flag, else the environment, else `bulkgen.config.yaml` in the workspace, else
 * the one in the user's own config folder, else the default. Every flag of `run` may stand in a file, but for those
 * that belong to one call.
 */
const ofOneCall = [
  "yes",
  "fresh",
  "edition",
  "json",
  "events",
  "workspace",
  "help",
  "filter",
  "only-failed",
  "range",
  "sample",
  "first",
  "sheet",
];
/** What runs a program or names a secret's file: somebody else's folder must not say it. */
const ownOnly = ["notify-command", "api-key-file"];
/** Read where the address and the key are, together with the workspace's `.env`. */
const ofService = ["base-url", "api-key-file"];
const ofPaths = ["out", "api-key-file"];

type Environment = Readonly<Record<string, string | undefined>>;

/** What a command knows of the files: address and key wait until the environment and `.env` have been asked. */
export interface Configured {
  baseUrl?: Setting;
  apiKeyFile?: Setting;
}

/** Names of the settings that may stand in a file. */
function settingNames(): string[] {
  return optionsOf(withRun(new Command())).map((option) => option.name());
}

function optionsOf(command: Command): Option[] {
  return command.options.filter((option) => !ofOneCall.includes(option.name()));
}

export function variableOf(name: string): string {
  return `BULKGEN_${name.toUpperCase().replaceAll("-", "_")}`;
}

/** The files that hold here, the nearer one first. Throws EarlyExit for what cannot be read or is not known. */
export async function configFiles(root: string, environment: Environment): Promise<ConfigFile[]> {
  const found = [
    await readConfig(workspaceConfig(root), false),
    await readConfig(userConfig(environment), true),
  ];
  const files = found.filter((file) => file !== null);
  const names = files.length === 0 ? [] : settingNames();
  for (const file of files)
    for (const [name, { place }] of file.settings) checkName(name, place, file, names);
  return files;
}

function checkName(name: string, place: string, { own }: ConfigFile, names: readonly string[]): void {
  if (name === "api-key") {
    throw new EarlyExit(
      "usage",
      `${place}: a key does not belong into this file: set BULKGEN_API_KEY, or api-key-file in your own ${userConfig({})}`,
    );
  }
  if (!names.includes(name)) {
    const near = nearest(name, names);
    const hint = near === undefined ? "" : `; did you mean ${near}?`;
    const why = ofOneCall.includes(name) ? "belongs to one call and is given as a flag" : "is no setting";
    throw new EarlyExit("usage", `${place}: ${JSON.stringify(name)} ${why}${hint}`);
  }
  if (ownOnly.includes(name) && !own) {
    throw new EarlyExit(
      "usage",
      `${place}: ${name} is taken from your own settings only (a flag, ${variableOf(name)}, or ${userConfig({})}): a folder may be somebody else's`,
    );
  }
}

/** Fills in what no flag of the command says. Throws EarlyExit for a value that its flag would not take. */
export function applySettings(
  command: Command,
  files: readonly ConfigFile[],
  environment: Environment,
): void {
  const configured: Configured = {};
  for (const option of optionsOf(command)) {
    const name = option.name();
    if (command.getOptionValueSource(option.attributeName()) === "cli") continue;
    const variable = ofService.includes(name) ? undefined : environment[variableOf(name)];
    if (variable !== undefined) {
      set(command, option, { words: [variable], place: variableOf(name) }, "env");
      continue;
    }
    const file = files.find(({ settings }) => settings.has(name));
    const setting = file?.settings.get(name);
    if (!file || !setting) continue;
    const words = ofPaths.includes(name)
      ? setting.words.map((word) => resolve(dirname(file.path), word))
      : setting.words;
    if (ofService.includes(name)) {
      const value = { value: words.join(""), from: file.path };
      if (name === "base-url") configured.baseUrl = value;
      else configured.apiKeyFile = value;
    } else set(command, option, { ...setting, words }, "config");
  }
  command.setOptionValueWithSource("configured", configured, "config");
}

function set(command: Command, option: Option, { words, place }: FileSetting, source: string): void {
  const attribute = option.attributeName();
  if (option.isBoolean()) {
    const value = switchOf(words, `${place}: ${option.name()}`);
    command.setOptionValueWithSource(attribute, value || undefined, source);
    return;
  }
  let value: unknown;
  for (const word of words) value = parsed(option, word, value, place);
  command.setOptionValueWithSource(attribute, value, source);
}

function parsed(option: Option, word: string, before: unknown, place: string): unknown {
  try {
    return option.parseArg ? option.parseArg(word, before) : word;
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new EarlyExit("usage", `${place}: ${option.name()}: ${error.message}`);
  }
}

function switchOf([word = ""]: readonly string[], place: string): boolean {
  if (/^(true|yes|on|1)$/i.test(word)) return true;
  if (/^(false|no|off|0|)$/i.test(word)) return false;
  throw new EarlyExit("usage", `${place}: expected true or false, got ${JSON.stringify(word)}.`);
}

/** The flags of a run that is given these words. */
export function runFlagsOf(words: Words, files: readonly ConfigFile[], environment: Environment): RunFlags {
  return filledIn(words, files, environment).opts<RunFlags>();
}

type Words = readonly Flag[];

function filledIn(words: Words, files: readonly ConfigFile[], environment: Environment): Command {
  const command = withRun(new Command().exitOverride());
  const text = words.map(([name = "", value]) => (value === undefined ? name : `${name}=${value}`));
  // The manifest is asked for and not looked at.
  command.parse([...text, "--", ""], { from: "user" });
  applySettings(command, files, environment);
  return command;
}

/** A setting as it holds, for people. */
export interface Held {
  name: string;
  value: string;
  /** `flag`, a variable, a place in a file, or `default`. */
  from: string;
}

/** Every setting of a run that is given these words, that has a value. Addresses and words that may be secret are not shown. */
export function heldSettings(words: Words, files: readonly ConfigFile[], environment: Environment): Held[] {
  const command = filledIn(words, files, environment);
  return optionsOf(command).flatMap((option) => {
    const name = option.name();
    if (ofService.includes(name)) return [];
    const given = words.filter(([flag]) => flag === option.long).map(([, value]) => value ?? "");
    const held = heldWords(option, given, files, environment);
    if (held !== null) return [{ name, value: shown(name, held.words), from: held.from }];
    const value = command.getOptionValue(option.attributeName());
    if (value === undefined || value === false) return [];
    return [{ name, value: option.defaultValueDescription ?? String(value), from: "default" }];
  });
}

function heldWords(
  option: Option,
  given: readonly string[],
  files: readonly ConfigFile[],
  environment: Environment,
): { words: readonly string[]; from: string } | null {
  const name = option.name();
  if (given.length > 0) return { words: given, from: `--${name}` };
  const variable = environment[variableOf(name)];
  if (variable !== undefined) return { words: [variable], from: variableOf(name) };
  const setting = files.find(({ settings }) => settings.has(name))?.settings.get(name);
  return setting ? { words: setting.words, from: setting.place } : null;
}

/** Addresses of notices carry their secret in the path, and mail servers a password. */
function shown(name: string, words: readonly string[]): string {
  if (name !== "notify" && name !== "smtp-url") return words.join(", ");
  return words.map((word) => (word.startsWith("$") ? word : hostOf(word))).join(", ");
}

function hostOf(word: string): string {
  if (word.startsWith("mailto:")) return word.slice("mailto:".length);
  if (word.startsWith("{")) {
    const { url, email } = JSON.parse(word) as { url?: string; email?: string };
    return email ?? hostOf(url ?? "");
  }
  return URL.canParse(word) ? new URL(word).host : word.startsWith("$") ? word : "…";
}
