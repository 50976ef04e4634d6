import type { Disk, NewFile } from "../../../src/core/ports/disk.js";
import { DatabaseTrouble } from "../../../src/store/open.js";
import { type Chance, chance } from "../chance.js";
import type { Process } from "../machine.js";
import { type Lock, type LockSession, letGoMs } from "./lock.js";

/** Milliseconds after which a process takes its database for unreachable. */
const patienceMs = 30_000;
/** The most that a call takes to reach the queue (ms). */
const latencyMs = 40;

/**
 * What lies between one process of a fleet and the rest: at each call it may be stopped for a while, and its connection
 * to the database may break or be cut.
 */
export class Link {
  /** When it was last stopped, cut off or disappointed. */
  troubleAt = Number.NEGATIVE_INFINITY;
  session: LockSession | null = null;
  private stoppedUntil = Number.NEGATIVE_INFINITY;
  private cut: { from: number; until: number } | null = null;
  private readonly lot: Chance;

  constructor(
    readonly process: Process,
    private readonly lock: Lock,
  ) {
    const { seed, processes } = process.machine;
    this.lot = chance(seed, "link", processes.length);
  }

  /** The host does not reach the database for a while. */
  cutFor(ms: number): void {
    const { kernel } = this.process.machine;
    const from = kernel.now();
    this.cut = { from, until: from + ms };
    this.noteTrouble(ms + patienceMs);
    const { session } = this;
    if (session === null || ms < letGoMs) return;
    kernel.schedule(from + letGoMs, () => this.lock.free(session));
  }

  /** A port of the database. Methods in `writes` are refused once the lock is lost, all others once that is known. */
  port<Port extends object>(name: string, port: Port, fence?: { looks: readonly string[] }): Port {
    const linked = Object.entries(port).map(
      ([method, act]: [string, (...values: unknown[]) => Promise<unknown>]) => {
        const call = (...values: unknown[]) => {
          const isWrite = fence !== undefined && !fence.looks.includes(method);
          return this.ask(
            `${name}.${method}`,
            () => act(...values),
            fence === undefined ? null : { isWrite },
          );
        };
        return [method, call];
      },
    );
    return Object.fromEntries(linked) as Port;
  }

  /** A question to the database. */
  async ask<Result>(
    name: string,
    act: () => Promise<Result>,
    fenced: { isWrite: boolean } | null = null,
  ): Promise<Result> {
    const fault = await this.pass(name, (wait) => wait());
    const { session } = this;
    await this.reach();
    if (fenced !== null && session !== null) {
      if (fenced.isWrite && session.isGone) session.isNoticed = true;
      if (session.isNoticed) throw this.trouble();
    }
    if (fault === null) return act();
    if (fault.done) await act();
    if (fenced !== null && session !== null) this.loses(session);
    throw this.trouble();
  }

  /** The connection with the lock breaks. What was asked of it before is answered, or is not done. */
  private loses(session: LockSession): void {
    const { kernel } = this.process.machine;
    session.isNoticed = true;
    kernel.schedule(kernel.now(), () => this.lock.free(session));
  }

  /** One of the queue's, which take their time: so the calls of several processes meet in another order each time. */
  async askQueue<Result>(name: string, act: () => Promise<Result>): Promise<Result> {
    if (this.lot.is(0.5)) await this.process.machine.kernel.sleep(this.lot.whole(1, latencyMs));
    return this.ask(name, act);
  }

  /** `within` says how virtual time is waited for: within real work or without. */
  async pass(
    name: string,
    within: (wait: () => Promise<void>) => Promise<void>,
  ): Promise<{ done: boolean } | null> {
    const { kernel, desk } = this.process.machine;
    const fault = this.process.isAlive() ? desk.ofCall(name) : null;
    if (fault?.kind === "stands-still") {
      this.stoppedUntil = Math.max(this.stoppedUntil, kernel.now() + fault.ms);
      this.noteTrouble(fault.ms);
    }
    while (kernel.now() < this.stoppedUntil)
      await within(() => kernel.sleep(this.stoppedUntil - kernel.now()));
    if (fault?.kind !== "lost-answer") return null;
    this.noteTrouble(0);
    return fault;
  }

  disk(disk: Disk, within: (wait: () => Promise<void>) => Promise<void>): Disk {
    const pass =
      <Values extends unknown[], Result>(name: string, act: (...values: Values) => Promise<Result>) =>
      async (...values: Values): Promise<Result> => {
        await this.pass(`disk.${name}`, within);
        return act(...values);
      };
    const file = (own: NewFile): NewFile => ({
      ...own,
      write: pass("write", own.write),
      sync: pass("sync", own.sync),
    });
    return {
      ...disk,
      create: pass("create", async (path: string) => file(await disk.create(path))),
      append: pass("append", disk.append),
      link: pass("link", disk.link),
      unlink: pass("unlink", disk.unlink),
      syncFolder: pass("syncFolder", disk.syncFolder),
    };
  }

  private async reach(): Promise<void> {
    const { kernel } = this.process.machine;
    const { cut } = this;
    if (cut === null || kernel.now() >= cut.until) return;
    const left = cut.until - kernel.now();
    await kernel.sleep(Math.min(left, patienceMs));
    if (cut.until - cut.from < letGoMs) return;
    if (this.session !== null) this.session.isNoticed = true;
    throw this.trouble();
  }

  private noteTrouble(ms: number): void {
    this.troubleAt = Math.max(this.troubleAt, this.process.machine.kernel.now() + ms);
  }

  private trouble(): DatabaseTrouble {
    return new DatabaseTrouble("the connection is lost", "see that it runs and that this machine reaches it");
  }
}
