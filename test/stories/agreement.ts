import type { MadeTask } from "../e2e/sandbox.js";
import { isCharged, promptOf, type Row } from "./sheets.js";

/**
 * What a person has agreed to pay for: each row of a sheet once, for each job and edition; rows that want the same
 * picture at the same time, each; and again what was ordered again.
 */
export class Agreement {
  /** The most rows that wanted a picture at once, by job and edition. */
  private readonly rows = new Map<string, Map<string, number>>();
  /** Pictures that may be paid for once more, by job. */
  private readonly more = new Map<string, number>();
  /** The job of each task, in the order in which they were made. */
  private readonly jobs: string[] = [];

  to({ job, edition }: { job: string; edition: string }, rows: readonly Row[]): void {
    const name = JSON.stringify([job, edition]);
    const counts = this.rows.get(name) ?? new Map<string, number>();
    this.rows.set(name, counts);
    const prompts = rows.map(promptOf);
    // Merged, identical rows have one picture; else each has its own. What is drawn of such a row is drawn of either.
    const ofEither = rows.filter(
      ({ of }) =>
        of !== undefined && rows.some((other) => other.id !== of.id && promptOf(other) === promptOf(of)),
    );
    for (const prompt of prompts) {
      const more = ofEither.filter((row) => promptOf(row) === prompt).length;
      const now = prompts.filter((other) => other === prompt).length + more;
      counts.set(prompt, Math.max(now, counts.get(prompt) ?? 0));
    }
  }

  toMore(job: string, count: number): void {
    this.more.set(job, (this.more.get(job) ?? 0) + count);
  }

  /** The next task was made for this job. */
  made(job: string): void {
    this.jobs.push(job);
  }

  /** What was paid for without a word, in words; null if nothing was. */
  breach(tasks: readonly MadeTask[]): string | null {
    for (const job of new Set(this.jobs)) {
      const paid = tasks.filter((task, at) => this.jobs[at] === job && isCharged(task));
      const counts = [...new Set(paid.map(({ prompt }) => prompt))]
        .map((prompt) => ({
          prompt,
          times: paid.filter((task) => task.prompt === prompt).length,
          rows: this.rowsOf(job, prompt),
        }))
        .filter(({ times, rows }) => times > rows);
      const again = counts.reduce((sum, { times, rows }) => sum + times - rows, 0);
      const agreed = this.more.get(job) ?? 0;
      if (again <= agreed) continue;
      const what = counts.map(({ prompt, times, rows }) => `${prompt} ${times} times for ${rows} rows`);
      return `job ${job} paid for ${what.join(", ")}; ${agreed} were ordered again`;
    }
    return null;
  }

  private rowsOf(job: string, prompt: string): number {
    const own = [...this.rows].filter(([name]) => (JSON.parse(name) as string[])[0] === job);
    return own.reduce((sum, [, counts]) => sum + (counts.get(prompt) ?? 0), 0);
  }
}
