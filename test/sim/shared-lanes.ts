import type { Lanes } from "../../src/core/quota/quota.js";
import type { Process } from "./machine.js";

/** Lanes of the simulated machine in place of the locks: each falls with the process that holds it. */
export class SharedLanes {
  private readonly owners = new Map<number, Process>();
  private bracket: Process | null = null;

  /** The process gives back whatever it has, as where it closes its account and goes on. */
  close(process: Process): void {
    for (const [number, owner] of this.owners) if (owner === process) this.owners.delete(number);
    if (this.bracket === process) this.bracket = null;
  }

  /** The lanes as one process sees them, of which it may use `count`. */
  of(process: Process, count: number): Lanes {
    return {
      take: () => {
        if (this.bracket?.isAlive()) return null;
        for (let number = 1; number <= count; number++) {
          if (this.owners.get(number)?.isAlive()) continue;
          this.owners.set(number, process);
          return {
            release: () => {
              if (process.isAlive()) this.owners.delete(number);
            },
          };
        }
        return null;
      },
      bracket: () => {
        const taken = [this.bracket, ...this.owners.values()].some((owner) => owner?.isAlive());
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
