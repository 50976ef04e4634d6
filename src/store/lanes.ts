import { join } from "node:path";
import type { Lanes } from "../core/quota/quota.js";
import { shareLock, takeLock } from "./lock.js";

export interface LaneOptions {
  /** The folder that the processes of an account share. */
  folder: string;
  /** How many lanes this process may use. */
  count: number;
  /** The file that all processes with the same key share. */
  gateFile: string;
}

/** Lanes as locks: one file for each lane, and one for the key, on which each taken lane holds a shared lock. */
export function openLanes({ folder, count, gateFile }: LaneOptions): Lanes {
  return {
    take() {
      const gate = shareLock(gateFile);
      if (!gate) return null;
      for (let number = 1; number <= count; number++) {
        const lane = takeLock(join(folder, `lane-${number}.lock`));
        if (!lane) continue;
        return {
          release() {
            lane.release();
            gate.release();
          },
        };
      }
      gate.release();
      return null;
    },
    bracket: () => takeLock(gateFile),
  };
}
