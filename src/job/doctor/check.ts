/** One thing that was looked at. */
export interface Check {
  name: string;
  state: "ok" | "warning" | "problem" | "not checked";
  expected: string;
  got: string;
  /** What to do about it; null where there is nothing to do. */
  todo: string | null;
  /** The exit that a problem leads to. */
  exit: "key" | "unreachable" | "usage" | null;
}

/** What is wrong with one thing, in the words of its check. */
export type CheckTrouble = Pick<Check, "expected" | "got"> & { todo: string };

export function fine(name: string, expected: string, got: string): Check {
  return { name, state: "ok", expected, got, todo: null, exit: null };
}

export function warning(name: string, trouble: CheckTrouble): Check {
  return { name, state: "warning", ...trouble, exit: null };
}

export function problem(
  name: string,
  trouble: CheckTrouble,
  exit: "key" | "unreachable" | "usage" = "usage",
): Check {
  return { name, state: "problem", ...trouble, exit };
}

/** Something that could not be looked at, and why. */
export function unchecked(name: string, expected: string, why: string): Check {
  return { name, state: "not checked", expected, got: why, todo: null, exit: null };
}
