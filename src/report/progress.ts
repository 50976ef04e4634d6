import type { ItemState } from "../core/item.js";
import { localTime } from "../core/local-time.js";
import { inCredits, showCredits } from "../core/money.js";
import type { Quota } from "../core/quota/quota.js";
import type { Outage } from "../run/gate/breaker.js";
import type { Progress } from "../run/loop.js";
import { count, wait } from "../text/amounts.js";
import { cutToWidth, terminalText, textWidth } from "../text/terminal.js";
import { countedStates, itemsOf } from "./state-words.js";

/** Where a run stands at `now` (UTC ms), so long after it began here. */
export type ProgressNow = Progress & { now: number; elapsedMs: number };

export type WaitReason = "minute" | "day" | "service";

/** A part of the line, and a shorter form for narrow terminals. */
interface Piece {
  text: string;
  short?: string;
}

const separator = " · ";

/** What is still to come, and then what went wrong. */
const inProgress: readonly ItemState[] = [
  "processing",
  "submitting",
  "ready",
  "planned",
  "blocked",
  "failed",
  "held",
  "unknown",
  "overdue",
];

/**
 * One line: `12/26 archived · 0:40, ~1:10 left · 48 of 104 credits · 8 at the service · 6 to submit`. Where it is wider
 * than `width`, the essential pieces are shortened, and of the others only those that fit are shown.
 */
export function progressLine(progress: ProgressNow, width = Number.POSITIVE_INFINITY): string {
  const { counts } = progress;
  const done = `${counts.archived}/${itemsOf(counts)}`;
  const essential = present([
    { text: `${done} archived`, short: done },
    ...obstacles(progress),
    { text: times(progress) },
    creditsPiece(progress),
  ]);
  const others = present(
    [...countedStates(counts, inProgress), requests(progress.quota)].map((text) => ({ text })),
  );
  const whole = essential.map(({ text }) => text);
  const pieces = lengthOf(whole) <= width ? whole : essential.map(({ text, short }) => short ?? text);
  const line: string[] = [];
  for (const text of [...pieces, ...others.map((piece) => piece.text)]) {
    if (lengthOf([...line, text]) <= width) line.push(text);
    else if (line.length === 1) line.push(...cutAtWord(text, width - lengthOf([...line, ""])));
  }
  return line.join(separator);
}

/** What keeps the run from going on, the most important first. */
export function obstacles(progress: ProgressNow): Piece[] {
  const { stops, diskTrouble, outage, hold, now } = progress;
  const [stop] = stops;
  if (stop) return [{ text: `stopping: ${terminalText(stop.message)}` }];
  if (diskTrouble !== null)
    return [
      {
        text: `waiting for the disk (nothing new is bought): ${terminalText(diskTrouble)}`,
        short: `waiting: ${terminalText(diskTrouble)}`,
      },
    ];
  if (outage !== null) return [outagePiece(outage, progress)];
  const wait = waitNow(progress);
  return [
    ...(hold === null ? [] : [{ text: holdLine(hold, now) }]),
    ...(wait === null ? [] : [waitPiece(wait.what, wait.until, now)]),
  ];
}

/** What the next request waits for, and until when (UTC ms). */
function waitNow({
  waiting,
  until,
  quota,
  counts,
  now,
}: ProgressNow): { what: WaitReason; until: number } | null {
  if (waiting !== null && waiting !== "tasks" && until !== null && until > now)
    return { what: waiting, until };
  const full = quota.minute.nextFreeAt > now && counts.planned + counts.processing > 0;
  return full ? { what: "minute", until: quota.minute.nextFreeAt } : null;
}

function waitPiece(what: WaitReason, until: number, now: number): Piece {
  return { text: waitingLine(what, until, now), short: `next in ${wait(until - now)}` };
}

/**
 * The time that has passed, and what is left of the forecast while anything is open: no less than the wait for the next
 * request.
 */
export function times(progress: ProgressNow): string {
  const { elapsedMs, forecastMs, counts, now } = progress;
  const isOpen = counts.submitting + counts.processing + counts.ready + counts.planned > 0;
  if (forecastMs === null || !isOpen) return clockText(elapsedMs);
  const waitMs = (waitNow(progress)?.until ?? now) - now;
  const left = Math.max(forecastMs - elapsedMs, waitMs);
  return left < 1_000 ? clockText(elapsedMs) : `${clockText(elapsedMs)}, ~${clockText(left)} left`;
}

/** `0:52`, `12:05`, `3:02:10`. */
function clockText(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  const two = (number: number) => `${number}`.padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  return hours === 0 ? `${minutes}:${two(seconds % 60)}` : `${hours}:${two(minutes)}:${two(seconds % 60)}`;
}

function creditsPiece({ spent, cap }: ProgressNow): Piece {
  // A run that only collects has no cap of its own to show, nor has one whose caps were used up before it began.
  if (cap === null || cap <= 0) return { text: spent === 0 ? "" : inCredits(spent) };
  return {
    text: `${showCredits(spent)} of ${inCredits(cap)}`,
    short: `${showCredits(spent)}/${inCredits(cap)}`,
  };
}

function present(pieces: readonly Piece[]): Piece[] {
  return pieces.filter(({ text }) => text !== "");
}

function lengthOf(pieces: readonly string[]): number {
  return textWidth(pieces.join(separator));
}

/** Fewer characters than that say nothing. */
const partMin = 4;

/**
 * The whole words that fit, with an ellipsis. Where they take less than half of the room, also a part of the next word:
 * not all languages have blanks between words.
 */
function cutAtWord(text: string, width: number): string[] {
  const fitting = cutToWidth(text, width).slice(0, -1);
  const end = text[fitting.length] === " " ? fitting.length : fitting.lastIndexOf(" ");
  const shown = end < fitting.length / 2 ? fitting : text.slice(0, end);
  return shown.length < partMin ? [] : [`${shown}…`];
}

function outagePiece({ since, reason }: Outage, { until, now }: ProgressNow): Piece {
  const from = localTime(since).slice("2026-11-20 ".length);
  const next = until === null ? "" : `, next try in ${wait(until - now)}`;
  const short = until === null ? "" : `, next try ${wait(until - now)}`;
  return {
    text: `service unreachable since ${from} (${terminalText(reason)})${next}`,
    short: `unreachable since ${from}${short}`,
  };
}

/** Why the next request is not sent yet, and for how long. */
export function waitingLine(what: WaitReason, until: number, now: number): string {
  const left = wait(until - now);
  switch (what) {
    case "minute":
      return `minute quota used up, next request in ${left}`;
    case "day":
      return `daily quota used up, next request in ${left}`;
    case "service":
      return `the service asked us to wait, next request in ${left}`;
  }
}

function holdLine({ unsettled, until }: NonNullable<ProgressNow["hold"]>, now: number): string {
  return `submitting is paused until ${count(unsettled, "lost answer is", "lost answers are")} settled, next check in ${wait(until - now)}`;
}

function requests({ minute }: Quota): string {
  return minute.limit === null ? "" : `${minute.used}/${minute.limit} requests this minute`;
}
