import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { fingerprint, isKeyForm, sandboxKey } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import type { Machine } from "../../machine.js";
import type { Configured, ServiceSetting } from "../../options/shared.js";
import { shellWord } from "../../text/shell.js";
import { leaves } from "../../text/within.js";
import { type FolderValue, isUsedAt, notAgreed, otherAddresses } from "../../trust/trust.js";
import { checkedAddress } from "../../workspace/connection.js";
import type { Workspace } from "../../workspace/workspace.js";
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
 * The address that a folder sets, if a key that did not come with the folder would go there and was never used there; null
 * otherwise. The folder may come from somebody else, so the user has to agree before anything is sent.
 */
export function foreignAddress(
  { baseUrl, key }: Pick<ServiceSettings, "baseUrl" | "key">,
  { root, sharedFolder }: Pick<Workspace, "root" | "sharedFolder">,
): FolderValue | null {
  const from = baseUrl?.from;
  const own = isLinkedAway(root) ? null : envFile(root);
  const ofFolder = from === own || from === workspaceConfig(root);
  if (!baseUrl || !ofFolder || key === null || key.from === own) return null;
  const value = checkedAddress(baseUrl.value).baseUrl;
  const secret = key.value.trim();
  if (secret === sandboxKey || isUsedAt(sharedFolder, fingerprint(secret), value)) return null;
  return { setting: "base-url", value, from: baseUrl.from };
}

/** A folder's `.env` may be a link to the user's own: then its key did not come with the folder. */
export function isLinkedAway(root: string): boolean {
  const file = envFile(root);
  return existsSync(file) && leaves(realpathSync(root), realpathSync(file));
}

/** What this user has to agree to before the key is sent to the address; empty if nothing. Throws EarlyExit. */
export function addressToAgree(
  settings: Pick<ServiceSettings, "baseUrl" | "key">,
  workspace: Pick<Workspace, "root" | "sharedFolder">,
): FolderValue[] {
  const { root, sharedFolder } = workspace;
  const { baseUrl, key } = settings;
  if (!baseUrl?.value || !key?.value) return [];
  const foreign = foreignAddress(settings, workspace);
  if (foreign !== null) return notAgreed(sharedFolder, root, [foreign]);
  const value = checkedAddress(baseUrl.value).baseUrl;
  const secret = key.value.trim();
  if (secret === sandboxKey) return [];
  const others = otherAddresses(sharedFolder, fingerprint(secret), value);
  if (others.length === 0) return [];
  const from = `${baseUrl.from}; the key from ${key.from} has been used at ${others.join(" and ")} until now`;
  return [{ setting: "base-url", value, from }];
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
