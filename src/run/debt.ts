import type { Claim } from "../core/accounts.js";
import type { View } from "../core/next.js";
import { owedRequests } from "../core/quota.js";
import type { RunPorts } from "./ports.js";

/** The requests of the day that a run owes to its open tasks, and what the account's other workspaces know of it. */
export class Debt {
  private requests = 0;
  private told: number | null = null;

  constructor(private readonly ports: Pick<RunPorts, "accounts" | "accountId" | "workspace">) {}

  is(counts: View["counts"]): void {
    this.requests = owedRequests(counts);
  }

  /** What is owed once one more item is submitted. */
  get withOneMore(): Claim {
    return { workspace: this.ports.workspace, requests: this.requests + 1 };
  }

  /** One more was submitted, and the account was told with its reservation. */
  grew(): void {
    this.requests++;
    this.told = this.requests;
  }

  /** What this run does not need any more is free for others. */
  async tell(): Promise<void> {
    if (this.told === this.requests) return;
    const { accounts, accountId, workspace } = this.ports;
    await accounts.owes(accountId, { workspace, requests: this.requests });
    this.told = this.requests;
  }
}
