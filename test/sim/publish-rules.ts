import type { BlockedItem } from "../../src/core/ports/store.js";
import { bucketTrouble, plannedHash, type SimulatedBucket } from "./bucket.js";
import type { Scenario } from "./scenario.js";
import { type Effect, type Rule, type Sender, type Trip, Violation } from "./watch.js";

/** The field of a local file: outputs of other items go into the others. */
export const fileField = "video_url";

/** An address has to be good for so long (ms) to be sent. */
const usableMs = 600_000;

/**
 * Local files, looked at whenever one is published or a paid request is put on the wire: the request has an address of the
 * content that was planned, at which the service can still read it; and no content is published while an address of it is
 * good.
 */
export class PublishRules implements Rule {
  private readonly files: ReadonlyMap<string, string>;
  /** The newest address that each workspace has stored of each content: until when it is good by the process's clock. */
  private readonly kept = new Map<string, { at: number; until: number }>();

  constructor(
    { items }: Scenario,
    private readonly bucket: () => SimulatedBucket | null,
    private readonly now: () => number,
    private readonly clockSetAt: () => number,
  ) {
    this.files = new Map(items.flatMap(({ id, file }) => (file === undefined ? [] : [[id, file]])));
  }

  /** A process begins to publish a content. */
  begins(sender: Sender, sha256: string, wallTime: number): void {
    const kept = this.kept.get(`${sender.workspace} ${sha256}`);
    if (kept === undefined || kept.at <= this.clockSetAt() || kept.until - wallTime <= usableMs) return;
    throw new Violation(
      "publish",
      `${sha256} is published again, though its address is good for ${kept.until - wallTime} ms`,
    );
  }

  done({ sender, name, values }: Effect): void {
    if (name !== "store.keepPublished") return;
    const [, sha256, { until }] = values as [string, string, { until: number }];
    this.kept.set(`${sender.workspace} ${sha256}`, { at: this.now(), until });
  }

  sent({ endpoint, item, inputs }: Trip): void {
    if (endpoint !== "generate" || item === null) return;
    const file = this.files.get(item);
    const address = inputs[fileField];
    if (file === undefined) return;
    const what = `the ${fileField} of the POST for ${item}`;
    const found = this.bucket()?.at(address ?? "") ?? null;
    if (found === null)
      throw new Violation("publish", `${what} is "${address}", where nothing was published`);
    if (`sha256:${found.sha256}` !== plannedHash(file))
      throw new Violation("publish", `${what} is not the ${file} that was planned`);
    const isKnown = found.givenAt > this.clockSetAt();
    if (isKnown && found.expires <= this.now())
      throw new Violation("publish", `${what} had expired ${this.now() - found.expires} ms before it left`);
  }
}

/** At the end: an item is left for want of its file only where that is another one now; and says so. */
export function checkPublished(
  blocked: readonly BlockedItem[],
  fileOf: (rowId: string) => string | undefined,
  bucket: SimulatedBucket,
): void {
  for (const { rowId, note } of blocked) {
    const file = fileOf(rowId);
    const isForFile = note?.startsWith("cannot be published") === true;
    const isOther = isForFile && file !== undefined && !bucket.isAsPlanned(file);
    if (note?.includes(bucketTrouble) || (isForFile && !isOther))
      throw new Violation("publish", `${rowId} is left blocked though its file can be published: ${note}`);
  }
}
