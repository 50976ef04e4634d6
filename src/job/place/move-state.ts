import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import { copyDatabase } from "../../store/copy.js";
import { takeLock } from "../../store/lock.js";
import { noteHolder } from "../workspace/holder.js";
import { readIdentity, type WorkspaceIdentity, writeIdentity } from "../workspace/identity-file.js";

/** What a state is made of; the sandbox's part lies in a folder of its own. */
const databases = ["state.db", "accounts.db", "service.db"];
const texts = ["receipts.jsonl"];

/**
 * Moves what state there is to the folder that the identity names, and leaves the identity behind. Until that is
 * written nothing has changed; after it, the old files get a name that nobody takes for a state. Throws EarlyExit when
 * a process is at work here.
 */
export function moveState(
  markerFolder: string,
  identity: WorkspaceIdentity & { state: string },
  clock: Clock,
): void {
  const release = lockState(markerFolder, identity.state, clock);
  try {
    if (readIdentity(markerFolder)?.state === identity.state) return;
    const copied = copyState(markerFolder, identity.state);
    writeIdentity(markerFolder, identity);
    for (const path of copied) renameSync(path, `${path}.moved`);
  } finally {
    release();
  }
}

/** Copies a state from one folder to another; returns the files that it is made of. */
export function copyState(from: string, to: string): string[] {
  return ["", "sandbox"].flatMap((name) => copyPart(join(from, name), join(to, name)));
}

/** Holds both places, whichever of them is where processes lock. Returns what lets them go. Throws EarlyExit. */
export function lockState(from: string, to: string, clock: Clock): () => void {
  const parts = [from, join(from, "sandbox")].filter((folder) => existsSync(join(folder, "state.db")));
  const locks: (() => void)[] = [];
  const release = () => {
    for (const each of locks.splice(0)) each();
  };
  try {
    for (const folder of [to, ...parts]) locks.push(locked(folder, clock));
    return release;
  } catch (error) {
    release();
    throw error;
  }
}

/** Copies the files of one folder; returns those that were copied. */
function copyPart(from: string, to: string): string[] {
  const present = (names: readonly string[]) =>
    names.map((name) => join(from, name)).filter((path) => existsSync(path));
  const [data, lines] = [present(databases), present(texts)];
  if (data.length + lines.length > 0) mkdirSync(to, { recursive: true });
  for (const path of data) copyDatabase(path, join(to, basename(path)));
  for (const path of lines) {
    const target = join(to, basename(path));
    writeFileSync(`${target}.part`, readFileSync(path), { flush: true });
    renameSync(`${target}.part`, target);
  }
  return [...data, ...lines];
}

function locked(folder: string, clock: Clock): () => void {
  const file = join(folder, "run.lock");
  const lock = takeLock(file);
  if (!lock) {
    throw new EarlyExit("locked", `another run holds the workspace ${dirname(folder)}. Nothing was sent.`);
  }
  const note = noteHolder(file, clock);
  return () => {
    note.remove();
    lock.release();
  };
}
