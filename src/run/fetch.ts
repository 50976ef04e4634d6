import { join } from "node:path";
import { jobFolder } from "../archive/disk/names.js";
import type { SaveRequest } from "../archive/save.js";
import { toNumber } from "../core/money.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item, Output } from "../core/ports/store.js";
import { backoffMs } from "../core/quota/backoff.js";
import { diskMs } from "./gate/disk-trouble.js";
import type { RunPorts, Session } from "./ports.js";

/** After so many failed tries in a row a fresh address is asked for; after twice as many a person has to look. */
const triesPerAddress = 4;
export const triesMax = 2 * triesPerAddress;

interface Wanted {
  item: Item;
  attempt: Attempt | null;
  output: Output;
  count: number;
}

/** Fetches outputs into the archive. */
export class Fetching {
  /** The hash of the last download that failed its check, by item and output. */
  private readonly rejected = new Map<string, string>();
  /** Files that this execution has saved. */
  private readonly saved: { item: number; number: number; file: string }[] = [];

  constructor(private readonly session: Session) {}

  /** Fetches the outputs of one finished task, those that are not there yet. */
  async fetch(itemId: number, signal: AbortSignal): Promise<void> {
    const { store } = this.session.ports;
    const [item, attempt, outputs] = await Promise.all([
      store.item(itemId),
      store.attempt(itemId),
      store.outputs(itemId),
    ]);
    for (const output of outputs) {
      if (output.file !== null) continue;
      const wanted = { item, attempt, output, count: outputs.length };
      if (!(await this.fetchOne(wanted, signal))) return;
    }
  }

  /**
   * Before a run ends it checks that the files that it saved are still there: a folder that was moved or emptied in the
   * meantime must not pass for an archive. Puts items whose files are gone back to be fetched, each once, while their
   * tasks are at hand. Returns how many files are gone.
   */
  async fetchMissing(): Promise<number> {
    const { ports, settings } = this.session;
    let missing = 0;
    for (const { item, number, file } of this.saved.splice(0)) {
      if (await ports.exists(join(jobFolder(settings.run), file))) continue;
      const { state } = await ports.store.item(item);
      if (state !== "archived") continue;
      missing++;
      ports.log.warn({ file }, "a saved file is gone; it is fetched again");
      await ports.store.lost(item, number);
    }
    return missing;
  }

  private async fetchOne(wanted: Wanted, signal: AbortSignal): Promise<boolean> {
    const { ports, gate } = this.session;
    const { store, clock } = ports;
    const { item, output } = wanted;
    const result = await ports.save(saveRequest(this.session, wanted), signal);
    if (signal.aborted && result.kind !== "saved") return false;
    if (result.kind !== "disk") gate.disk.over();
    switch (result.kind) {
      case "saved":
        await store.saved(item.id, output.number, result);
        // The bucket has confirmed what it has.
        if (result.bucket === undefined)
          this.saved.push({ item: item.id, number: output.number, file: result.file });
        for (const { from, to } of result.moved ?? []) await ports.replacements.moved(store, from, to);
        return true;
      case "expired":
        await renew(ports, item, `its address answered ${result.status}`);
        return false;
      case "refused":
        await store.apply(item.id, "unfetchable", { note: result.reason });
        return false;
      case "disk":
        gate.disk.refused(result);
        await store.reschedule(item.id, clock.now() + diskMs, { note: result.reason });
        return false;
      case "try_again":
        if (this.isRepeated(wanted, result.sha256))
          await store.apply(item.id, "unfetchable", { note: `the same bytes came twice: ${result.reason}` });
        else await tryAgain(ports, item, result.reason);
        return false;
    }
  }

  /** Whether what failed its check is what failed it before: then it is what the service has, and no accident. */
  private isRepeated({ item, output }: Wanted, sha256: string | undefined): boolean {
    if (sha256 === undefined) return false;
    const name = `${item.id}/${output.number}`;
    const before = this.rejected.get(name);
    this.rejected.set(name, sha256);
    return before === sha256;
  }
}

/** An address has expired, so a fresh one is due. A service that only has addresses that have expired is not asked forever. */
async function renew(
  { store, clock }: Pick<RunPorts, "store" | "clock">,
  item: Item,
  reason: string,
): Promise<void> {
  const tries = item.looks + 1;
  if (tries >= triesMax) {
    await store.apply(item.id, "unfetchable", { note: `${tries} addresses were of no use: ${reason}` });
    return;
  }
  await store.expire(item.id, reason);
  await store.reschedule(item.id, clock.now() + backoffMs(tries), { looks: 1 });
}

async function tryAgain(
  { store, clock }: Pick<RunPorts, "store" | "clock">,
  item: Item,
  reason: string,
): Promise<void> {
  const tries = item.looks + 1;
  if (tries >= triesMax) {
    await store.apply(item.id, "unfetchable", {
      note: `could not be fetched in ${tries} tries: ${reason}`,
    });
    return;
  }
  await store.reschedule(item.id, clock.now() + backoffMs(tries), { looks: 1, note: reason });
  if (tries === triesPerAddress) await store.expire(item.id, reason);
}

function saveRequest({ ports, settings }: Session, { item, attempt, output, count }: Wanted): SaveRequest {
  const { run } = settings;
  return {
    url: output.url,
    jobFolder: jobFolder(run),
    name: item.name,
    outputNumber: output.number,
    outputCount: count,
    category: item.category,
    replaces: ports.replacements.of(item),
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
