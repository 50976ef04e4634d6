import { createHash } from "node:crypto";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { EarlyExit } from "../core/exit.js";
import { openSqlite, type Sqlite } from "../sqlite.js";
import { terminalText } from "../text/terminal.js";
import { makeFolders, writeWholeNow } from "../whole-file.js";

/**
 * What this user has agreed to. A folder may come from somebody else, and with it settings that send something outward or
 * name a secret. Such a value has no effect until the user has agreed to it once on this machine. The agreements are in
 * `trust.json` in the user's state folder, where no folder can bring them along; each belongs to a folder (its real path)
 * and to the exact value, of which only the hash is kept, because it may be a secret address.
 *
 * This file also records at which addresses each API key was used, by the key's fingerprint.
 */

/** A value that came with a folder. */
export interface FolderValue {
  /** The setting's name, such as `notify`, `base-url` or `schedule nightly`. */
  setting: string;
  /** Exactly as it was written. */
  value: string;
  /** Where it was written, such as `file:line:column`. */
  from: string;
}

interface Agreement {
  setting: string;
  sha256: string;
  /** ISO 8601. */
  at: string;
}

interface TrustDocument {
  /** By the folder's real path. */
  folders: Record<string, Agreement[]>;
  /** Addresses by the fingerprint of the key. */
  keys: Record<string, string[]>;
}

const trustName = "trust.json";

function trustFile(sharedFolder: string): string {
  return join(sharedFolder, trustName);
}

/** The values of a folder that this user has not agreed to. Throws EarlyExit if the record cannot be read. */
export function notAgreed(
  sharedFolder: string,
  folder: string,
  values: readonly FolderValue[],
): FolderValue[] {
  if (values.length === 0) return [];
  const agreed = readTrust(sharedFolder).folders[realFolder(folder)] ?? [];
  const known = new Set(agreed.map(({ setting, sha256 }) => `${setting} ${sha256}`));
  return values.filter(({ setting, value }) => !known.has(`${setting} ${hashOf(setting, value)}`));
}

/**
 * Records that this user has agreed to the values. A schedule has one value: what was agreed to for its name before is not
 * agreed to any more. Throws the system's error if the record cannot be written.
 */
export function agree(
  sharedFolder: string,
  folder: string,
  values: readonly Pick<FolderValue, "setting" | "value">[],
  now: number,
): void {
  const hashes = values.map(({ setting, value }) => ({ setting, sha256: hashOf(setting, value) }));
  const wanted = new Map(hashes.map(({ setting, sha256 }) => [setting, sha256]));
  const real = realFolder(folder);
  const isReplaced = ({ setting, sha256 }: Agreement) =>
    setting.startsWith(scheduleSetting("")) && wanted.has(setting) && wanted.get(setting) !== sha256;
  const missingIn = (agreed: readonly Agreement[]) =>
    hashes.filter(
      (each) => !agreed.some((one) => one.setting === each.setting && one.sha256 === each.sha256),
    );
  const before = readTrust(sharedFolder).folders[real] ?? [];
  if (missingIn(before).length === 0 && !before.some(isReplaced)) return;
  const at = new Date(now).toISOString();
  change(sharedFolder, (trust) => {
    const agreed = (trust.folders[real] ?? []).filter((each) => !isReplaced(each));
    trust.folders[real] = [...agreed, ...missingIn(agreed).map((each) => ({ ...each, at }))];
  });
}

/** The name under which a schedule is agreed to. */
export function scheduleSetting(name: string): string {
  return `schedule ${name}`;
}

/** Forgets what was agreed to under one name. */
export function disagree(sharedFolder: string, folder: string, setting: string): void {
  const real = realFolder(folder);
  if (!readTrust(sharedFolder).folders[real]?.some((each) => each.setting === setting)) return;
  change(sharedFolder, (trust) => {
    trust.folders[real] = (trust.folders[real] ?? []).filter((each) => each.setting !== setting);
  });
}

/**
 * Forgets what was agreed to for a folder, and returns how many values that were. An address that was agreed to for this folder
 * alone counts as new to every key again; `address` is the one that the folder sets now.
 */
export function forget(sharedFolder: string, folder: string, address: string | null): number {
  const real = realFolder(folder);
  const before = readTrust(sharedFolder).folders[real] ?? [];
  if (before.length === 0) return 0;
  change(sharedFolder, (trust) => {
    delete trust.folders[real];
    const kept = new Set(Object.values(trust.folders).flatMap((all) => all.map(({ sha256 }) => sha256)));
    const gone = new Set(before.flatMap(({ sha256 }) => (kept.has(sha256) ? [] : [sha256])));
    const isGone = (value: string) => gone.has(hashOf("base-url", value));
    const ofFolder = address !== null && isGone(address) ? originOf(address) : null;
    for (const [key, origins] of Object.entries(trust.keys))
      trust.keys[key] = origins.filter((origin) => origin !== ofFolder && !isGone(origin));
  });
  return before.length;
}

export interface AgreedFolder {
  folder: string;
  agreements: readonly Pick<Agreement, "setting" | "at">[];
}

export function agreedFolders(sharedFolder: string): AgreedFolder[] {
  return Object.entries(readTrust(sharedFolder).folders).map(([folder, agreements]) => ({
    folder,
    agreements,
  }));
}

