/** The most sets that are kept: a sheet may have different params in each row. */
const keptMax = 1_000;

/**
 * The params of rows. Rows with equal params share one object, so that facts about them, such as the price, are computed
 * once and not for each of a million rows.
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

/** A set of params: another set and one more param, in order. */
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
