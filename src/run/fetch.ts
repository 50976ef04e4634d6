import { join, posix } from "node:path";
import { jobFolder, safeName } from "../archive/disk/names.js";
import { indexFacts } from "../archive/index-file.js";
import type { SaveRequest } from "../archive/save.js";
import { backoffMs, triesMax } from "../core/again.js";
import type { Attempt } from "../core/ports/attempt.js";
import type { Item, Output } from "../core/ports/store.js";
import { hasReference } from "../core/reference.js";
import { fileName } from "../core/variant.js";
import { diskMs } from "./gate/disk-trouble.js";
import type { RunPorts, Session } from "./ports.js";

/** After this many failed tries in a row, a fresh address is requested. */
const triesPerAddress = triesMax / 2;
/** How many items are checked at once. */
const checksAtOnce = 16;

interface Wanted {
  item: Item;
  attempt: Attempt | null;
  output: Output;
  count: number;
  /** The items whose outputs it was made from, by input. */
  madeFrom: Readonly<Record<string, string>>;
}

/** Fetches outputs into the archive. */
export class Fetching {
  /** The hash of the last download that failed its check, by item and output. */
  private readonly rejected = new Map<string, string>();
  /** Items whose files this execution has saved. A run may have a million items, so nothing else is kept of them. */
  private saved: number[] = [];
  /** Items whose files were gone, and were fetched again. */
  private readonly again = new Set<number>();

  constructor(private readonly session: Session) {}

  /** Downloads the outputs of one finished task that are not archived yet. */
  async fetch(itemId: number, signal: AbortSignal): Promise<void> {
    const { store } = this.session.ports;
    const [item, attempt, outputs] = await Promise.all([
      store.item(itemId),
      store.attempt(itemId),
      store.outputs(itemId),
    ]);
    // The program ended between the record of a task without outputs and the hold of its item.
    if (outputs.length === 0)
      await store.apply(itemId, "unfetchable", { note: "the task ended without a usable output address" });
    const madeFrom = hasReference(item.inputs) ? await parentNames(store, itemId) : {};
    let refused: string | null = null;
    for (const output of outputs) {
      if (output.file !== null) continue;
      const wanted = { item, attempt, output, count: outputs.length, madeFrom };
      const fetched = await this.fetchOne(wanted, signal);
      if (fetched === "later") return;
      // One bad file does not keep the others from being fetched.
      if (fetched !== "saved") refused ??= fetched.refused;
    }
    if (refused !== null) await store.apply(itemId, "unfetchable", { note: refused });
  }

  /**
   * Before a run ends, it checks that the files that it saved are still there, because the folder may have been moved
   * or emptied in the meantime, or a command may have taken them away. Items whose files are gone become ready to be downloaded again, each once, while their
   * tasks are still at the service: a program that takes away what it finds there would take it away for ever. Returns
   * how many files will be fetched.
   */
  async fetchMissing(): Promise<number> {
    await this.session.ports.handled?.();
    const items = this.saved;
    this.saved = [];
    let missing = 0;
    for (let at = 0; at < items.length; at += checksAtOnce) {
      const found = await Promise.all(items.slice(at, at + checksAtOnce).map((item) => this.missingOf(item)));
      missing += found.reduce((sum, files) => sum + files, 0);
    }
    return missing;
  }

  private async missingOf(item: number): Promise<number> {
    const { ports, settings } = this.session;
    const { store } = ports;
    const { state } = await store.item(item);
    if (state !== "archived") return 0;
    const isSecond = this.again.has(item);
    let missing = 0;
    for (const { number, file, bucket } of await store.outputs(item)) {
      // The bucket has confirmed what it has.
      if (file === null || bucket || (await ports.exists(join(jobFolder(settings.run), file)))) continue;
      const what = isSecond ? "gone again; it is not fetched any more" : "gone; it is fetched again";
      ports.log.warn({ file }, `a saved file is ${what}`);
      if (isSecond) continue;
      missing++;
      await store.lost(item, number);
    }
    if (missing > 0) this.again.add(item);
    return missing;
  }

