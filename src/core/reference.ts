/**
 * An input may be another item's output: `@ITEM`, `@STEP` or `@ROW.STEP`, followed by `[2]` for the second output.
 * In a chain of items, each takes the output of an earlier one, its parent.
 */
export interface OutputReference {
  name: string;
  /** The number of the parent's output, from 1. */
  output: number;
}

/** Whether an input is a reference and not an address or a path. */
export function isReference(value: string): boolean {
  return value.startsWith("@");
}

/** Null for a text that begins like a reference but is none. */
export function referenceIn(value: string): OutputReference | null {
  const [, name = "", number = "1"] =
    /^@\s*(?![@\s])([^[\]]*[^[\]\s])\s*(?:\[(\d{1,4})\])?$/.exec(value.trim()) ?? [];
  const output = Number(number);
  return name === "" || output < 1 ? null : { name, output };
}

export function hasReference(inputs: Readonly<Record<string, string | undefined>>): boolean {
  for (const field in inputs) if (isReference(inputs[field] ?? "")) return true;
  return false;
}
