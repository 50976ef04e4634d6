/**
 * A stream of numbers from a seed: what is drawn, said or played for a request is the same each time, on each machine.
 * (sfc32, a small generator of good quality; the seed is the hex of a SHA-256.)
 */
export class Seeded {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  constructor(hex: string) {
    this.a = Number.parseInt(hex.slice(0, 8), 16) | 0;
    this.b = Number.parseInt(hex.slice(8, 16), 16) | 0;
    this.c = Number.parseInt(hex.slice(16, 24), 16) | 0;
    for (let round = 0; round < 12; round++) this.next();
  }

  /** A number in [0, 1). */
  next(): number {
    const sum = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + sum;
    return (sum >>> 0) / 4_294_967_296;
  }

  between(low: number, high: number): number {
    return low + this.next() * (high - low);
  }

  /** A whole number from low to high, both included. */
  whole(low: number, high: number): number {
    return Math.floor(this.between(low, high + 1));
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.next() * items.length)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }
}
