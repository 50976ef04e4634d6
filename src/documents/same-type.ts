import type { Listing } from "../text/listing.js";

/** In place of a key that may be absent, so that two types differ when only one of them has it. */
type Absent = { absent: true };

/** A type as its values are printed: lists are arrays, and what is read-only is like any other. */
type AsPrinted<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : Value extends readonly [infer First, infer Second]
    ? [AsPrinted<First>, AsPrinted<Second>]
    : Value extends Listing<infer Entry>
      ? AsPrinted<Entry>[]
      : {
          [Key in keyof Value]-?: Record<never, never> extends Pick<Value, Key>
            ? AsPrinted<Exclude<Value[Key], undefined>> | Absent
            : AsPrinted<Value[Key]>;
        };

type Mutual<One, Other> = [One] extends [Other] ? ([Other] extends [One] ? true : false) : false;

/**
 * Whether what the code makes is exactly what a schema describes: no key more, none less, and each of the same type. An
 * assignment of `true` to it fails to compile where they differ.
 */
export type SameType<Made, Described> = Mutual<AsPrinted<Made>, AsPrinted<Described>>;
