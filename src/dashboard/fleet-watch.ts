import type { Clock } from "../clock.js";
import { EarlyExit } from "../core/exit.js";
import type { FleetStanding } from "../documents/page.js";
import type { FleetReader } from "../job/run/fleet-worker.js";
import type { Workspace } from "../workspace/workspace.js";

/** Watches the workers of a workspace in a database. Connects to the queue when it is first needed. */
export class FleetWatch {
  private opening: Promise<FleetReader | null> | null = null;

  constructor(
    private readonly workspace: Workspace,
    private readonly clock: Clock,
  ) {}

  /** Rejects with DatabaseTrouble, or PostgreSQL's error. */
  async standing(): Promise<FleetStanding> {
    this.opening ??= this.open().catch((error: unknown) => {
      this.opening = null;
      throw error;
    });
    return (await this.opening)?.read() ?? null;
  }

  private async open(): Promise<FleetReader | null> {
    const { openFleet } = await import("../job/run/fleet-worker.js");
    return openFleet(this.workspace, this.clock).catch((error: unknown) => {
      // No database, or no package for the queue: there are no workers to see.
      if (error instanceof EarlyExit) return null;
      throw error;
    });
  }

  async close(): Promise<void> {
    const opened = await this.opening?.catch(() => null);
    await opened?.close();
  }
}
