import { type Credits, minus, noCredits, priceText, showCredits, sumOf } from "../core/money.js";
import type { ChangedRow, PlannedItem, PlannedState, VanishedItem } from "../core/ports/draft.js";
import { digestOf } from "../core/problem.js";
import type { Finding, Plan } from "../plan/plan.js";
import { count, fileSize } from "../text/amounts.js";
import { firstOf, type Listing } from "../text/listing.js";
import { someOf } from "../text/reasons.js";
import { type Cell, labelled, paint, type Tone, table } from "../text/table.js";
import { shortText, terminalText } from "../text/terminal.js";
import { plainStyle, type TerminalStyle } from "../text/terminal-style.js";
import { timeText } from "./forecast.js";
import { problemsText, shownPath } from "./problem-text.js";
import { stateWords } from "./state-words.js";

/** The shown part of a plan. Without an earlier run there is no comparison. */
type ShownPlan = Pick<
  Plan,
  | "job"
  | "file"
  | "edition"
  | "models"
  | "money"
  | "requests"
  | "files"
  | "states"
  | "problems"
  | "blockers"
  | "warnings"
  | "notes"
> &
  Partial<Pick<Plan, "changed" | "vanished" | "renamed" | "restored" | "selection">>;

type ShownRow = Pick<PlannedItem, "rowNumber" | "rowId" | "model" | "prompt" | "price" | "state">;

/** Characters of a prompt that a table shows, and lines of one list. */
const promptCharactersMax = 120;
const linesMax = 20;

/**
 * What `bulkgen plan` prints: models and prices, credits, requests, and everything that is wrong. Files are named as
 * seen from `folder`, if that is shorter. Blockers that do not refuse the run are warnings.
 */
export function planText(
  plan: ShownPlan,
  folder: string,
  style: TerminalStyle = plainStyle,
  refusals: readonly Finding[] = plan.blockers,
): string {
  const edition = plan.edition === "" ? "" : `, edition ${plan.edition}`;
  const passed = plan.blockers.filter((each) => !refusals.includes(each));
  const facts: [string, Cell][] = [
    ...selected(plan),
    ["items", states(plan)],
    ["credits", creditsText(plan)],
    ...timeOf(plan),
    ["requests", requestsText(plan)],
    ...files(plan),
  ];
  const blocks = [
    paint(terminalText(`${plan.job} (${shownPath(plan.file, folder)}${edition})`), "strong", style),
    plan.models.length === 0 ? "" : modelCosts(plan, style),
    labelled(facts, style),
    listed("Changed", changes(plan), "dim", style),
    plan.problems.length === 0
      ? ""
      : `${paint("Problems:", "bad", style)}\n${problemsText(digestOf(plan.problems), folder)}`,
    listed("Blocked by", messages(refusals), "bad", style),
    listed("Warnings", messages([...passed, ...plan.warnings]), "warning", style),
    listed("Notes", plan.notes, "dim", style),
  ];
  return blocks.filter((block) => block !== "").join("\n\n");
}

/** What `bulkgen plan --rows` adds: one line for each item. */
export function rowsTable(rows: Iterable<ShownRow>, style: TerminalStyle = plainStyle): string {
  return table(
    [
      { title: "row", align: "right" },
      { title: "id" },
      { title: "model" },
      { title: "prompt", flexible: true },
      { title: "credits", align: "right" },
      { title: "state" },
    ],
    Array.from(rows, (row) => [
      row.rowNumber,
      row.rowId,
      row.model,
      shortText(row.prompt ?? "", promptCharactersMax),
      showCredits(row.price),
      row.state,
    ]),
    style,
  );
}

