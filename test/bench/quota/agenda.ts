/** What is to happen when, in virtual time. */
export class Agenda {
  private readonly entries: { at: number; act(): void }[] = [];

  at(at: number, act: () => void): void {
    let index = this.entries.length;
    while (index > 0 && (this.entries[index - 1] as { at: number }).at <= at) index--;
    this.entries.splice(index, 0, { at, act });
  }

  /** The time of the next thing to happen, this one of the caller's included; null when there is none. */
  next(own: number | null): number | null {
    const first = this.entries.at(-1)?.at ?? null;
    if (first === null || own === null) return first ?? own;
    return Math.min(first, own);
  }

  /** Lets everything happen that is due. */
  run(now: number): void {
    for (let entry = this.entries.at(-1); entry && entry.at <= now; entry = this.entries.at(-1)) {
      this.entries.pop();
      entry.act();
    }
  }
}
