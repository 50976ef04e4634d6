import type { ExitName } from "../core/exit.js";
import { type Cell, type Look, plainLook, type Tone, table } from "./table.js";

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
export type Trouble = Pick<Check, "expected" | "got"> & { todo: string };

export function fine(name: string, expected: string, got: string): Check {
  return { name, state: "ok", expected, got, todo: null, exit: null };
}

export function warning(name: string, trouble: Trouble): Check {
  return { name, state: "warning", ...trouble, exit: null };
}

export function problem(
  name: string,
  trouble: Trouble,
  exit: "key" | "unreachable" | "usage" = "usage",
): Check {
  return { name, state: "problem", ...trouble, exit };
}

/** Something that could not be looked at, and why. */
export function unchecked(name: string, expected: string, why: string): Check {
  return { name, state: "not checked", expected, got: why, todo: null, exit: null };
}

/** The exit of all checks together: the key first, then the network, then everything else. */
export function doctorExit(checks: readonly Check[]): ExitName {
  return (
    (["key", "unreachable", "usage"] as const).find((exit) =>
      checks.some((check) => check.state === "problem" && check.exit === exit),
    ) ?? "done"
  );
}

const tones: Readonly<Record<Check["state"], Tone>> = {
  ok: "good",
  warning: "warning",
  problem: "bad",
  "not checked": "dim",
};

/** A line for each check, and below those that are not ok what to do. */
export function doctorText(checks: readonly Check[], look: Look = plainLook): string {
  const rows = checks.flatMap((check): Cell[][] => {
    const state = { text: check.state, tone: tones[check.state] };
    const said = check.state === "ok" ? check.got : `expected ${check.expected}; got ${check.got}`;
    const text = check.state === "not checked" ? check.got : said;
    return [
      [state, check.name, text],
      ...(check.todo === null ? [] : [["", "", { text: `-> ${check.todo}`, tone: "strong" as const }]]),
    ];
  });
  const problems = checks.filter((check) => check.state === "problem").length;
  const warnings = checks.filter((check) => check.state === "warning").length;
  const columns = [{ title: "" }, { title: "" }, { title: "", flexible: true }];
  return `${table(columns, rows, look)}\n${counted(problems, "problem")}, ${counted(warnings, "warning")}`;
}

/** What holds for a run that is given no flags, and where it comes from. */
export function settingsText(
  settings: readonly { name: string; value: string; from: string }[],
  look: Look = plainLook,
): string {
  const rows = settings.map(({ name, value, from }): Cell[] => [
    name,
    value,
    from === "default" ? { text: from, tone: "dim" } : from,
  ]);
  const columns = [
    { title: "setting" },
    { title: "value", flexible: true },
    { title: "from", flexible: true },
  ];
  return table(columns, rows, look);
}

function counted(number: number, what: string): string {
  if (number === 0) return `no ${what}s`;
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}
