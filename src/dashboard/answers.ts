import { join } from "node:path";
import { jobFolder } from "../archive/disk/names.js";
import type { Clock } from "../clock.js";
import { type Credits, toNumber } from "../core/money.js";
import type { ItemDocument } from "../documents/item.js";
import type {
  FilePage,
  HeldEvidence,
  ItemPage,
  ItemStory,
  RunDetail,
  RunPage,
  ShownFile,
  ShownItem,
  WaitingPage,
} from "../documents/page.js";
import type {
  BrowsedFile,
  BrowsedRun,
  Browser,
  WaitingKind,
  WantedFiles,
  WantedItems,
} from "../store/browse/browser.js";
import { fileDocument, runDocument } from "../workspace/browsed.js";
import type { Evidence } from "../workspace/evidence.js";
import { isUnfinished } from "../workspace/find-run.js";
import { openNews } from "../workspace/state.js";
import type { Workspace } from "../workspace/workspace.js";
import type { Guard } from "./guard.js";
import { Refused } from "./refused.js";

/** What is read of the workspace, in the shapes of the page. */
export interface Reading {
  browser: Browser;
  guard: Guard;
  workspace: Workspace;
  clock: Clock;
  /** The run that a process works on now. */
  alive: number | null;
}

const runsShown = 50;
const waitingShown = 200;

export async function runPage({ browser, alive }: Reading, before: number | null): Promise<RunPage> {
  const runs = await browser.runs(before, runsShown);
  return {
    runs: runs.map((run) => runDocument(run, alive)),
    older: runs.length === runsShown ? (runs.at(-1)?.run ?? null) : null,
  };
}

export async function runDetail(
  { browser, alive, workspace, clock }: Reading,
  id: number,
): Promise<RunDetail> {
  const run = await runOf(browser, id);
  const news = await openNews(workspace, id, clock);
  try {
    return {
      ...runDocument(run, alive),
      canResume: alive !== id && isOpen(run),
      trouble: (await news.read()).trouble.map((group) => ({ ...group, rowIds: [...group.rowIds] })),
    };
  } finally {
    await news.close();
  }
}

/** Rejects with Refused if the run does not exist, for example because it was deleted in the meantime. */
export async function runOf(browser: Browser, id: number): Promise<BrowsedRun> {
  const run = await browser.run(id);
  if (run === null) throw new Refused(`there is no run ${id} in this workspace`, "missing");
  return run;
}

function isOpen({ state, counts }: BrowsedRun): boolean {
  const { submitting = 0, processing = 0, ready = 0, overdue = 0, unknown = 0 } = counts;
  return isUnfinished({ state, owes: submitting + processing + ready + overdue + unknown > 0 });
}

export async function itemPage(reading: Reading, wanted: WantedItems): Promise<ItemPage> {
  await runOf(reading.browser, wanted.runId);
  const { items, total } = await reading.browser.items(wanted);
  return { items: items.map((item) => itemEntry(reading, item)), total };
}

function itemEntry(reading: Reading, item: ItemDocument): ShownItem {
  return { ...item, ...shownBy(reading, item) };
}

/** Where the page finds an item's first file. */
function shownBy({ guard }: Reading, item: ItemDocument): Pick<ShownItem, "src" | "thumbnail"> {
  const src = item.files > 0 ? guard.fileAddress(item.id, 1) : null;
  return { src, thumbnail: thumbnailOf(src, item.mime) };
}

function thumbnailOf(src: string | null, mime: string | null): string | null {
  return src !== null && mime?.startsWith("image/") === true ? `${src}?small` : null;
}

/**
 * The run and the item's short key: row ids may be the same in several runs. An item that is in no run any more is named
 * by its task, because an item of another job may have the same key.
 */
function nameOf({ run, key }: Pick<ItemDocument, "run" | "key">, taskId: string | null | undefined): string {
  const short = key.slice(key.indexOf(":") + 1).slice(0, 10);
  return run === null ? (taskId ?? short) : `${run}:${short}`;
}

export async function itemStory(reading: Reading, id: number): Promise<ItemStory> {
  const story = await reading.browser.story(id);
  if (story === null) throw new Refused("there is no such item in this workspace", "missing");
  const { item, attempts, files } = story;
  return {
    ...story,
    item: { ...item, ...shownBy(reading, item) },
    files: files.map((file) => fileEntry(reading, file)),
    evidence: evidenceOf(item, attempts.at(-1)),
    name: nameOf(item, attempts.findLast((attempt) => attempt.taskId !== null)?.taskId),
  };
}

function evidenceOf({ state }: ItemDocument, attempt: Evidence | undefined): HeldEvidence {
  if (state !== "held" || attempt === undefined) return null;
  const { sentAt, status, bodySha256, taskId, externalTaskId } = attempt;
  return { sentAt, status, bodySha256, taskId, externalTaskId };
}

function fileEntry({ guard }: Reading, browsed: BrowsedFile): ShownFile {
  const { key, folder: _, ...file } = fileDocument(browsed);
  const src = guard.fileAddress(file.itemId, file.output);
  const name = nameOf({ key, run: browsed.itemRunId }, browsed.taskId);
  return { ...file, src, thumbnail: thumbnailOf(src, file.mime), name };
}

export async function filePage(reading: Reading, wanted: WantedFiles): Promise<FilePage> {
  const files = await reading.browser.files(wanted);
  // The files of an item are never on two pages, except those of one with more outputs than a page holds.
  const last = files.at(-1)?.itemId;
  const whole = files.length < wanted.limit ? files : files.filter(({ itemId }) => itemId !== last);
  const kept = whole.length > 0 ? whole : files;
  return {
    files: kept.map((file) => fileEntry(reading, file)),
    older: files.length < wanted.limit ? null : (kept.at(-1)?.itemId ?? null),
  };
}

export async function waitingPage(reading: Reading, what: WaitingKind): Promise<WaitingPage> {
  const { items, total } = await reading.browser.waiting(what, waitingShown);
  const entries: WaitingPage["items"] = [];
  for (const item of items) {
    const story = what === "held" ? await reading.browser.story(item.id) : null;
    const evidence = evidenceOf(item, story?.attempts.at(-1));
    entries.push({ ...itemEntry(reading, item), evidence, name: nameOf(item, evidence?.taskId) });
  }
  return { total, items: entries };
}

/** The path of an archived file. */
export function pathOf({ outFolder, job, file }: Pick<BrowsedFile, "outFolder" | "job" | "file">): string {
  return join(jobFolder({ outFolder, jobName: job }), file);
}

export function numberOf(amount: number): number {
  return toNumber(amount as Credits);
}
