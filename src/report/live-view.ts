import { isAbsolute, join } from "node:path";
import { wantedItems } from "../core/item.js";
import type { Window } from "../core/quota/quota.js";
import type { News, TroubleGroup } from "../store/workspace/news.js";
import { count } from "../text/amounts.js";
import { someOf } from "../text/reasons.js";
import { paint, type Tone } from "../text/table.js";
import {
  cutStartToWidth,
  cutToWidth,
  fileLink,
  shortText,
  terminalText,
  textWidth,
} from "../text/terminal.js";
import type { TerminalStyle } from "../text/terminal-style.js";
import { statusCommand } from "../workspace/find-run.js";
import { shownPath } from "./problem-text.js";
import { type ProgressNow, reasonNow, spentText, times } from "./progress.js";
import { countedStates, orderedStates } from "./state-words.js";

/** What the live view shows of a run. */
export interface LiveFacts extends ProgressNow, News {
  run: number;
  sandbox: boolean;
  job: string;
  /** Of the run's files. */
  folder: string;
  /** The folder that files are named from. */
  cwd: string;
}

/** The look of the terminal and its size. */
export interface LiveStyle extends TerminalStyle {
  width: number;
  /** The terminal's lines; if there are too few, the least important lines are left out. */
  height: number;
}

/** A line with the rank of its importance: the highest rank is left out first. */
interface Line {
  rank: number;
  text: string;
}

/** A part of a whole, drawn as a bar, and the same in words. */
interface Share {
  label: string;
  part: number;
  /** 0 if nothing limits it; then there is no bar. */
  whole: number;
  text: string;
  tone: Tone;
  rank: number;
}

const besidesArchived = orderedStates.filter((state) => state !== "archived" && state !== "dropped");
const labelWidth = 12;
const gap = 2;
const columnGap = 4;
const barMin = 8;
const barMax = 40;
/** From this width on, the quotas stand beside the items and the credits. */
const besideMin = 120;
/** A window that is fuller than this is shown as a warning. */
const fullShare = 0.9;
const reasonsMax = 4;
/** Characters of a reason that may be shown; the rest of a longer text is not read. */
const reasonCharactersMax = 400;

/** A run in progress on a few lines, none of them wider than the terminal. */
export function liveView(facts: LiveFacts, style: LiveStyle): string[] {
  const title = cutToWidth(`${terminalText(facts.job)}, run ${facts.run}`, style.width);
  const time = ` · ${times(facts)}`;
  const hasTime = textWidth(title) + textWidth(time) <= style.width;
  const lines: Line[] = [
    { rank: 0, text: paint(title, "strong", style) + (hasTime ? paint(time, "dim", style) : "") },
    ...bars(facts, style),
    row("items", fitting(countedStates(facts.counts, besidesArchived), style.width - labelWidth), 3, style),
    newest(facts, style),
    ...troubles(facts, style),
    row("to approve", approvalText(facts.awaiting), 1, style, "warning"),
    ...reasonNow(facts).map((text) => row("now", text, 1, style)),
  ].filter(({ text }) => text !== "");
  const most = lines.map(({ rank }) => rank).toSorted((a, b) => a - b)[style.height - 1] ?? Infinity;
  const shown = lines.filter(({ rank }) => rank <= most).map(({ text }) => text);
  // An empty line separates the view from what is above it.
  return [...(shown.length < style.height ? [""] : []), ...shown.slice(0, style.height)];
}

/** As many of the pieces as fit, from the first on. */
function fitting(pieces: readonly string[], width: number): string {
  const fits = (number: number) => textWidth(pieces.slice(0, number).join(", ")) <= width;
  const most = pieces.findLastIndex((_, index) => fits(index + 1));
  return pieces.slice(0, Math.max(1, most + 1)).join(", ");
}

/** A label and its text, cut to the width; nothing without a text. */
function row(label: string, text: string, rank: number, style: LiveStyle, tone: Tone | null = null): Line {
  if (text === "") return { rank, text };
  const shown = cutToWidth(text, style.width - labelWidth);
  return { rank, text: label.padEnd(labelWidth) + (tone === null ? shown : paint(shown, tone, style)) };
}

function bars(facts: LiveFacts, style: LiveStyle): Line[] {
  const { counts, quota } = facts;
  const items = wantedItems(counts);
  const archived: Share = {
    label: "archived",
    part: counts.archived,
    whole: items,
    text: `${counts.archived} of ${count(items, "item")}`,
    tone: "good",
    rank: 0,
  };
  const own = [archived, ...creditsShare(facts)];
  const quotas = [...quotaShare("minute", quota.minute), ...quotaShare("day", quota.day)];
  if (style.width < besideMin || quotas.length === 0) return drawn([...own, ...quotas], style);
  const half = { ...style, width: Math.floor((style.width - columnGap) / 2) };
  const [left, right] = [drawn(own, half), drawn(quotas, half)];
  const start = Math.max(...left.map(({ text }) => textWidth(text))) + columnGap;
  return left.map(({ rank, text }, index) => {
    const beside = right[index]?.text;
    if (beside === undefined) return { rank, text };
    return { rank, text: text + " ".repeat(start - textWidth(text)) + beside };
  });
}

