import { backoffMsMax } from "../again.js";
import { modelOfGroup } from "../identity.js";
import type { ItemState } from "../item.js";
import { type Credits, minus, noCredits, plus } from "../money.js";
import type { DurationEstimate } from "../pace/pace.js";
import { type OpenTask, pollAt, recommendedAt } from "../pace/poll.js";
import {
  certainty,
  isTail,
  type PollProfile,
  pressureOf,
  unhurried,
  type WaitingWork,
  type Work,
} from "../pace/pressure.js";
import {
  dayMs,
  freeInWindows,
  freeSlots,
  minuteMs,
  nextSendAt,
  owedRequests,
  type Quota,
  slotsLeft,
  slotsWithin,
  waitsFor as waitReason,
} from "../quota/quota.js";
import type { WaitReason } from "../reason.js";
import { isOpen, type StepKind, type Stop } from "../stop.js";

/** What must not be submitted for now: parked models, and items planned at an outdated price. */
export interface Parked {
  models: readonly string[];
  prices: readonly PlannedPrice[];
}

/** Items of one price group (`priceGroup`) that were planned at the same price. */
export interface PlannedPrice {
  group: string;
  price: Credits;
}

/** The items of a run planned at that price, and how many of them are still planned. */
export interface RunGroup extends PlannedPrice {
  model: string;
  category: string;
  planned: number;
  /** The highest charge for an item of the group in any run of the workspace; null if there was none. */
  charged: Credits | null;
}

/** The planned items of one price group that have the same priority. */
export interface Head {
  group: string;
  priority: number;
}

export interface WaitingGroup extends Head {
  items: number;
  credits: Credits;
}

export interface Due {
  counts: Record<ItemState, number>;
  planned: PlannedSubmit[];
  /** Tasks to poll: unfinished ones, and ready items whose URLs have expired. */
  tasks: OpenTask[];
  ready: { id: number; nextAt: number; fetchBy: number }[];
  /** Ready items that wait for a poll of their task. */
  expired: number;
  /** Planned items that are parked. */
  parked: number;
}

/** Which tasks to poll now, which later, and the slots that are kept for those. */
export interface DuePolls {
  /** Items whose poll is due, the most promising first. */
  due: number[];
  /** When the others are due (UTC ms), soonest first. */
  later: number[];
  /** How far ahead slots are kept for them. */
  holdMs: number;
  /** Every useful poll is made: more slots would not lead to more polls. */
  isPlenty: boolean;
  isTail: boolean;
}

/** A model without results is polled early, at this chance; it counts as known after so many results. */
const scoutThreshold = 0.6;
const scoutsUntil = 3;

export function duePolls(view: View): DuePolls {
  if (!isOpen("poll", view.stops)) return { due: [], later: [], holdMs: 0, isPlenty: true, isTail: false };
  const work = workOf(view);
  const pressure = pressureOf(work, view.profile);
  const scouts = pressure.most > scoutThreshold ? scoutsOf(view, scoutsUntil) : new Set();
  // With nothing left to submit and enough slots, the run would only wait for an unknown model.
  const last = pressure.isPlenty && work.waiting.length === 0 ? scoutsOf(view, 1) : new Set();
  const due: { id: number; chance: number; isAwaited: boolean }[] = [];
  const later: number[] = [];
  for (const task of view.tasks) {
    if (view.busy.has(task.id)) continue;
    const pace = view.pace(task.group);
    const isScout = scouts.has(task.id) || (isFollowed(task) && pace.finished < scoutsUntil);
    const wanted = isScout
      ? scoutThreshold
      : certainty(isFollowed(task) ? unhurried(pressure) : pressure, pace);
    const { at: likely, chance } = pollAt(task, pace, wanted, view.now);
    const soonest = last.has(task.id) ? Math.min(likely, recommendedAt(task)) : likely;
    const at = pressure.isShort && task.kind === "overdue" ? putOff(task) : soonest;
    if (isDue({ nextAt: at }, view.now, putOffMsMax))
      due.push({ id: task.id, chance, isAwaited: task.kind === "expired" });
    else later.push(at);
  }
  // A task known to be finished only waits for its URLs.
  due.sort((a, b) => Number(b.isAwaited) - Number(a.isAwaited) || b.chance - a.chance);
  return {
    due: due.map(({ id }) => id),
    later: later.sort((a, b) => a - b),
    holdMs: pressure.holdMs,
    isPlenty: pressure.isPlenty,
    isTail: isTail(work),
  };
}

/** The run does not wait for a task behind which others wait at the provider, so its poll can wait until it succeeds. */
function isFollowed({ turn }: OpenTask): boolean {
  return turn?.isLast === false;
}

/** How many times as long an overdue task waits while slots are short, and the longest that this adds (ms). */
const putOffTimes = 8;
const putOffLongestMs = 3_600_000;

