import type { Chance } from "../chance.js";
import type { Kernel } from "../kernel.js";
import type { Process } from "../machine.js";
import type { Rule, Sender } from "../watch.js";

/** A connection with the workspace's lock. */
export interface LockSession {
  process: Process;
  /** The server has let go of the lock: whatever is written over this connection is refused. */
  isGone: boolean;
  /** The process knows that its connection is lost. */
  isNoticed: boolean;
}

/** The lock of a workspace. */
export interface Lock {
  /** Null if another process has the lock. */
  take(process: Process): LockSession | null;
  isTaken(): boolean;
  free(session: LockSession): void;
}

/** Milliseconds after which the server lets go of the lock of a host that it does not reach. */
export const letGoMs = 25_000;

/**
 * In place of PostgreSQL's advisory lock, which belongs to a connection: it falls when the process of the connection is
 * killed, or some time after its host was lost.
 */
export class WorkspaceLock implements Lock, Rule {
  private holder: LockSession | null = null;

  constructor(
    private readonly kernel: Kernel,
    private readonly lot: Chance,
  ) {}

  take(process: Process): LockSession | null {
    if (this.holder !== null) return null;
    this.holder = { process, isGone: false, isNoticed: false };
    return this.holder;
  }

  isTaken(): boolean {
    return this.holder !== null;
  }

  isHeldBy(sender: Sender): boolean {
    return this.holder?.process === sender;
  }

  free(session: LockSession): void {
    session.isGone = true;
    if (this.holder === session) this.holder = null;
  }

  crashed(senders: readonly Sender[]): void {
    const { holder } = this;
    if (holder === null || !senders.includes(holder.process)) return;
    // Half of the time not only the process is gone, but its host.
    if (this.lot.is(0.5)) this.free(holder);
    else this.kernel.schedule(this.kernel.now() + letGoMs, () => this.free(holder));
  }
}
