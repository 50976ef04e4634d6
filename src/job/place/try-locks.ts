import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { packageFile } from "../../package-file.js";
import { takeLock } from "../../store/lock.js";

/** What is wrong with the locks of a folder; null where one that is held is refused, and one that is free is given. */
export type LockTrouble = string | null;

/** Whether a second connection of this process is refused the lock of the first. Takes a few milliseconds. */
export function tryLock(folder: string): LockTrouble {
  return trial(folder, (path) => {
    const second = takeLock(path);
    second?.release();
    return second ? "it was given twice" : null;
  });
}

/** Whether another process is refused it too: a file system without real locks refuses nothing to anybody else. */
export function tryLockElsewhere(folder: string): LockTrouble {
  return trial(folder, (path, release) => {
    const during = elsewhere(path);
    release();
    const after = elsewhere(path);
    if (during === refused && after === given) return null;
    return during === given ? "it was given too" : `the trial failed (${during}, ${after})`;
  });
}

const given = 40;
const refused = 41;

/** In a folder of its own, so that trials of several processes do not meet. Leaves nothing behind. */
function trial(folder: string, use: (path: string, release: () => void) => LockTrouble): LockTrouble {
  const scratch = mkdtempSync(join(folder, ".bulkgen-trial-"));
  const path = join(scratch, "trial.lock");
  try {
    const first = takeLock(path);
    if (!first) return "a free lock was refused";
    try {
      return use(path, () => first.release());
    } finally {
      first.release();
    }
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function elsewhere(path: string): number | null {
  const module = pathToFileURL(packageFile("dist/store/lock.js")).href;
  const script = `const { takeLock } = await import(process.argv[1]); process.exitCode = takeLock(process.argv[2]) ? ${given} : ${refused};`;
  const flags = ["--input-type=module", "-e", script, module, path];
  return spawnSync(process.execPath, flags, { timeout: 20_000 }).status;
}