/** An overdue task is postponed while slots are short: the run cannot end before the others anyway. */
function putOff({ nextAt, seenAt }: OpenTask): number {
  if (seenAt === null || seenAt > nextAt) return nextAt;
  return nextAt + Math.min(putOffLongestMs, (putOffTimes - 1) * (nextAt - seenAt));
}

function workOf(view: View): Work {
  const { tasks, quota, now, pace } = view;
  return { tasks, waiting: isOpen("submit", view.stops) ? view.waiting : [], quota, now, pace };
}

/** The oldest task of each model with fewer results than that: its result tells when to poll the others. */
function scoutsOf(view: View, results: number): Set<number> {
  const oldest = new Map<string, OpenTask>();
  for (const task of view.tasks) {
    if (task.kind !== "processing" || view.pace(task.group).finished >= results) continue;
    const known = oldest.get(task.group);
    if (!known || task.since < known.since) oldest.set(task.group, task);
  }
  return new Set([...oldest.values()].map(({ id }) => id));
}

/** Free slots that polls will need before more slots come free. */
export function slotsReserved(
  view: View,
  { later, holdMs }: DuePolls,
  free: number,
  unserved: number,
): number {
  if (free === Number.POSITIVE_INFINITY) return 0;
  const soon = later.filter((at) => at <= view.now + holdMs);
  const slots = slotsWithin(
    view.quota,
    view.now,
    soon.map((at) => at - view.now),
  );
  // The n-th poll from now must find a slot when it is due, whatever is submitted now.
  let kept = unserved;
  for (const [index, within] of slots.entries()) {
    const released = within - free;
    kept = Math.max(kept, unserved + index + 1 - Math.max(0, released));
  }
  return kept;
}

/** No poll is postponed for longer than this. */
const putOffMsMax = 30 * dayMs;

/** Whether a poll is due. A time further ahead than any poll is postponed was set before the clock was set back. */
export function isDue({ nextAt }: { nextAt: number }, now: number, longestMs: number): boolean {
  return nextAt <= now || nextAt > now + longestMs;
}

/**
 * What to do next. The input is what is due, the gate's terms, the quota and how much may run at once; the result is
 * the steps that can start now, and when to ask again. It neither waits nor starts anything. The gate of src/run
 * decides beforehand whether anything may be bought at all.
 */
export interface View {
  now: number;
  /** Items to submit. The heads of each group's list are enough. */
  planned: readonly PlannedSubmit[];
  /** All planned items that may be submitted, counted by group. */
  waiting: readonly WaitingWork[];
  /** Submit in the manifest's order, because the plan said which rows the credits cover. */
  inOrder: boolean;
  /** All tasks to poll. */
  tasks: readonly OpenTask[];
  /** Outputs to download, with their deadlines. */
  ready: readonly { id: number; nextAt: number; fetchBy: number }[];
  /** Ready items that wait for a poll, because their URLs have expired. */
  expired: number;
  /** Planned items that must not be submitted in this run: their model or their price is in doubt. */
  parked: number;
  counts: Readonly<Record<ItemState, number>>;
  /** Items that a step is working on. */
  busy: ReadonlySet<number>;
  quota: Quota;
  /** How long generations of a price group take. */
  pace(group: string): DurationEstimate;
  /** How eagerly to poll; null decides by the scarcest resource. */
  profile: PollProfile | null;
  /** The gate allows no submit now; polls and downloads continue. */
  holdsBack: boolean;
  /** Parents whose URLs have expired and which a blocked item waits for: a poll gets new ones. */
  renewals: readonly { id: number; nextAt: number }[];
  /** What may start now. `quota` already counts the slots of requests in flight. */
  free: Readonly<Record<StepKind, number>>;
  stops: readonly Stop[];
  /** Credits that are or may be spent: charged, in flight, unknown, held. */
  committed: Credits;
  /** The most that may be committed, or null. */
  cap: Credits | null;
  /** The remaining budget of models with a cap of their own. */
  modelBudgets?: ReadonlyMap<string, Credits>;
  /** Overdue tasks keep the run open. */
  awaitsOverdue: boolean;
  /** Unanswered requests that are being settled keep the run open. */
  awaitsSettling: boolean;
}

export interface PlannedSubmit {
  id: number;
  price: Credits;
  nextAt: number;
  group: string;
  priority: number;
  position: number;
}

export interface NextStep {
  do: StepKind;
  item: number;
}

export interface Decision {
  steps: NextStep[];
  /** When to ask again if nothing happens (UTC ms); null if only the end of a step can change anything. */
  wakeAt: number | null;
  /** Nothing is left to do for this run. */
  done: boolean;
  /** The credit cap covers no further submit. */
  capped: boolean;
  /** Models whose next item does not fit under their own cap. */
  cappedModels: readonly string[];
  /** What the next request waits for, and until when (UTC ms); null if none is due before it may be sent. */
  shortage: Shortage | null;
  /** Nothing is being done, and nothing is begun. */
  isIdle: boolean;
}

