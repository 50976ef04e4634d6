import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import { shellWord } from "../../text/shell.js";
import type { Configured, ServiceSetting } from "../flags/shared.js";
import { settingsText, workspaceConfig } from "./config-file.js";
import { fileTrouble } from "./file-trouble.js";

/**
 * The service's address and the key come from a flag, the environment, the workspace's `.env`, or a
 * `bulkgen.config.yaml`, in this order. Only these two names are read from `.env`: a variable such as
 * NODE_TLS_REJECT_UNAUTHORIZED would change this process, and a key that never enters the environment is not inherited
 * by other programs.
 */
export interface ServiceSettings {
  baseUrl: ServiceSetting | null;
  key: ServiceSetting | null;
  /** What is wrong with the file's permissions, in one line. */
  warning: string | null;
}

const baseUrlName = "BULKGEN_BASE_URL";
const keyName = "BULKGEN_API_KEY";

/** Reads the settings; the file only if something is still missing. Throws EarlyExit when a file cannot be read. */
export function serviceSettings(
  flags: { baseUrl?: string; apiKeyFile?: string; configured?: Configured },
  root: string,
  { env, cwd }: Pick<Machine, "env" | "cwd">,
): ServiceSettings {
  const baseUrl = given(flags.baseUrl, "--base-url") ?? given(env[baseUrlName], baseUrlName);
  const key =
    flags.apiKeyFile === undefined ? given(env[keyName], keyName) : keyFromFile(flags.apiKeyFile, cwd);
  if (baseUrl && key) return { baseUrl, key, warning: null };
  const path = envFile(root);
  const text = readEnvFile(path);
  const file = text === null ? null : parseEnv(text);
  const found = {
    baseUrl: baseUrl ?? given(file?.[baseUrlName], path) ?? flags.configured?.baseUrl ?? null,
    key: key ?? given(file?.[keyName], path) ?? configuredKey(flags.configured, cwd),
  };
  if (text !== null && !found.baseUrl) refuseBareName(text, baseUrlName, path);
  if (text !== null && !found.key) refuseBareName(text, keyName, path);
  return { ...found, warning: file === null ? null : openToOthers(path) };
}

/** parseEnv skips a line without `=`, such as `BULKGEN_API_KEY: svc_…`. Throws EarlyExit, without the value. */
function refuseBareName(text: string, name: string, path: string): void {
  const at = text
    .split(/\r\n|\n|\r/)
    .findIndex((line) => new RegExp(`^\\s*(export\\s+)?${name}\\b[^=]*$`).test(line));
  if (at < 0) return;
  throw new EarlyExit("usage", `${path}, line ${at + 1}: expected ${name}=VALUE, got no = after ${name}`);
}

function configuredKey({ apiKeyFile }: Configured = {}, cwd: string): ServiceSetting | null {
  return apiKeyFile ? keyFromFile(apiKeyFile.value, cwd) : null;
}

export function envFile(root: string): string {
  return join(root, ".env");
}

/** One line when users other than its owner can read the file; null otherwise, or when there is no file. */
export function openToOthers(path: string): string | null {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o077) === 0) return null;
  return `other users can read ${path} (mode ${(mode & 0o777).toString(8).padStart(4, "0")}). Run \`chmod 600 ${shellWord(path)}\`.`;
}

/**
 * One line when a key of the user goes to an address that the folder sets; null otherwise. The folder may come from
 * somebody else, so the user must see the address before anything is sent.
 */
export function foreignAddress(
  { baseUrl, key }: Pick<ServiceSettings, "baseUrl" | "key">,
  address: string,
  root: string,
): string | null {
  const from = baseUrl?.from;
  const ofFolder = from === envFile(root) || from === workspaceConfig(root);
  if (!ofFolder || key === null || key.from === envFile(root)) return null;
  return `the key from ${key.from} is sent to ${address}, the address set in ${from}. To choose the address yourself, set ${baseUrlName}.`;
}

/** A variable that is set to an empty text counts as set: it hides the one in the file. */
function given(value: string | undefined, from: string): ServiceSetting | null {
  return value === undefined ? null : { value, from };
}

function readEnvFile(path: string): string | null {
  const text = settingsText(path, `. Make it readable, or set ${baseUrlName} and ${keyName} yourself.`);
  // Some editors start a file with a byte order mark, which would become part of the first name.
  return text?.replace(/^\ufeff/, "") ?? null;
}

/** Throws EarlyExit. */
export function keyFromFile(file: string, cwd: string): ServiceSetting {
  const path = resolve(cwd, file);
  if (isKeyForm(file) && !existsSync(path))
    throw new EarlyExit(
      "usage",
      `--api-key-file: expected a file, got what looks like an API key. Set ${keyName} to the key, or save it in a file.`,
    );
  try {
    return { value: readFileSync(path, "utf8").trim(), from: file };
  } catch (error) {
    throw new EarlyExit("usage", `--api-key-file: ${fileTrouble(error, path)}`);
  }
}
