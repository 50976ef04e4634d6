import { jobFolder } from "../archive/disk/names.js";
import { exitCode } from "../core/exit.js";
import { toNumber } from "../core/money.js";
import type { RunOptions } from "../core/next/options.js";
import type { FileDocument } from "../documents/file.js";
import type { ItemDocument } from "../documents/item.js";
import type { RunDocument } from "../documents/run.js";
import type { BrowsedFile, BrowsedItem, BrowsedRun } from "../store/browse/pages.js";
import { iso, isoOrNull } from "../text/times.js";

/** The documents of what is read of a workspace page by page. `alive` is the run that a process works on now. */
export function runDocument(run: BrowsedRun, alive: number | null): RunDocument {
  const { id, job, manifest, edition, state, origin, outFolder, requests, counts, awaiting, exit, ending } =
    run;
  const { beganBy = null, maxCredits, forecast = null } = JSON.parse(run.options) as RunOptions;
  return {
    run: id,
    job,
    manifest,
    edition,
    state,
    alive: alive === id,
    beganBy,
    startedAt: iso(run.startedAt),
    endedAt: isoOrNull(run.endedAt),
    exit: exit === null ? null : exitCode(exit),
    exitName: exit,
    stops: [...(ending?.reasons ?? [])],
    resumeAt: isoOrNull(ending?.resumeAt ?? null),
    after: ending?.after ?? null,
    requests,
    origin,
    folder: jobFolder({ outFolder, jobName: job }),
    counts,
    awaiting,
    credits: { spent: toNumber(run.charged), pending: toNumber(run.pending), lost: toNumber(run.lost) },
    cap: maxCredits === null ? null : toNumber(maxCredits),
    forecast,
  };
}

export function itemDocument(item: BrowsedItem): ItemDocument {
  const { id, runId: run, job, key, rowId, rowNumber, model, category, prompt, state } = item;
  const { failureKind, note, approval, price, files, mime, picked } = item;
  return {
    id,
    run,
    job,
    key,
    rowId,
    rowNumber,
    model,
    category,
    prompt,
    state,
    failureKind,
    note,
    approval,
    price: toNumber(price),
    files,
    mime,
    picked: picked !== 0,
  };
}

export function fileDocument(browsed: BrowsedFile): FileDocument {
  const { itemId, number: output, runId: run, job, key, rowId, model, prompt, file, outFolder } = browsed;
  const { bucket, bytes, sha256, mime, savedAt, approval, picked } = browsed;
  return {
    job,
    rowId,
    model,
    prompt,
    output,
    bytes,
    sha256,
    mime,
    savedAt: iso(savedAt),
    itemId,
    key,
    run,
    file,
    folder: jobFolder({ outFolder, jobName: job }),
    bucket,
    approval,
    picked: picked !== 0,
  };
}
