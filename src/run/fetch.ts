import { jobFolder } from "../archive/disk/job-folder.js";
import type { SaveRequest } from "../archive/save.js";
import { toNumber } from "../core/money.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item, Output } from "../core/ports/store.js";
import { backoffMs } from "../core/quota/backoff.js";
import { diskMs } from "./disk-trouble.js";
import type { Session } from "./session.js";

/** After so many failed tries in a row a fresh address is asked for; after twice as many a person has to look. */
const triesPerAddress = 4;
export const triesMax = 2 * triesPerAddress;

/** Fetches the outputs of one finished task into the archive, those that are not there yet. */
export async function fetchOutputs(session: Session, itemId: number, signal: AbortSignal): Promise<void> {
  const { store } = session.ports;
  const item = await store.item(itemId);
  const attempt = await store.attempt(itemId);
  const outputs = await store.outputs(itemId);
  for (const output of outputs) {
    if (output.file !== null) continue;
    const complete = await fetchOne(session, { item, attempt, output, count: outputs.length }, signal);
    if (!complete) return;
  }
}

interface Wanted {
  item: Item;
  attempt: Attempt | null;
  output: Output;
  count: number;
}

async function fetchOne(session: Session, wanted: Wanted, signal: AbortSignal): Promise<boolean> {
  const { store, clock, save } = session.ports;
  const { item, output } = wanted;
  const result = await save(saveRequest(session, wanted), signal);
  if (signal.aborted && result.kind !== "saved") return false;
  if (result.kind !== "disk") session.diskTrouble.over();
  switch (result.kind) {
    case "saved":
      await store.saved(item.id, output.number, result);
      session.saved.add(item.id, output.number, result.file);
      for (const { from, to } of result.moved ?? []) await session.replacements.moved(store, from, to);
      return true;
    case "expired":
      await renew(session, item, `its address answered ${result.status}`);
      return false;
    case "refused":
      await store.apply(item.id, "unfetchable", { note: result.reason });
      return false;
    case "disk":
      session.diskTrouble.refused(result);
      await store.reschedule(item.id, clock.now() + diskMs, { note: result.reason });
      return false;
    case "try_again":
      await tryAgain(session, item, result.reason);
      return false;
  }
}

/** An address has expired, so a fresh one is due. A service that only has addresses that have expired is not asked forever. */
async function renew({ ports }: Session, item: Item, reason: string): Promise<void> {
  const tries = item.looks + 1;
  if (tries >= triesMax) {
    await ports.store.apply(item.id, "unfetchable", { note: `${tries} addresses were of no use: ${reason}` });
    return;
  }
  await ports.store.expire(item.id, reason);
  await ports.store.reschedule(item.id, ports.clock.now() + backoffMs(tries), { looks: 1 });
}

async function tryAgain({ ports }: Session, item: Item, reason: string): Promise<void> {
  const tries = item.looks + 1;
  if (tries >= triesMax) {
    await ports.store.apply(item.id, "unfetchable", {
      note: `could not be fetched in ${tries} tries: ${reason}`,
    });
    return;
  }
  await ports.store.reschedule(item.id, ports.clock.now() + backoffMs(tries), { looks: 1, note: reason });
  if (tries === triesPerAddress) await ports.store.expire(item.id, reason);
}

function saveRequest(session: Session, { item, attempt, output, count }: Wanted): SaveRequest {
  const { run } = session.settings;
  return {
    url: output.url,
    jobFolder: jobFolder(run),
    name: item.name,
    outputNumber: output.number,
    outputCount: count,
    category: item.category,
    replaces: session.replacements.of(item),
    index: {
      item: item.rowId,
      key: item.key,
      task: attempt?.taskId ?? "",
      external_task: attempt?.externalTaskId ?? null,
      model: item.model,
      prompt: item.prompt,
      params: item.params,
      inputs: item.inputs,
      credits: attempt?.charged === null || attempt === null ? null : toNumber(attempt.charged),
      created: attempt?.createdAt ?? null,
      completed: attempt?.completedAt ?? null,
    },
  };
}
