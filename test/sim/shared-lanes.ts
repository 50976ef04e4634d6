import type { Lanes } from "../../src/core/quota/quota.js";
import type { Process } from "./machine.js";

/** Lanes of the simulated machine in place of the locks: each falls with the process that holds it. */
export class SharedLanes {
  private readonly holders = new Map<number, Process>();
  private bracket: Process | null = null;

  /** The lanes as one process sees them, of which it may use `count`. */
  of(process: Process, count: number): Lanes {
    return {
      take: () => {
        if (this.bracket?.isAlive()) return null;
        for (let number = 1; number <= count; number++) {
          if (this.holders.get(number)?.isAlive()) continue;
          this.holders.set(number, process);
          return {
            release: () => {
              if (process.isAlive()) this.holders.delete(number);
            },
          };
        }
        return null;
      },
      bracket: () => {
        const taken = [this.bracket, ...this.holders.values()].some((holder) => holder?.isAlive());
        if (taken) return null;
        this.bracket = process;
        return {
          release: () => {
            if (process.isAlive()) this.bracket = null;
          },
        };
      },
    };
  }
}