/** The other addresses at which a key was used, if it was never used at this one; empty for a key that is new here. */
export function otherAddresses(sharedFolder: string, keyPrint: string, address: string): readonly string[] {
  const known = readTrust(sharedFolder).keys[keyPrint] ?? [];
  return known.includes(originOf(address)) ? [] : known;
}

/** Whether a key was used at an address. */
export function isUsedAt(sharedFolder: string, keyPrint: string, address: string): boolean {
  return readTrust(sharedFolder).keys[keyPrint]?.includes(originOf(address)) ?? false;
}

/** Records that a key is used at an address. */
export function useKey(sharedFolder: string, keyPrint: string, address: string): void {
  if (isUsedAt(sharedFolder, keyPrint, address)) return;
  change(sharedFolder, (trust) => {
    trust.keys[keyPrint] = [...(trust.keys[keyPrint] ?? []), originOf(address)];
  });
}

/** The host decides who reads the key; a mistyped path on it is no other service. */
function originOf(address: string): string {
  return new URL(address).origin;
}

/** A value in full, on one line, without characters that a terminal would obey. */
export function shownFolderValue({ setting, value, from }: FolderValue): string {
  return `${terminalText(setting)}: ${terminalText(withLineEnds(value))}  (${terminalText(from)})`;
}

/** A text of several lines on one: where a comment of the shell ends must be seen. */
export function withLineEnds(text: string): string {
  return text.trimEnd().replace(/\r\n|\r|\n/g, " ↵ ");
}

/** The refusal of values that nobody could be asked about. */
export function unagreed(folder: string, values: readonly FolderValue[], command: string): EarlyExit {
  const what = values.length === 1 ? "a value" : "values";
  const lines = values.map((value) => `  ${shownFolderValue(value)}`).join("\n");
  return new EarlyExit(
    "usage",
    `${terminalText(folder)} may come from somebody else, and sets ${what} that you have not agreed to on this machine:\n${lines}\nThis command does not begin before you agree. Nothing was sent. Run \`${command}\` to look and agree.`,
  );
}

function hashOf(setting: string, value: string): string {
  return createHash("sha256").update(`${setting}\0${value}`).digest("hex");
}

/** A folder that does not exist yet is named as it will be. */
function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch {
    return resolve(folder);
  }
}

function readTrust(sharedFolder: string): TrustDocument {
  const path = trustFile(sharedFolder);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return { folders: record(), keys: record() };
    throw new EarlyExit(
      "usage",
      `${path} cannot be read (${code ?? message}). It records what you have agreed to on this machine. Nothing was sent. Make it readable for yourself.`,
    );
  }
  const read = documentIn(text);
  if (read !== null) return read;
  throw new EarlyExit(
    "usage",
    `${path} is damaged. It records what you have agreed to on this machine. Nothing was sent. Restore it, or remove it: you will be asked again.`,
  );
}

/** Null if the text is not a record of agreements. */
function documentIn(text: string): TrustDocument | null {
  try {
    const { folders, keys } = JSON.parse(text) as TrustDocument;
    const isWhole =
      Object.values(folders).every((all) =>
        all.every(({ setting, sha256 }) => setting !== "" && sha256 !== ""),
      ) && Object.values(keys).every((all) => all.every((address) => typeof address === "string"));
    return isWhole
      ? { folders: Object.assign(record(), folders), keys: Object.assign(record(), keys) }
      : null;
  } catch {
    return null;
  }
}

/** Folders and fingerprints are names from outside: `__proto__` is one of them. */
function record<Value>(): Record<string, Value> {
  return Object.create(null) as Record<string, Value>;
}

/** Commands of this user in other folders change the record, too: one after the other. Throws the system's error. */
function change(sharedFolder: string, edit: (trust: TrustDocument) => void): void {
  const path = trustFile(sharedFolder);
  makeFolders(dirname(path), 0o700);
  const lock = lockOf(join(sharedFolder, "trust.lock"));
  try {
    const trust = readTrust(sharedFolder);
    edit(trust);
    writeWholeNow(path, `${JSON.stringify(trust, null, 2)}\n`, 0o600);
  } finally {
    lock?.close();
  }
}

/** How long (ms) another process may have the lock: it writes a small file. */
const lockMs = 10_000;

/** A lock that is held until it is closed, or its process ends. Null where no file can be written: nothing will be changed there. */
function lockOf(path: string): Sqlite | null {
  let db: Sqlite | null = null;
  try {
    db = openSqlite(path, { timeout: lockMs });
    // Nothing is written to it.
    db.pragma("journal_mode = MEMORY");
    db.exec("BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db?.close();
    const { code = "" } = error as { code?: string };
    if (code.startsWith("SQLITE_BUSY"))
      throw new EarlyExit(
        "locked",
        `another command has changed what you have agreed to for ${lockMs / 1_000} seconds, and has ${path}. Nothing was sent. Give the command again when it has ended.`,
      );
    if (
      /^SQLITE_(NOTADB|CORRUPT)/.test(code) ||
      statSync(path, { throwIfNoEntry: false })?.isFile() === false
    )
      throw new EarlyExit(
        "usage",
        `${path} is damaged. It only keeps two commands from writing at the same time, and holds nothing. Nothing was sent. Remove it, and give the command again.`,
      );
    if (/^SQLITE_(CANTOPEN|READONLY|IOERR|FULL)/.test(code)) return null;
    throw error;
  }
}
