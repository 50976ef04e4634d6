/**
 * A map from texts to numbers that stores twelve bytes for each text: a million rows are compared in 25 MB. Texts are
 * compared by 64 bits of their hash: among a million texts, two collide about once in thirty million sheets. Pass `same`
 * to rule that out.
 */
export class CompactTextMap {
  private size = 0;
  private capacity = 1_024;
  private table = new Uint32Array(3 * this.capacity);

  /** The number stored for the text, or null for a new text, which then gets this number. */
  put(text: string, number: number, same: (number: number) => boolean = () => true): number | null {
    if (this.size * 2 >= this.capacity) this.grow();
    hash(text);
    const at = this.placeOf(same);
    const kept = this.table[at + 2] as number;
    if (kept !== 0) return kept - 1;
    this.write(at, lanes[0] as number, lanes[1] as number, number);
    return null;
  }

  /** The number stored for the text, or null. */
  find(text: string): number | null {
    if (this.size === 0) return null;
    hash(text);
    const kept = this.table[this.placeOf(() => true) + 2] as number;
    return kept === 0 ? null : kept - 1;
  }

  /** The slot of the text that was hashed last, or the free slot for it. */
  private placeOf(same: (number: number) => boolean): number {
    const low = lanes[0] as number;
    const high = lanes[1] as number;
    for (let slot = low & (this.capacity - 1); ; slot = (slot + 1) & (this.capacity - 1)) {
      const at = slot * 3;
      const kept = this.table[at + 2] as number;
      if (kept === 0) return at;
      if (this.table[at] === low && this.table[at + 1] === high && same(kept - 1)) return at;
    }
  }

  /** Numbers are stored plus one: zero marks a free slot. */
  private write(at: number, low: number, high: number, number: number): void {
    this.table[at] = low;
    this.table[at + 1] = high;
    this.table[at + 2] = number + 1;
    this.size++;
  }

  private grow(): void {
    const old = this.table;
    this.capacity *= 2;
    this.table = new Uint32Array(3 * this.capacity);
    for (let from = 0; from < old.length; from += 3) {
      if (old[from + 2] === 0) continue;
      let slot = (old[from] as number) & (this.capacity - 1);
      while (this.table[slot * 3 + 2] !== 0) slot = (slot + 1) & (this.capacity - 1);
      for (let offset = 0; offset < 3; offset++) this.table[slot * 3 + offset] = old[from + offset] as number;
    }
  }
}

const lanes = new Uint32Array(2);

/** Two 32-bit hashes over the text's code units, mixed at the end. */
function hash(text: string): void {
  let one = 0x9e3779b9;
  let two = 0x85ebca6b;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    one = Math.imul(one ^ unit, 2_654_435_761);
    two = Math.imul(two ^ unit, 1_597_334_677);
    one ^= one >>> 15;
    two ^= two >>> 13;
  }
  one = Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(two ^ (two >>> 13), 3_266_489_909);
  two = Math.imul(two ^ (two >>> 16), 2_246_822_507) ^ Math.imul(one ^ (one >>> 13), 3_266_489_909);
  lanes[0] = one;
  lanes[1] = two;
}
