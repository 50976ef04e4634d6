/** Different things that are told one by one; every cell may have been changed into something else. */
const aboutMax = 100;
const numbersMax = 5;

/** What is told of several rows, with the first of their numbers. */
export class Gathered {
  private readonly numbers = new Map<string, { first: number[]; last: number; count: number }>();
  private more = 0;

  add(about: string, number: number): void {
    const known = this.numbers.get(about);
    if (known === undefined && this.numbers.size >= aboutMax) this.more++;
    else if (known === undefined) this.numbers.set(about, { first: [number], last: number, count: 1 });
    else if (known.last !== number) {
      known.last = number;
      known.count++;
      if (known.first.length < numbersMax) known.first.push(number);
    }
  }

  lines(): string[] {
    const lines = [...this.numbers].map(([about, { first, count }]) => {
      const more = count > first.length ? ` and ${count - first.length} more` : "";
      return `${about} (${count === 1 ? "row" : "rows"} ${first.join(", ")}${more})`;
    });
    return this.more === 0 ? lines : [...lines, `and ${this.more} more like these`];
  }
}