function creditsShare(facts: LiveFacts): Share[] {
  const { spent, cap } = facts;
  if (cap === null && spent === 0) return [];
  const whole = Math.max(0, cap ?? 0);
  return [{ label: "credits", part: spent, whole, text: spentText(facts), tone: "strong", rank: 2 }];
}

function quotaShare(label: string, { used, limit }: Window): Share[] {
  if (limit === null) return [];
  const tone = used > fullShare * limit ? "warning" : "strong";
  return [{ label, part: used, whole: limit, text: `${used} of ${limit} requests`, tone, rank: 5 }];
}

/** Each share with a bar of the same length, or without one if there is no room for it. */
function drawn(shares: readonly Share[], style: LiveStyle): Line[] {
  const widest = Math.max(...shares.map(({ text }) => textWidth(text)));
  const length = Math.min(barMax, style.width - labelWidth - gap - widest);
  return shares.map((share) => {
    const { label, text, rank } = share;
    const hasBar = share.whole > 0 && length >= barMin;
    const bar = hasBar ? `${barOf(share, length, style)}${" ".repeat(gap)}` : "";
    return { rank, text: label.padEnd(labelWidth) + bar + cutToWidth(text, style.width - labelWidth) };
  });
}

/** Full only when everything is done, and not empty once anything is done. */
function barOf({ part, whole, tone }: Share, length: number, style: LiveStyle): string {
  const share = Math.max(0, Math.min(1, part / whole));
  const full = share === 1 ? length : Math.min(length - 1, Math.ceil(share * length));
  return paint("━".repeat(full), tone, style) + paint("─".repeat(length - full), "dim", style);
}

function newest({ newestFile, folder, cwd }: LiveFacts, style: LiveStyle): Line {
  if (newestFile === null) return { rank: 4, text: "" };
  const path = isAbsolute(folder) ? join(folder, newestFile) : `${folder}/${newestFile}`;
  const shown = cutStartToWidth(terminalText(shownPath(path, cwd)), style.width - labelWidth);
  return {
    rank: 4,
    text: "newest".padEnd(labelWidth) + (style.links === true ? fileLink(shown, path) : shown),
  };
}

const tones: Readonly<Record<TroubleGroup["state"], Tone>> = {
  failed: "bad",
  held: "warning",
  unknown: "warning",
  overdue: "warning",
};

/** What failed and what waits for a person, each with why; the largest groups first. */
function troubles({ trouble: groups, run, sandbox }: LiveFacts, style: LiveStyle): Line[] {
  const states = Object.keys(tones) as TroubleGroup["state"][];
  const inOrder = states.flatMap((state) => groups.filter((group) => group.state === state));
  const shown = inOrder.length > reasonsMax ? inOrder.slice(0, reasonsMax - 1) : inOrder;
  const others = inOrder.slice(shown.length).reduce((sum, { items }) => sum + items, 0);
  const lines = shown.map((group) => {
    const text = troubleText(group, style.width - labelWidth);
    return row(group.state, text, 1, style, tones[group.state]);
  });
  const status = statusCommand({ id: run, options: { sandbox } });
  const rest = others === 0 ? "" : `${others} more for other reasons: \`${status}\` lists them`;
  return [...lines, row("", rest, 3, style)];
}

function approvalText({ items, rowIds }: LiveFacts["awaiting"]): string {
  return items === 0 ? "" : `${items} waiting for your approval (${someOf(rowIds, items)})`;
}

/** Fewer columns than these say too little of a reason. */
const reasonMin = 20;

/** How many, why, and which; of a long reason the end is left out, not the first item. */
function troubleText({ state, kind, note, items, rowIds }: TroubleGroup, width: number): string {
  const why = shortText((note ?? "no reason is known").slice(0, reasonCharactersMax), reasonCharactersMax);
  const waits = state === "held" ? "waiting for your decision: " : "";
  const reason = `${items} × ${waits}${state === "failed" && kind !== null ? `${kind}: ` : ""}${why}`;
  const ids = rowIds.map((id) => id.slice(0, reasonCharactersMax));
  const all = `${reason} (${someOf(ids, items)})`;
  const which = ` (${someOf(ids.slice(0, 1), items)})`;
  const room = width - textWidth(which);
  return textWidth(all) <= width || room < reasonMin ? all : cutToWidth(reason, room) + which;
}
