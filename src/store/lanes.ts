import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Lanes } from "../core/lanes.js";
import { takeLock } from "./lock.js";

/** Lanes as locks in a folder that the processes of an account share; `count` is how many this one may use. */
export function openLanes(folder: string, count: number): Lanes {
  mkdirSync(folder, { recursive: true });
  return {
    take() {
      for (let number = 1; number <= count; number++) {
        const lock = takeLock(join(folder, `lane-${number}.lock`));
        if (lock) return lock;
      }
      return null;
    },
  };
}
