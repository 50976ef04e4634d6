import { mediaFields } from "../api/inputs.js";
import type { Clock } from "../clock.js";
import { backoffMs, readTriesMax } from "../core/again.js";
import type { Item, Output } from "../core/ports/store.js";
import { isLocalPath, type LocalInput } from "../manifest/local-inputs.js";
import { NotArchivedError, PublishError, type Publisher, type PublishFile } from "../publish/publisher.js";
import type { Store } from "../store/workspace/workspace.js";

/** Where local inputs go, and how they are found. */
export interface PublishPorts {
  /** Null if no place for files is set up. Throws PublishError if the place cannot be used as it is set up. */
  publisher: (() => Publisher) | null;
  /** The file that an input of the manifest names. */
  localInput(value: string): Promise<LocalInput>;
  /** The file of that name in the job's folder. */
  archived(file: string): Promise<LocalInput>;
  /** An address at which the service can read a file in that bucket. Rejects with PublishError. */
  linkTo(bucket: string, file: string): Promise<string>;
  /** Ends what is being published; its items stay planned. */
  interrupt: AbortSignal;
}

type Means = {
  store: Pick<Store, "publishedAt" | "keepPublished" | "unpublished" | "outputs">;
  clock: Clock;
};

/** An address must stay valid for this long (ms) after it is sent. */
const usableMs = 10 * 60_000;
/** An address that is this new (ms) is good enough if it stays valid for `readWithinMs`. */
const justGivenMs = 60_000;
const readWithinMs = 60_000;

/**
 * Publishes the local files of items that are about to be submitted, and archived outputs whose task the service no
 * longer has. Each content is published once while its address is valid.
 */
export class Publishing {
  private opened: Publisher | null = null;
  /** Contents that are being published. */
  private readonly underWay = new Map<string, Promise<string>>();
  /** When this process got the newest address of each content (monotonic ms). */
  private readonly givenAt = new Map<string, number>();

  constructor(
    private readonly means: Means,
    private readonly ports: PublishPorts | null,
  ) {}

  /** The service accepts no paths, and no place for files is set up. */
  get missing(): boolean {
    return this.ports !== null && this.ports.publisher === null;
  }

  get interrupted(): boolean {
    return this.ports?.interrupt.aborted ?? false;
  }

  /**
   * The inputs with addresses in place of paths. Null if an address cannot be had: then the item is blocked, with the
   * reason. Null also once a file was published, or if the run is interrupted: then the item stays planned. Publishing
   * may take minutes, in which the run may be cancelled, told to pause by the service, or reach its cap; so the item is
   * chosen again.
   */
  async inputsOf(item: Item, inputs: Item["inputs"]): Promise<Item["inputs"] | null> {
    if (this.ports === null) return inputs;
    const sent: Record<string, string> = { ...inputs };
    let isReady = true;
    try {
      for (const field of mediaFields) {
        const value = inputs[field];
        if (value === undefined || !isLocalPath(value)) continue;
        const file = await this.plannedFile(this.ports, value, item.files?.[field]);
        const known = await this.known(this.ports, file);
        if (known === null) {
          isReady = false;
          await this.published(this.ports, file);
        } else sent[field] = known;
      }
      return isReady && !this.ports.interrupt.aborted ? sent : null;
    } catch (error) {
      if (!(error instanceof PublishError)) throw error;
      if (this.ports.interrupt.aborted) return null;
      await this.means.store.unpublished(item.id, error.message);
      return null;
    }
  }

  /**
   * Addresses of an item's archived outputs, for the items that use them. Null if the service accepts paths. Rejects
   * with PublishError.
   */
  async addressesOf(itemId: number): Promise<string[] | null> {
    if (this.ports === null) return null;
    const { ports } = this;
    const outputs = await this.means.store.outputs(itemId);
    // At once: the address of the first would age while the last is published.
    return Promise.all(outputs.map((output) => this.addressOf(ports, output)));
  }

  private async addressOf(ports: PublishPorts, { file, sha256, bucket }: Output): Promise<string> {
    if (file === null || sha256 === null) throw new NotArchivedError("it has no archived file");
    if (bucket != null) return ports.linkTo(bucket, file);
    if (this.publisherOf(ports).byName)
      throw new PublishError("the folder that --publish names does not have the archived files");
    const archived = fileOf(file, await ports.archived(file));
    if (archived.sha256 !== sha256) throw new PublishError(`${file} has changed since it was archived`);
    return (await this.known(ports, archived)) ?? this.published(ports, archived);
  }

  private async plannedFile(
    ports: PublishPorts,
    value: string,
    planned: string | undefined,
  ): Promise<PublishFile> {
    const file = fileOf(value, await ports.localInput(value));
    if (planned !== undefined && `sha256:${file.sha256}` !== planned)
      throw new PublishError(`${value} has changed since the run was planned: run the manifest again`);
    return file;
  }

  private publisherOf(ports: PublishPorts): Publisher {
    if (ports.publisher === null)
      throw new PublishError("there is no place for local files: name one with --publish");
    this.opened ??= ports.publisher();
    return this.opened;
  }

  /** If the files are already at an address, each file's address depends on its name. */
  private targetOf(ports: PublishPorts, { name }: PublishFile): string {
    const publisher = this.publisherOf(ports);
    return publisher.byName ? `${publisher.name} ${name}` : publisher.name;
  }

  /** The address of a content that stays valid for long enough; null if the content has to be published. */
  private async known(ports: PublishPorts, file: PublishFile): Promise<string | null> {
    const { store, clock } = this.means;
    const target = this.targetOf(ports, file);
    const known = await store.publishedAt(target, file.sha256);
    if (known === null) return null;
    const leftMs = known.until === null ? Number.POSITIVE_INFINITY : known.until - clock.now();
    const givenAt = this.givenAt.get(`${target} ${file.sha256}`) ?? Number.NEGATIVE_INFINITY;
    const isNew = clock.monotonic() - givenAt < justGivenMs;
    return leftMs > (isNew ? readWithinMs : usableMs) ? known.url : null;
  }

  /** Publishes a file, once for all items that wait for it. */
  private published(ports: PublishPorts, file: PublishFile): Promise<string> {
    const id = `${this.targetOf(ports, file)} ${file.sha256}`;
    const address = this.underWay.get(id) ?? this.publish(ports, file, id);
    this.underWay.set(id, address);
    return address.finally(() => this.underWay.delete(id));
  }

  private async publish(ports: PublishPorts, file: PublishFile, id: string): Promise<string> {
    const { store, clock } = this.means;
    const publisher = this.publisherOf(ports);
    for (let tries = 1; ; tries++) {
      try {
        const published = await publisher.publish(file);
        const { url, until } = published;
        if (until !== null && until - clock.now() <= readWithinMs)
          throw new PublishError(`the address of ${file.name} expires before it can be used`);
        await store.keepPublished(this.targetOf(ports, file), file.sha256, published);
        this.givenAt.set(id, clock.monotonic());
        return url;
      } catch (error) {
        if (!(error instanceof PublishError) || tries >= readTriesMax || ports.interrupt.aborted) throw error;
        await clock.sleep(backoffMs(tries), ports.interrupt);
      }
    }
  }
}

/** Throws PublishError if it cannot be read. */
function fileOf(value: string, file: LocalInput): PublishFile {
  if ("wrong" in file) throw new PublishError(`${value}: ${file.wrong}`);
  const { path, bytes, mime } = file;
  const name = value.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "");
  const sha256 = file.sha256.replace("sha256:", "");
  return { path, name, bytes, sha256, mime: mime ?? "application/octet-stream" };
}
