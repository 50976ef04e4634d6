import type { View } from "../core/next/next.js";
import type { Claim } from "../core/ports/accounts.js";
import { owedRequests } from "../core/quota/quota.js";
import type { RunPorts, RunSettings } from "./ports.js";

/** A name of its own for each run of the account: another job of the workspace must not overwrite what this one owes. */
export function claimantOf({
  ports: { workspace },
  settings: { run },
}: {
  ports: Pick<RunPorts, "workspace">;
  settings: Pick<RunSettings, "run">;
}): string {
  return `${workspace} run ${run.id}`;
}

/** The requests of the day that a run owes to its open tasks, and what the account's other runs know of it, in any workspace. */
export class Debt {
  private requests = 0;
  private reported: number | null = null;

  constructor(
    private readonly ports: Pick<RunPorts, "accounts" | "accountId">,
    private readonly claimant: string,
  ) {}

  is(counts: View["counts"]): void {
    this.requests = owedRequests(counts);
  }

  /** What is owed once one more item is submitted. */
  get withOneMore(): Claim {
    return { claimant: this.claimant, requests: this.requests + 1 };
  }

  /** One more was submitted, and the account knows it from the reservation. */
  grew(): void {
    this.requests++;
    this.reported = this.requests;
  }

  /** Reports the debt, so that requests that this run no longer needs are free for others. */
  async report(): Promise<void> {
    if (this.reported === this.requests) return;
    const { accounts, accountId } = this.ports;
    await accounts.owes(accountId, { claimant: this.claimant, requests: this.requests });
    this.reported = this.requests;
  }
}
