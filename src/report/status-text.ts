import { type ExitName, exitCode } from "../core/exit.js";
import { itemStates } from "../core/item.js";
import { showCredits } from "../core/money.js";
import { shortText } from "../text/terminal.js";
import { evidenceText, nextLookText, reasonLines } from "./evidence.js";
import { comparedText, forecastText } from "./forecast.js";
import { type Look, plainLook } from "./look.js";
import { minute, type StatusFacts, stateText, type Trouble } from "./status.js";
import { type Cell, labelled, type Tone } from "./table.js";

const troubleShown = 20;
const reasonCharactersMax = 160;
const tones: Readonly<Record<string, Tone>> = { failed: "bad" };

/** A run on a few lines, and below them the items in trouble. */
export function statusText(facts: StatusFacts, look: Look = plainLook): string {
  const counted = itemStates
    .filter((state) => facts.counts[state] > 0)
    .map((state) => `${facts.counts[state]} ${state}`);
  const open = facts.pending === 0 ? "" : `, up to ${showCredits(facts.pending)} more open`;
  const lost = facts.lostCredits === 0 ? "" : `, up to ${showCredits(facts.lostCredits)} lost`;
  const lines: [string, Cell][] = [
    ["run", { text: `${facts.run} of ${facts.job}: ${stateText(facts)}`, tone: "strong" }],
    ["begun", `${minute(facts.startedAt)} UTC`],
    ...endText(facts),
    ["items", counted.join(", ") || "none"],
    ["credits", `${showCredits(facts.spent)} spent${open}${lost}`],
    ["requests", facts.requests],
    ...forecastLine(facts),
    ["files", facts.folder],
    ...holderText(facts),
    ...facts.trouble.slice(0, troubleShown).map(troubleText),
  ];
  const more = facts.trouble.length - troubleShown;
  if (more > 0) lines.push(["", `and ${more} more: \`bulkgen status --json\` has every one`]);
  lines.push(
    ...reasonLines(facts.lost).map((line): [string, Cell] => ["lost", { text: line, tone: "warning" }]),
  );
  if (facts.resume !== null) lines.push(["next", `\`${facts.resume}\` goes on`]);
  return labelled(lines, look);
}

/** What was expected: of a run under way with when it should end, of one that ended beside what came of it. */
function forecastLine({ forecast, startedAt, endedAt, requests }: StatusFacts): [string, Cell][] {
  if (forecast === null || forecast.requests === 0) return [];
  if (endedAt !== null) return [["forecast", comparedText(forecast, { requests, ms: endedAt - startedAt })]];
  return [["forecast", `${forecastText(forecast)}; until ${minute(startedAt + forecast.ms)} UTC`]];
}

function endText({ endedAt, exit }: StatusFacts): [string, Cell][] {
  if (endedAt === null || exit === null) return [];
  return [["ended", `${minute(endedAt)} UTC as ${exit} (exit ${exitCode(exit as ExitName)})`]];
}

function holderText({ holder, alive }: StatusFacts): [string, Cell][] {
  if (holder === null) return [];
  const who = `process ${holder.pid} on ${holder.host}, since ${minute(holder.since)} UTC`;
  return [["held by", `${who}${alive ? "" : ", for another run"}`]];
}

function troubleText({ state, rowNumber, rowId, reason, evidence, nextAt }: Trouble): [string, Cell] {
  const text = [
    `row ${rowNumber} (${rowId}): ${shortText(reason, reasonCharactersMax)}`,
    ...(evidence === null ? [] : [evidenceText(evidence)]),
    ...(nextAt === null ? [] : [`next look ${nextLookText(nextAt)}`]),
  ].join("; ");
  return [state, { text, tone: tones[state] ?? "warning" }];
}
