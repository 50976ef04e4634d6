import { mediaFields } from "../api/inputs.js";
import type { Clock } from "../clock.js";
import type { Item, Store } from "../core/ports/store.js";
import { backoffMs } from "../core/quota/backoff.js";
import { isLocalPath, type LocalInput } from "../manifest/local-inputs.js";
import { PublishError, type Publisher, type PublishFile } from "../publish/publisher.js";

/** Where local inputs go, and how they are found. */
export interface PublishPorts {
  /** Throws PublishError when it is not set up. */
  publisher(): Publisher;
  /** The file that an input of the manifest names. */
  localInput(value: string): Promise<LocalInput>;
  /** Ends what is being published; its items stay planned. */
  interrupt: AbortSignal;
}

type Means = { store: Pick<Store, "publishedAt" | "keepPublished" | "unpublished">; clock: Clock };

/** An address must be of use for so long (ms) when it is sent. */
const usableMs = 10 * 60_000;
/** So often a file is tried before its item has to wait. */
const triesMax = 3;

/** Publishes the local files of items that are about to be submitted. Each content is published once while its address is good. */
export class Publishing {
  private opened: Publisher | null = null;
  /** Contents that are being published. */
  private readonly underWay = new Map<string, Promise<string>>();

  constructor(
    private readonly means: Means,
    private readonly ports: PublishPorts | null,
  ) {}

  /**
   * The inputs with addresses in place of paths. Null where one cannot be had: then the item is blocked, with the reason. Null
   * also once the run is interrupted: then the item stays planned, because no paid request may leave any more.
   */
  async inputsOf(item: Item, inputs: Item["inputs"]): Promise<Item["inputs"] | null> {
    if (this.ports === null) return inputs;
    const sent: Record<string, string> = { ...inputs };
    try {
      for (const field of mediaFields) {
        const value = inputs[field];
        if (value !== undefined && isLocalPath(value))
          sent[field] = await this.addressOf(this.ports, value, item.files?.[field]);
      }
      return this.ports.interrupt.aborted ? null : sent;
    } catch (error) {
      if (!(error instanceof PublishError)) throw error;
      if (this.ports.interrupt.aborted) return null;
      await this.means.store.unpublished(item.id, error.message);
      return null;
    }
  }

  private async addressOf(ports: PublishPorts, value: string, planned: string | undefined): Promise<string> {
    const file = await ports.localInput(value);
    if ("wrong" in file) throw new PublishError(`${value}: ${file.wrong}`);
    if (planned !== undefined && file.sha256 !== planned)
      throw new PublishError(`${value} has changed since the run was planned: run the manifest again`);
    const under = this.underWay.get(file.sha256);
    if (under !== undefined) return under;
    const { path, bytes, mime } = file;
    const sha256 = file.sha256.replace("sha256:", "");
    const name = value.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "");
    const address = this.published(ports, {
      path,
      name,
      bytes,
      sha256,
      mime: mime ?? "application/octet-stream",
    });
    this.underWay.set(file.sha256, address);
    return address.finally(() => this.underWay.delete(file.sha256));
  }

  private async published(ports: PublishPorts, file: PublishFile): Promise<string> {
    const { store, clock } = this.means;
    this.opened ??= ports.publisher();
    const publisher = this.opened;
    // An address below which the files are already depends on the name.
    const target = publisher.byName ? `${publisher.name} ${file.name}` : publisher.name;
    const known = await store.publishedAt(target, file.sha256);
    if (known !== null && (known.until === null || known.until - clock.now() > usableMs)) return known.url;
    for (let tries = 1; ; tries++) {
      try {
        const published = await publisher.publish(file);
        await store.keepPublished(target, file.sha256, published);
        return published.url;
      } catch (error) {
        if (!(error instanceof PublishError) || tries >= triesMax || ports.interrupt.aborted) throw error;
        await clock.sleep(backoffMs(tries), ports.interrupt);
      }
    }
  }
}
