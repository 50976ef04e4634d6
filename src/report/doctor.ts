import type { ExitName } from "../core/exit.js";
import type { Check } from "../job/doctor/check.js";
import { type Cell, plainStyle, type TerminalStyle, type Tone, table } from "../text/table.js";

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
export function doctorText(checks: readonly Check[], look: TerminalStyle = plainStyle): string {
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
  look: TerminalStyle = plainStyle,
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
