import type { Conclusion } from "./conclusion.js";
import { type AnswerLine, conclusionIn, type IntentLine } from "./receipt-lines.js";

/** What the receipts know of one paid request. */
export interface KnownAttempt {
  /** Null for an answer that does not say it and stands after no intent of its attempt. */
  job: string | null;
  key: string;
  number: number;
  intent: IntentLine | null;
  answer: { at: string; conclusion: Conclusion } | null;
}

/**
 * Puts the lines of the receipts together, in their order: an answer belongs to the last intent before it of its
 * attempt, so one that stands before an intent never counts for it. Where the answer says its job, it counts for no
 * other one; where it does not, the last intent of whichever job is the right one, for a workspace has one process and
 * that one run, which settles what is left of others before it asks for anything.
 */
export class KnownAttempts {
  private readonly byAttempt = new Map<string, KnownAttempt[]>();
  private readonly inOrder: KnownAttempt[] = [];

  get all(): readonly KnownAttempt[] {
    return this.inOrder;
  }

  note(line: IntentLine | AnswerLine): void {
    if (line.type === "intent") {
      this.add({ job: line.job, key: line.key, number: line.attempt, intent: line, answer: null });
      return;
    }
    const answer = { at: line.at, conclusion: conclusionIn(line) };
    const { job, key, attempt: number } = line;
    const asked = this.of(key, number).findLast((known) => job === undefined || known.job === job);
    if (asked?.answer === null) asked.answer = answer;
    else this.add({ job: job ?? null, key, number, intent: null, answer });
  }

  /** The newest request that was this attempt. */
  find(job: string, key: string, number: number): KnownAttempt | undefined {
    return this.of(key, number).findLast((known) => known.job === job);
  }

  private add(known: KnownAttempt): void {
    const { key, number } = known;
    this.byAttempt.set(nameOf(key, number), [...this.of(key, number), known]);
    this.inOrder.push(known);
  }

  private of(key: string, number: number): readonly KnownAttempt[] {
    return this.byAttempt.get(nameOf(key, number)) ?? [];
  }
}

function nameOf(key: string, number: number): string {
  return `${key} ${number}`;
}