/** Decides on one view. Pure: the same view gives the same decision. */
export function next(view: View): Decision {
  const polls = duePolls(view);
  const submits = dueSubmits(view);
  const slots = freeSlots(view.quota, view.now);
  const buying = view.holdsBack ? [] : submits.items.map((item) => ({ do: "submit" as const, item }));
  const chosen = choose(view, polls, [...buying, ...dueRenewals(view)], slots);
  const steps = [...downloads(view), ...chosen.steps];
  const slotAt = nextSendAt(view.quota, view.now, chosen.steps.length);
  const wanted = submits.items.length + dueRenewals(view).length;
  const unserved = polls.due.length + wanted > chosen.steps.length;
  const short = shortage(view, { polls, submits: wanted, unserved, slots, slotAt }, chosen);
  return {
    steps,
    wakeAt: wakeTime(view, polls, { short, unserved, slotAt }),
    done: isDone(view, steps),
    capped: submits.capped,
    cappedModels: submits.cappedModels,
    shortage: short,
    isIdle: steps.length === 0 && view.busy.size === 0,
  };
}

/** Why a request cannot be made when it is due: no slot in the quota, or the rest of the day is owed to open tasks. */
export interface Shortage {
  kind: WaitReason;
  until: number;
}

interface Wants {
  polls: DuePolls;
  submits: number;
  /** Something is due but was not started. */
  unserved: boolean;
  slots: number;
  slotAt: number;
}

function shortage(
  view: View,
  { polls, submits, unserved, slots, slotAt }: Wants,
  { steps, room }: { steps: readonly NextStep[]; room: number },
): Shortage | null {
  const { quota, now } = view;
  if (slots - steps.length < 1) {
    const isShort = unserved || soonest(view, polls) < slotAt;
    return isShort ? { kind: waitReason(quota, now, steps.length), until: slotAt } : null;
  }
  if (!(unserved && submits > 0 && room < 1)) return null;
  return { kind: "reserve", until: quota.day.nextReleaseAt ?? now + minuteMs };
}

/** When the next request becomes due (UTC ms). */
function soonest(view: View, { later: [firstPoll] }: DuePolls): number {
  const submits = isOpen("submit", view.stops) ? future(view, [...view.planned, ...view.renewals]) : [];
  return Math.min(...(firstPoll === undefined ? [] : [firstPoll]), ...submits);
}

/** Polls and submits for the free slots, and how many submits the day's requests allow. */
function choose(
  view: View,
  polls: DuePolls,
  submits: readonly NextStep[],
  slots: number,
): { steps: NextStep[]; room: number } {
  const starting = polls.due.slice(0, Math.min(slotsForPolls(view, polls, submits, slots), view.free.poll));
  const free = slots - starting.length;
  const room = Math.max(0, dayRoom(view, starting.length));
  const kept = polls.isTail ? 0 : slotsReserved(view, polls, free, polls.due.length - starting.length);
  const sent = submits.slice(0, Math.max(0, Math.min(free - kept, view.free.submit, room)));
  return {
    steps: [...starting.map((item) => ({ do: "poll" as const, item })), ...sent],
    room,
  };
}

/**
 * At the end of a run the submits go first, and slots are reserved for submits that wait for a lane. A submit that the
 * day's requests do not allow reserves no slot, because the slot would stay unused.
 */
function slotsForPolls(
  view: View,
  { isTail }: DuePolls,
  submits: readonly NextStep[],
  slots: number,
): number {
  if (!isTail) return slots;
  const going = Math.min(submits.length, Math.max(0, dayRoom(view, 0)));
  const now = Math.min(going, view.free.submit);
  return Math.max(0, Math.min(slots - now, freeInWindows(view.quota) - going));
}

/** URLs that expire first come first; URLs that seem to have expired are tried last. */
function downloads(view: View): NextStep[] {
  if (!isOpen("download", view.stops)) return [];
  const isOver = ({ fetchBy }: { fetchBy: number }) => fetchBy <= view.now;
  return idle(view, view.ready)
    .toSorted((a, b) => Number(isOver(a)) - Number(isOver(b)) || a.fetchBy - b.fetchBy)
    .slice(0, view.free.download)
    .map((item) => ({ do: "download" as const, item: item.id }));
}

/** With this many finished tasks not archived, nothing more is bought, because their URLs expire. */
export const unsavedMax = 50;