function modelCosts({ models }: ShownPlan, style: TerminalStyle): string {
  // Shows earlier charges beside the listed price.
  const isKnown = models.some(({ charged }) => charged !== null);
  const rows: Cell[][] = models.map((cost) => [
    cost.model,
    cost.category,
    cost.items,
    cost.due,
    showCredits(isKnown ? cost.base : cost.price),
    ...(isKnown ? [chargedText(cost.charged)] : []),
    showCredits(cost.credits),
  ]);
  const sum = (field: "items" | "due") => models.reduce((total, cost) => total + cost[field], 0);
  if (models.length > 1) {
    const blank = isKnown ? ["", ""] : [""];
    rows.push([
      "total",
      "",
      sum("items"),
      sum("due"),
      ...blank,
      showCredits(sumOf(models.map(({ credits }) => credits))),
    ]);
  }
  return table(
    [
      { title: "model" },
      { title: "category" },
      { title: "items", align: "right" },
      { title: "to make", align: "right" },
      { title: "each", align: "right" },
      ...(isKnown ? [{ title: "charged", align: "right" as const }] : []),
      { title: "credits", align: "right" },
    ],
    rows,
    style,
  );
}

function chargedText(charged: ShownPlan["models"][number]["charged"]): string {
  if (charged === null) return "";
  const { least, most } = charged;
  return least === most ? showCredits(most) : `${showCredits(least)}–${showCredits(most)}`;
}

/** The expected use of the disk, as far as it is known from earlier outputs. */
function files({ files: { files, bytes, unknown } }: ShownPlan): [string, Cell][] {
  if (files === 0) return [];
  const size =
    unknown.length === 0
      ? `about ${fileSize(bytes)}`
      : bytes === 0
        ? "size unknown until the first outputs arrive"
        : `about ${fileSize(bytes)}, not counting ${unknown.join(", ")} (no history yet)`;
  return [["files", `${count(files, "file")}, ${size}`]];
}

const plannedStateWords: Readonly<Record<PlannedState, string>> = { new: "new", ...stateWords };

function states(plan: ShownPlan): string {
  const known = Object.entries(plan.states).filter(([, number]) => (number ?? 0) > 0);
  return known.length === 0
    ? "none"
    : known.map(([state, number]) => `${number} ${plannedStateWords[state as PlannedState]}`).join(", ");
}

function selected({ selection }: ShownPlan): [string, Cell][] {
  if (!selection) return [];
  return [
    [
      "rows",
      `${selection.rows} of ${selection.of} selected (${selection.text}); the other rows are left unchanged`,
    ],
  ];
}

function creditsText({ money, states }: ShownPlan): Cell {
  const { needed, within, inDoubt, balance, after, maxCredits, spent } = money;
  const short = after !== null && after < 0;
  const unanswered = (states.submitting ?? 0) + (states.unknown ?? 0);
  const lost = `${count(unanswered, "request")} in doubt ${unanswered === 1 ? "was" : "were"} not charged`;
  const pieces = [
    `${showCredits(needed)} needed${within < needed ? `, ${showCredits(within)} within the caps` : ""}`,
    ...(unanswered === 0 ? [] : [`up to ${showCredits(inDoubt)} more if ${lost}`]),
    ...(balance === null
      ? ["balance not reported by the service"]
      : [`${showCredits(balance)} on the account`]),
    ...(after === null
      ? []
      : [short ? `${showCredits(minus(noCredits, after))} short` : `${showCredits(after)} after`]),
  ];
  if (maxCredits !== null)
    pieces.push(
      `cap ${showCredits(maxCredits)}${maxCredits === noCredits ? "" : `, ${showCredits(spent)} of it spent`}`,
    );
  const text = pieces.join(", ");
  return short ? { text, tone: "bad" } : text;
}

function timeOf({ requests: { forecast, finishAt } }: ShownPlan): [string, Cell][] {
  return forecast.requests === 0 ? [] : [["time", `about ${timeText(forecast, finishAt)}`]];
}

function requestsText({ requests: { forecast, plan, perMinute, perDay, lanes } }: ShownPlan): string {
  const limits = [
    perMinute === null ? "" : `${count(perMinute, "request")} a minute`,
    perDay === null ? "" : `${perDay} a day`,
  ].filter(Boolean);
  // Nothing else says how fast an unlimited plan is used.
  const atOnce = forecast.requests === 0 ? "" : `; up to ${count(lanes, "submit")} at once (--lanes)`;
  const allowed = limits.length === 0 ? `no limit${atOnce}` : limits.join(", ");
  const needed = forecast.requests === 0 ? "none" : `about ${forecast.requests}`;
  return `${needed}; ${plan === null ? "without a plan" : `plan ${plan}`}: ${allowed}`;
}

