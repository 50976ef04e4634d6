/** A sheet whose params are others in each row has as many sets as rows; those beyond this many are not kept. */
const keptMax = 1_000;

/**
 * The params of rows. Nearly every row says what some row before it said, and gets the very same object: what was found
 * out about it once, such as its price, need not be found out again for a million rows.
 */
export class ParamSets {
  private readonly root = new ParamSet(null, "", "");
  private kept = 0;

  /** No params; `with` adds to them. */
  get none(): ParamSet {
    return this.root;
  }

  with(before: ParamSet, key: string, value: string): ParamSet {
    const known = before.next.get(key)?.get(value);
    if (known !== undefined) return known;
    const set = new ParamSet(before, key, value);
    if (this.kept < keptMax) {
      this.kept++;
      before.keep(set);
    }
    return set;
  }
}

/** Params in the order in which they were said: those before, and one more. */
export class ParamSet {
  readonly next = new Map<string, Map<string, ParamSet>>();
  private made: Readonly<Record<string, string>> | null = null;

  constructor(
    private readonly before: ParamSet | null,
    private readonly key: string,
    private readonly value: string,
  ) {}

  keep(set: ParamSet): void {
    const values = this.next.get(set.key) ?? new Map<string, ParamSet>();
    this.next.set(set.key, values.set(set.value, set));
  }

  get params(): Readonly<Record<string, string>> {
    this.made ??= Object.freeze(Object.fromEntries(this.entries()));
    return this.made;
  }

  private entries(): [string, string][] {
    return this.before === null ? [] : [...this.before.entries(), [this.key, this.value]];
  }
}
