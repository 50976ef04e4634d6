import type { Decision, View } from "../core/next/next.js";
import type { Claim } from "../core/ports/accounts.js";
import { isLongWait, owedRequests, silenceText, slotsLeft, utcTime } from "../core/quota/quota.js";
import type { Session } from "./session.js";

/** The requests of the day that a run owes to its open tasks, and what the account's other runs know of it, in whatever workspace. */
export class Debt {
  private requests = 0;
  private told: number | null = null;

  constructor(private readonly session: Pick<Session, "ports" | "claimant">) {}

  is(counts: View["counts"]): void {
    this.requests = owedRequests(counts);
  }

  /** What is owed once one more item is submitted. */
  get withOneMore(): Claim {
    return { claimant: this.session.claimant, requests: this.requests + 1 };
  }

  /** One more was submitted, and the account was told with its reservation. */
  grew(): void {
    this.requests++;
    this.told = this.requests;
  }

  /** What this run does not need any more is free for others. */
  async tell(): Promise<void> {
    if (this.told === this.requests) return;
    const { ports, claimant } = this.session;
    await ports.accounts.owes(ports.accountId, { claimant, requests: this.requests });
    this.told = this.requests;
  }
}

/** Ends the run where it would wait for hours, unless somebody wants it to. */
export function stopForLongWait(session: Session, { quota, now }: View, { waiting }: Decision): void {
  const silentUntil = quota.blockedUntil ?? now;
  if (session.settings.onDailyLimit === "wait" || !isLongWait(waiting, silentUntil - now)) return;
  const until = utcTime(quota.day.nextReleaseAt ?? now);
  if (waiting === "service") session.stop("silence", silenceText(silentUntil));
  else if (slotsLeft(quota.day) < 1) session.stop("day", `the day's requests are used up until ${until}`);
  else
    session.stop(
      "reserve",
      `what is left of the day's requests is kept for open tasks; more from ${until} on`,
    );
}
