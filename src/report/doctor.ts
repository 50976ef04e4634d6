import type { ExitName } from "../core/exit.js";
import { count } from "../text/amounts.js";
import { type Cell, labelled, type Tone, table } from "../text/table.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import type { Check } from "../upkeep/doctor/machine.js";
import type { Rebuilt } from "../upkeep/rebuild/rebuild.js";

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

/** A line for each check; below failed ones, what to do. */
export function doctorText(checks: readonly Check[], style: TerminalStyle = plainStyle): string {
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
  return `${table(columns, rows, style)}\n${counted(problems, "problem")}, ${counted(warnings, "warning")}`;
}

/** The settings of a run without flags that somebody has set, and their sources; the defaults are only counted. */
export function settingsText(
  settings: readonly { name: string; value: string; from: string }[],
  style: TerminalStyle = plainStyle,
): string {
  const own = settings.filter(({ from }) => from !== "default");
  const others = `${own.length === 0 ? "all" : "the other"} ${settings.length - own.length} settings have their defaults: \`bulkgen doctor --json\` lists them`;
  if (own.length === 0) return others;
  const rows = own.map(({ name, value, from }): Cell[] => [name, value, from]);
  const columns = [
    { title: "setting" },
    { title: "value", flexible: true },
    { title: "from", flexible: true },
  ];
  return `${table(columns, rows, style)}\n${others}`;
}

function counted(number: number, what: string): string {
  if (number === 0) return `no ${what}s`;
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

const namesMax = 5;

export function rebuiltText(facts: Rebuilt, there: string, style: TerminalStyle = plainStyle): string {
  const { receipts, archive, counts } = facts;
  const states = Object.entries(counts).filter(([, number]) => number > 0);
  const lines: [string, Cell][] = [
    ["rebuilt", facts.database],
    [
      "from",
      `${count(receipts.lines, "line")} of receipts, ${count(archive.indexes, "index", "indexes")} of archives`,
    ],
    ["items", `${facts.found}: ${states.map(([state, number]) => `${number} ${state}`).join(", ")}`],
  ];
  const warn = (label: string, text: string) => lines.push([label, { text, tone: "warning" }]);
  if (counts.unknown > 0)
    warn(
      "unknown",
      `${count(counts.unknown, "paid request")} without a recorded answer; never sent again automatically`,
    );
  if (receipts.unreadable.length > 0)
    warn("unread", `${named("line", receipts.unreadable)} of the receipts unreadable: damaged or truncated`);
  if (archive.missing.length > 0)
    warn("missing", `${named("file", archive.missing)}: missing or changed; downloaded again if possible`);
  if (facts.orphans.length > 0)
    warn("orphans", `${named("task", facts.orphans)}: paid for, but their items are unknown`);
  const { picks, approvals } = facts.decisions;
  if (picks + approvals > 0)
    lines.push([
      "decisions",
      `${count(picks, "pick")}, ${count(approvals, "approval or rejection", "approvals and rejections")}`,
    ]);
  lines.push(
    [
      "not restored",
      "rows never submitted, priorities, run caps and options, decisions on held items, and picks and approvals that the receipts do not have: run the manifests again",
    ],
    ["kept", facts.kept ?? "nothing; there was no database"],
  );
  const [next] = facts.owing;
  if (next !== undefined)
    lines.push([
      "next",
      `\`bulkgen resume${facts.owing.length > 1 ? ` ${next}` : ""}${there}\` downloads what is at the service`,
    ]);
  return labelled(lines, style);
}

function named(what: string, names: readonly (string | number)[]): string {
  const more = names.length - namesMax;
  const shown = names.slice(0, namesMax).join(", ");
  return `${count(names.length, what)} (${shown}${more > 0 ? ` and ${more} more` : ""})`;
}
