import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { EarlyExit } from "../../core/exit.js";
import { workspaceConfig } from "./config-file.js";
import type { Configured } from "./settings.js";

/**
 * Where the service's address and the key come from: a flag, the environment, the `.env` of the workspace, or a
 * `bulkgen.config.yaml`, in this order. The file is read with Node's own parser and only these two names are taken from it: a variable such as
 * NODE_TLS_REJECT_UNAUTHORIZED would change this process for the worse, and a key that never enters the environment is
 * inherited by no other program.
 */
export interface Setting {
  value: string;
  /** The flag, the variable or the file that it comes from, as people know it. */
  from: string;
}

export interface ServiceSettings {
  baseUrl: Setting | null;
  key: Setting | null;
  /** What is wrong with the file's permissions, in one line. */
  warning: string | null;
}

const baseUrlName = "BULKGEN_BASE_URL";
const keyName = "BULKGEN_API_KEY";

let inherited: Readonly<Record<string, string | undefined>> | null = null;

/**
 * The environment as this process was given it. The key is taken out of the one that the process has: a report that
 * Node writes when it crashes lists it whole, and every program that is started from here on would inherit it.
 */
export function inheritedEnvironment(): Readonly<Record<string, string | undefined>> {
  inherited ??= { ...process.env };
  delete process.env[keyName];
  return inherited;
}

/** Reads the settings; the file only when something is still missing. Throws EarlyExit when a file cannot be read. */
export function serviceSettings(
  flags: { baseUrl?: string; apiKeyFile?: string; configured?: Configured },
  root: string,
  environment: Readonly<Record<string, string | undefined>>,
): ServiceSettings {
  const baseUrl = given(flags.baseUrl, "--base-url") ?? given(environment[baseUrlName], baseUrlName);
  const key =
    flags.apiKeyFile === undefined ? given(environment[keyName], keyName) : keyFromFile(flags.apiKeyFile);
  if (baseUrl && key) return { baseUrl, key, warning: null };
  const path = envFile(root);
  const file = readEnvFile(path);
  return {
    baseUrl: baseUrl ?? given(file?.[baseUrlName], path) ?? flags.configured?.baseUrl ?? null,
    key: key ?? given(file?.[keyName], path) ?? configuredKey(flags.configured),
    warning: file === null ? null : openToOthers(path),
  };
}

function configuredKey({ apiKeyFile }: Configured = {}): Setting | null {
  return apiKeyFile ? keyFromFile(apiKeyFile.value) : null;
}

export function envFile(root: string): string {
  return join(root, ".env");
}

/** One line when others than its owner may read the file; null when they may not, or when there is no file. */
export function openToOthers(path: string): string | null {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) === 0) return null;
  return `${path} may be read by others (mode ${(mode & 0o777).toString(8).padStart(4, "0")}); \`chmod 600\` makes it yours alone`;
}

/**
 * One line when a key of yours goes to an address that the folder names; null otherwise. Whoever made the folder could
 * have named any address, so the person must see which, before anything is sent.
 */
export function foreignAddress(
  { baseUrl, key }: Pick<ServiceSettings, "baseUrl" | "key">,
  address: string,
  root: string,
): string | null {
  const from = baseUrl?.from;
  const ofFolder = from === envFile(root) || from === workspaceConfig(root);
  if (!ofFolder || key === null || key.from === envFile(root)) return null;
  return `the key from ${key.from} goes to ${address}, as ${from} says; set ${baseUrlName} to choose the address yourself`;
}

/** A variable that is set to nothing is set, as everywhere: it hides the one in the file. */
function given(value: string | undefined, from: string): Setting | null {
  return value === undefined ? null : { value, from };
}

function readEnvFile(path: string): Readonly<Record<string, string | undefined>> | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw new EarlyExit(
      "usage",
      `the settings file ${path} cannot be read (${code ?? message}). Make it readable, or set ${baseUrlName} and ${keyName} yourself.`,
    );
  }
  // Some editors begin a file with a byte order mark, which would become a letter of the first name.
  return parseEnv(text.replace(/^\ufeff/, ""));
}

/** Throws EarlyExit. */
export function keyFromFile(file: string): Setting {
  try {
    return { value: readFileSync(file, "utf8").trim(), from: file };
  } catch (error) {
    throw new EarlyExit("usage", `--api-key-file: ${(error as Error).message}`);
  }
}
