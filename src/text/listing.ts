/** A countable list that is read one by one: an array, or the rows of a query. */
export interface Listing<Thing> extends Iterable<Thing> {
  readonly length: number;
}

export function firstOf<Thing>(things: Iterable<Thing>, count: number): Thing[] {
  const first: Thing[] = [];
  if (count <= 0) return first;
  for (const thing of things) {
    first.push(thing);
    if (first.length >= count) break;
  }
  return first;
}

export function mapped<Thing, Other>(things: Listing<Thing>, made: (thing: Thing) => Other): Listing<Other> {
  return {
    get length() {
      return things.length;
    },
    *[Symbol.iterator]() {
      for (const thing of things) yield made(thing);
    },
  };
}

export function* only<Thing>(things: Iterable<Thing>, wanted: (thing: Thing) => boolean): Generator<Thing> {
  for (const thing of things) if (wanted(thing)) yield thing;
}
