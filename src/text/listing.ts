/** Many things that are counted at once and looked at one by one: an array, or what a database holds. */
export interface Listing<Thing> extends Iterable<Thing> {
  readonly length: number;
}

/** The first ones. */
export function firstOf<Thing>(things: Iterable<Thing>, count: number): Thing[] {
  const first: Thing[] = [];
  if (count <= 0) return first;
  for (const thing of things) {
    first.push(thing);
    if (first.length >= count) break;
  }
  return first;
}

/** The same things made into others. */
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

/** Those of them that are wanted. */
export function* only<Thing>(things: Iterable<Thing>, wanted: (thing: Thing) => boolean): Generator<Thing> {
  for (const thing of things) if (wanted(thing)) yield thing;
}