/** What has changed, as far as it is shown, and how many lines there are. */
function changes({ changed = [], vanished = [], renamed = [], restored = [] }: ShownPlan): Listing<string> {
  const lines = shownChanges({ changed, vanished, renamed, restored });
  const versions = vanished.length === 0 ? 0 : countOf(vanished, isOldVersion);
  const gone = vanished.length === 0 ? 0 : Math.min(1, countOf(vanished, isGone));
  const length = changed.length + restored.length + renamed.length + versions + gone;
  return { length, [Symbol.iterator]: () => lines };
}

function* shownChanges({
  changed,
  vanished,
  renamed,
  restored,
}: Required<Pick<ShownPlan, "changed" | "vanished" | "renamed" | "restored">>): Generator<string> {
  const shown = firstOf(changed, linesMax);
  const ids = new Set(shown.map(({ rowId }) => rowId));
  const replaced = new Set<string>();
  for (const { rowId, state, replacedBy } of shown.length === 0 ? [] : vanished)
    if (ids.has(rowId) && replacedBy !== null && state === "archived") replaced.add(rowId);
  for (const { rowNumber, rowId, fields } of shown) {
    const moved = replaced.has(rowId) ? "; the old file will move to _superseded/" : "";
    yield `row ${rowNumber} (${rowId}): ${fields.map(changeText).join(", ")}${moved}`;
  }
  for (const { rowNumber, rowId } of restored)
    yield `row ${rowNumber} (${rowId}): made before; its file is restored at no cost`;
  for (const { rowNumber, from, to } of renamed)
    yield `row ${rowNumber}: ${from} becomes ${to}; its file is renamed at no cost`;
  let all = 0;
  let archived = 0;
  const gone: string[] = [];
  for (const item of vanished) {
    if (isOldVersion(item)) yield `${item.rowId}: the row no longer asks for its archived version`;
    if (!isGone(item)) continue;
    all++;
    if (item.state === "archived") archived++;
    if (gone.length < linesMax) gone.push(item.rowId);
  }
  if (all > 0) yield goneText(gone, all, archived);
}

function changeText({ field, file }: ChangedRow["fields"][number]): string {
  return file === undefined ? field : `${field} (the content of ${file} has changed)`;
}

/** An item whose row went back to another version is shown only if something was made for it. */
function isOldVersion({ replacedBy, hasRow, state }: VanishedItem): boolean {
  return replacedBy === null && hasRow && state === "archived";
}

/** Its row was removed: neither changed nor renamed. */
function isGone({ replacedBy, hasRow }: VanishedItem): boolean {
  return replacedBy === null && !hasRow;
}

function goneText(rowIds: readonly string[], all: number, archived: number): string {
  const files =
    archived === 0 ? "" : all === 1 ? "; its file stays" : `; the files of ${archived} of them stay`;
  return all === 1
    ? `${rowIds[0]} is no longer in the manifest${files}`
    : `${all} items are no longer in the manifest (${someOf(rowIds, all)})${files}`;
}

function countOf<Thing>(things: Iterable<Thing>, wanted: (thing: Thing) => boolean): number {
  let count = 0;
  for (const thing of things) if (wanted(thing)) count++;
  return count;
}

function listed(title: string, lines: Listing<string>, tone: Tone, style: TerminalStyle): string {
  if (lines.length === 0) return "";
  const shown = firstOf(lines, linesMax).map((line) => `- ${terminalText(line)}`);
  const more = lines.length - shown.length;
  return [paint(`${title}:`, tone, style), ...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}

function messages(findings: readonly { message: string }[]): string[] {
  return findings.map((finding) => finding.message);
}

const itemsShown = 20;

/** The price of a retry or a redo: each item with its price, and the sum. */
export function offerText(
  what: string,
  items: readonly { rowId: string; price: Credits }[],
  sum: Credits,
): string {
  const lines = items
    .slice(0, itemsShown)
    .map(
      ({ rowId, price }) => `- ${terminalText(rowId)}${price === noCredits ? "" : `: ${showCredits(price)}`}`,
    );
  const more = items.length - lines.length;
  const total = `${count(items.length, "item")} to be ${what}, ${priceText(sum)}`;
  return [total, ...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