  /** `refused`: why the output cannot be had. */
  private async fetchOne(
    wanted: Wanted,
    signal: AbortSignal,
  ): Promise<"saved" | "later" | { refused: string }> {
    const { ports, gate } = this.session;
    const { store, clock } = ports;
    const { item, output } = wanted;
    const result = await ports.save(saveRequest(this.session, wanted), signal);
    if (signal.aborted && result.kind !== "saved") return "later";
    if (result.kind !== "disk") gate.disk.over();
    switch (result.kind) {
      case "saved":
        await store.saved(item.id, output.number, result);
        ports.archived?.(item, output.number, result);
        this.tellElsewhere(item, result.file);
        if (result.bucket === undefined && this.saved.at(-1) !== item.id) this.saved.push(item.id);
        for (const { from, to } of result.moved ?? []) await ports.replacements.moved(store, from, to);
        return "saved";
      case "expired":
        await renew(ports, item, `its address answered ${result.status}`);
        return "later";
      case "refused":
        return { refused: result.reason };
      case "disk":
        gate.disk.refused(result);
        await store.reschedule(item.id, clock.now() + diskMs, { note: result.reason });
        return "later";
      case "try_again":
        if (this.isRepeated(wanted, result.sha256))
          return { refused: `the same bytes came twice: ${result.reason}` };
        await tryAgain(ports, item, result);
        return "later";
    }
  }

  /** Tells of a file that could not be saved in the folder that its row wants. */
  private tellElsewhere(item: Item, file: string): void {
    const folder = posix.dirname(safeName(fileName(item)));
    if (folder === "." || file.startsWith(`${folder}/`)) return;
    const message = `its folder ${folder} cannot be used, so the file was saved beside it`;
    this.session.ports.log.warn({ item: item.rowId, file }, message);
  }

  /**
   * Whether the same content failed its check before: then the service has this content, and the download was not
   * damaged.
   */
  private isRepeated({ item, output }: Wanted, sha256: string | undefined): boolean {
    if (sha256 === undefined) return false;
    const name = `${item.id}/${output.number}`;
    const before = this.rejected.get(name);
    this.rejected.set(name, sha256);
    return before === sha256;
  }
}

/**
 * An address has expired, so a fresh one is requested. If the service returns only expired addresses, this ends after
 * some tries.
 */
async function renew(
  { store, clock }: Pick<RunPorts, "store" | "clock">,
  item: Item,
  reason: string,
): Promise<void> {
  const tries = item.tries + 1;
  if (tries >= triesMax) {
    await store.apply(item.id, "unfetchable", { note: `${tries} addresses were of no use: ${reason}` });
    return;
  }
  await store.expire(item.id, reason);
  await store.reschedule(item.id, clock.now() + backoffMs(tries), { tries: 1 });
}

async function tryAgain(
  { store, clock }: Pick<RunPorts, "store" | "clock">,
  item: Item,
  { reason, pauseMs = 0 }: { reason: string; pauseMs?: number },
): Promise<void> {
  const tries = item.tries + 1;
  if (tries >= triesMax) {
    await store.apply(item.id, "unfetchable", {
      note: `could not be fetched in ${tries} tries: ${reason}`,
    });
    return;
  }
  const waitMs = Math.max(backoffMs(tries), pauseMs);
  await store.reschedule(item.id, clock.now() + waitMs, { tries: 1, note: reason });
  if (tries === triesPerAddress) await store.expire(item.id, reason);
}

/** Row ids of the takes whose outputs an item uses: a step may have several. */
async function parentNames(
  store: Pick<RunPorts["store"], "parentsOf">,
  itemId: number,
): Promise<Record<string, string>> {
  const parents = await store.parentsOf(itemId);
  return Object.fromEntries(
    parents.flatMap(({ field, rowId }) => (field === "canary" || rowId === null ? [] : [[field, rowId]])),
  );
}

function saveRequest(
  { ports, settings }: Session,
  { item, attempt, output, count, madeFrom }: Wanted,
): SaveRequest {
  const { run } = settings;
  return {
    url: output.url,
    jobFolder: jobFolder(run),
    name: fileName(item),
    outputNumber: output.number,
    outputCount: count,
    category: item.category,
    ...(item.accepts === true ? { accepts: true } : {}),
    replaces: ports.replacements.of(item),
    index: {
      ...indexFacts(item, attempt),
      ...(Object.keys(madeFrom).length === 0 ? {} : { made_from: madeFrom }),
    },
  };
}
