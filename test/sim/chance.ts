import type { Random } from "../../src/clock.js";

/**
 * Randomness that follows from a seed and a few words. Each subject has a stream of its own: taking one fault away
 * must not change the latency of every later request, or no failing run could be made smaller.
 */
export function chance(seed: number, ...about: (string | number)[]): Chance {
  return new Chance(streamOf(seed, about));
}

/** The same for what few runs have. */
export function denseChance(seed: number, ...about: (string | number)[]): Chance {
  return new Denser(streamOf(seed, about));
}

function streamOf(seed: number, about: readonly (string | number)[]): number {
  return hash32(`${seed} ${about.join(" ")}`);
}

export class Chance implements Random {
  constructor(private state: number) {}

  /** A number in [0, 1). Mulberry32. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  uuid(): string {
    const hex = Array.from({ length: 32 }, () => Math.floor(this.next() * 16).toString(16)).join("");
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  /** A whole number whose size, not whose value, is evenly spread: small ones are as likely as large ones. */
  scale(least: number, most: number): number {
    return Math.round(least * (most / least) ** this.next());
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.next() * values.length)] as Value;
  }

  shuffle<Value>(values: readonly Value[]): Value[] {
    return values
      .map((value) => ({ value, at: this.next() }))
      .sort((a, b) => a.at - b.at)
      .map(({ value }) => value);
  }
}

/** Lets what is rare happen in about a third of all runs: what few runs have meets in fewer still. */
class Denser extends Chance {
  override is(probability: number): boolean {
    return super.is(probability < 0.25 ? Math.min(0.35, 4 * probability) : probability);
  }
}

/** FNV-1a, finished so that near texts lie far apart. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
