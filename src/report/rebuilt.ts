import type { Rebuilt } from "../job/rebuild/rebuild.js";
import { count } from "../text/amounts.js";
import { type Cell, labelled, plainStyle, type TerminalStyle } from "../text/table.js";

const namesMax = 5;

export function rebuiltText(facts: Rebuilt, look: TerminalStyle = plainStyle): string {
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
  if (archive.renamed > 0)
    lines.push(["renamed", `${count(archive.renamed, "file")}, recognised by content`]);
  if (facts.orphans.length > 0)
    warn("orphans", `${named("task", facts.orphans)}: paid for, but their items are unknown`);
  lines.push(
    [
      "not restored",
      "rows never submitted, priorities, run caps and options, decisions on held items: run the manifests again",
    ],
    ["kept", facts.kept ?? "nothing; there was no database"],
  );
  const [next] = facts.owing;
  if (next !== undefined)
    lines.push([
      "next",
      `\`bulkgen resume${facts.owing.length > 1 ? ` ${next}` : ""}\` downloads what is at the service`,
    ]);
  return labelled(lines, look);
}

function named(what: string, names: readonly (string | number)[]): string {
  const more = names.length - namesMax;
  const shown = names.slice(0, namesMax).join(", ");
  return `${count(names.length, what)} (${shown}${more > 0 ? ` and ${more} more` : ""})`;
}
