import { mediaFields } from "../api/inputs.js";
import type { Clock } from "../clock.js";
import type { Item, Store } from "../core/ports/store.js";
import { backoffMs } from "../core/quota/backoff.js";
import { isLocalPath, type LocalInput } from "../manifest/local-inputs.js";
import { PublishError, type Publisher, type PublishFile } from "../publish/publisher.js";

/** Where local inputs go, and how they are found. */
export interface PublishPorts {
  /** Null where nothing says where files are to be put. Throws PublishError where it cannot be used as it is set up. */
  publisher: (() => Publisher) | null;
  /** The file that an input of the manifest names. */
  localInput(value: string): Promise<LocalInput>;
  /** The file of that name in the job's folder. */
  archived(file: string): Promise<LocalInput>;
  /** Ends what is being published; its items stay planned. */
  interrupt: AbortSignal;
}

type Means = {
  store: Pick<Store, "publishedAt" | "keepPublished" | "unpublished" | "outputs">;
  clock: Clock;
};

/** An address must be of use for so long (ms) when it is sent. */
const usableMs = 10 * 60_000;
/** So often a file is tried before its item has to wait. */
const triesMax = 3;

/**
 * Publishes the local files of items that are about to be submitted, and archived outputs whose task the service has no
 * more. Each content is published once while its address is good.
 */
export class Publishing {
  private opened: Publisher | null = null;
  /** Contents that are being published. */
  private readonly underWay = new Map<string, Promise<string>>();

  constructor(
    private readonly means: Means,
    private readonly ports: PublishPorts | null,
  ) {}

  /** The service takes no paths, and nothing says where files are to be put for it. */
  get missing(): boolean {
    return this.ports !== null && this.ports.publisher === null;
  }

  get interrupted(): boolean {
    return this.ports?.interrupt.aborted ?? false;
  }

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

  /**
   * Addresses of an item's archived outputs, for the items that take them. Null where the service takes paths. Rejects
   * with PublishError.
   */
  async addressesOf(itemId: number): Promise<string[] | null> {
    if (this.ports === null) return null;
    const addresses: string[] = [];
    for (const { file, sha256 } of await this.means.store.outputs(itemId)) {
      if (file === null || sha256 === null) throw new PublishError("it has no archived file");
      if (this.publisherOf(this.ports).byName)
        throw new PublishError("--publish names a folder where archived files are not");
      addresses.push(await this.addressFor(this.ports, file, await this.ports.archived(file), sha256));
    }
    return addresses;
  }

  private async addressOf(ports: PublishPorts, value: string, planned: string | undefined): Promise<string> {
    const file = await ports.localInput(value);
    if (planned !== undefined && "sha256" in file && file.sha256 !== planned)
      throw new PublishError(`${value} has changed since the run was planned: run the manifest again`);
    return this.addressFor(ports, value, file);
  }

  private async addressFor(
    ports: PublishPorts,
    value: string,
    file: LocalInput,
    archived?: string,
  ): Promise<string> {
    if ("wrong" in file) throw new PublishError(`${value}: ${file.wrong}`);
    const sha256 = file.sha256.replace("sha256:", "");
    if (archived !== undefined && sha256 !== archived)
      throw new PublishError(`${value} has changed since it was archived`);
    const under = this.underWay.get(file.sha256);
    if (under !== undefined) return under;
    const { path, bytes, mime } = file;
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

  private publisherOf(ports: PublishPorts): Publisher {
    if (ports.publisher === null)
      throw new PublishError("nothing says where local files are to be put: add --publish");
    this.opened ??= ports.publisher();
    return this.opened;
  }

  private async published(ports: PublishPorts, file: PublishFile): Promise<string> {
    const { store, clock } = this.means;
    const publisher = this.publisherOf(ports);
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
