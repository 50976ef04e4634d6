import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, statfsSync } from "node:fs";
import type { Ground } from "../../job/place/ground.js";

/** What this system tells of its file systems: Linux in a file, macOS by a command. */
export function groundHere(): Ground {
  return { mounts: mountTable(), fileSystemNumber };
}

function mountTable(): string | null {
  const path = "/proc/self/mounts";
  if (existsSync(path)) return readFileSync(path, "utf8");
  if (process.platform !== "darwin") return null;
  const { status, stdout } = spawnSync("/sbin/mount", { encoding: "utf8" });
  return status === 0 ? stdout : null;
}

function fileSystemNumber(folder: string): number | null {
  try {
    return statfsSync(folder).type;
  } catch {
    return null;
  }
}