/** Planned items whose price still fits under the cap, in order; the first that does not fit ends the list. */
function dueSubmits(view: View): { items: number[]; capped: boolean; cappedModels: string[] } {
  const chosen = { items: [] as number[], capped: false, cappedModels: [] as string[] };
  if (!isOpen("submit", view.stops) || view.counts.ready >= unsavedMax) return chosen;
  const rooms = new Map(view.modelBudgets);
  const begun = new Set<string>();
  let committed = view.committed;
  for (const item of idle(view, ordered(view))) {
    const model = rooms.size > 0 ? modelOfGroup(item.group) : "";
    const room = rooms.get(model);
    // A model at its own cap is left out, and the others continue.
    if (room !== undefined && item.price > room) {
      if (!begun.has(model) && !chosen.cappedModels.includes(model)) chosen.cappedModels.push(model);
      rooms.set(model, noCredits);
      continue;
    }
    committed = plus(committed, item.price);
    if (view.cap !== null && committed > view.cap) return { ...chosen, capped: chosen.items.length === 0 };
    if (room !== undefined) rooms.set(model, minus(room, item.price));
    begun.add(model);
    chosen.items.push(item.id);
  }
  return chosen;
}

/**
 * Polls for the URLs that blocked items wait for, after all that may be submitted now: a URL is not renewed sooner than
 * it can be used. Each is one request more than the day's requests owe to open tasks, so it needs room like a submit.
 */
function dueRenewals(view: View): NextStep[] {
  if (!isOpen("submit", view.stops)) return [];
  // A download or a poll of its own comes first, and renews them too.
  const others = new Set([...view.ready, ...view.tasks].map(({ id }) => id));
  return idle(view, view.renewals).flatMap(({ id }) => (others.has(id) ? [] : { do: "poll", item: id }));
}

/**
 * By priority, and within one the longest generations first: a long generation that starts late delays the end of the
 * run. If the credits do not cover all items, in the manifest's order.
 */
function ordered(view: View): PlannedSubmit[] {
  const lengthOf = (item: PlannedSubmit) => (view.inOrder ? 0 : view.pace(item.group).mean);
  return view.planned.toSorted(
    (a, b) => b.priority - a.priority || lengthOf(b) - lengthOf(a) || a.position - b.position,
  );
}

/** The share of polls that are expected to find a task unfinished while the day runs out. */
const missed = 1 / 16;

/** A submit must leave one request of the day for each task that then has to be collected, two for each unknown. */
function dayRoom(view: View, polls: number): number {
  const { quota, counts } = view;
  const owed = owedRequests(counts) + quota.owedElsewhere;
  // Some polls will find their task unfinished: those about to start, and some later.
  const spare = polls + Math.ceil(missed * owed);
  // Each submit uses one request and owes one more.
  return Math.floor((slotsLeft(quota.day) - spare - owed) / 2);
}

/** Items to submit or download that are due and not in progress. */
function idle<Item extends { id: number; nextAt: number }>(view: View, items: readonly Item[]): Item[] {
  return items.filter((item) => isDue(item, view.now, backoffMsMax) && !view.busy.has(item.id));
}

function wakeTime(
  view: View,
  polls: DuePolls,
  { short, unserved, slotAt }: { short: Shortage | null; unserved: boolean; slotAt: number },
): number | null {
  const [release] = view.quota.releases;
  const mayUseSlot = polls.later.length > 0 && (unserved || !polls.isPlenty);
  const requests = [
    soonest(view, polls),
    ...(mayUseSlot && release !== undefined ? [release] : []),
    ...(short !== null && short.kind !== "reserve" ? [slotAt] : []),
  ];
  const at = Math.min(
    // An item due before a slot is free waits for the slot.
    Math.max(slotAt, Math.min(...requests)),
    ...(isOpen("download", view.stops) ? future(view, view.ready) : []),
    ...(short?.kind === "reserve" ? [short.until] : []),
  );
  return at === Number.POSITIVE_INFINITY ? null : at;
}

function future(view: View, items: readonly { nextAt: number }[]): number[] {
  const times = items.map((item) => item.nextAt).filter((at) => at > view.now);
  return times.length === 0 ? [] : [Math.min(...times)];
}

function isDone(view: View, steps: readonly NextStep[]): boolean {
  if (steps.length > 0 || view.busy.size > 0) return false;
  if (view.awaitsSettling && isOpen("poll", view.stops)) return false;
  return !hasWork(view) && !(view.awaitsOverdue && view.counts.overdue > 0 && isOpen("poll", view.stops));
}

/** Whether anything but overdue tasks keeps the run open. */
export function hasWork({
  counts,
  parked,
  expired,
  renewals,
  stops,
}: Pick<View, "counts" | "parked" | "expired" | "renewals" | "stops">): boolean {
  const waitsFor = (step: StepKind, count: number) => count > 0 && isOpen(step, stops);
  return (
    waitsFor("submit", counts.planned - parked) ||
    waitsFor("submit", renewals.length) ||
    waitsFor("poll", counts.processing + expired) ||
    waitsFor("download", counts.ready - expired)
  );
}
