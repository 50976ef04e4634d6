import type { LocalInput } from "../../src/manifest/local-inputs.js";
import {
  PublishError,
  type Published,
  type Publisher,
  type PublishFile,
} from "../../src/publish/publisher.js";
import type { PublishPorts } from "../../src/run/publishing.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { chance } from "./chance.js";
import { sha256 } from "./files.js";
import { itemOf } from "./jobs.js";
import type { Kernel } from "./kernel.js";
import type { Process } from "./machine.js";
import type { MemoryDisk } from "./memory-disk.js";
import type { PublishPlan } from "./publishing.js";
import type { Scenario } from "./scenario.js";
import type { Job } from "./workspace.js";

const origin = "https://bucket.example";

/** What every reason begins with that may be gone the next time. */
export const bucketTrouble = "the bucket did not answer";

/** What lies at an address that the bucket has given. */
export interface PublishedAt {
  sha256: string;
  /** When it was asked for, and until when it is good (ms of the one true time). */
  givenAt: number;
  expires: number;
}

/**
 * The local files of the simulated machine, and the bucket that they are published to, from which the service reads them.
 * Publishing takes its time, fails now and then, and is one effect, at which a process can die.
 */
export class SimulatedBucket {
  private readonly given = new Map<string, PublishedAt>();
  private readonly beganAt: number;
  private count = 0;

  constructor(
    private readonly plan: PublishPlan,
    private readonly kernel: Kernel,
    private readonly seed: number,
    private readonly disk: MemoryDisk,
    /** A publication begins. */
    private readonly begins: (process: Process, sha256: string) => void,
  ) {
    this.beganAt = kernel.now();
  }

  /** The publishing ports of one process; `folder` is the archive's for its job. */
  portsOf(process: Process, folder: string): PublishPorts {
    return {
      publisher: () => this.publisherOf(process),
      localInput: (value) => process.look(async () => this.localInput(value)),
      archived: (file) =>
        process.look(async () => inputOf(`${folder}/${file}`, this.disk.content(`${folder}/${file}`))),
      linkTo: async () => {
        throw new Error("no output of a simulation is in a bucket alone");
      },
      interrupt: new AbortController().signal,
    };
  }

  at(address: string): PublishedAt | null {
    return this.given.get(address) ?? null;
  }

  /** Whether a file is what it was when the run was planned. */
  isAsPlanned(file: string): boolean {
    return this.content(file)?.equals(plannedContent(file)) === true;
  }

  /** Whether it is, or will be once more. */
  willBeAsPlanned(file: string): boolean {
    return this.isAsPlanned(file) || this.changeOf(file)?.toMs !== null;
  }

  private changeOf(file: string): PublishPlan["changes"][number] | undefined {
    return this.plan.changes.find((change) => change.file === file);
  }

  private content(file: string): Buffer | null {
    const passed = this.kernel.now() - this.beganAt;
    const change = this.changeOf(file);
    if (change === undefined || passed < change.fromMs || (change.toMs !== null && passed >= change.toMs))
      return plannedContent(file);
    return change.isGone ? null : Buffer.from(`another ${file}`);
  }

  private localInput(file: string): LocalInput {
    return inputOf(file, this.content(file));
  }

  private publisherOf(process: Process): Publisher {
    return {
      name: "s3://inputs",
      publish: (file) => process.effect("publish", [file.name], () => this.publish(process, file)),
    };
  }

  private async publish(process: Process, { path, sha256: hash }: PublishFile): Promise<Published> {
    const { lifeMs, longestMs, failing, outage } = this.plan;
    const { kernel } = this;
    this.begins(process, hash);
    const lot = chance(this.seed, "publish", ++this.count);
    const began = process.clock.now();
    const givenAt = kernel.now();
    await kernel.sleep(lot.scale(Math.min(100, longestMs), longestMs));
    const passed = kernel.now() - this.beganAt;
    const isOut = outage !== undefined && passed >= outage.fromMs && passed < outage.toMs;
    if (isOut || lot.is(failing)) throw new PublishError(`${bucketTrouble} (503)`);
    // A file that changes while it is sent does not have the hash that was announced.
    const content = path.startsWith("/") ? this.disk.content(path) : this.content(path);
    if (content === null || sha256(content) !== hash) throw new PublishError(`${bucketTrouble} (400)`);
    const expires = givenAt + lifeMs;
    const url = `${origin}/${hash}?n=${this.count}&expires=${expires}`;
    this.given.set(url, { sha256: hash, givenAt, expires });
    return { url, until: began + lifeMs };
  }
}

/** As it is when the run is planned. Some files have the same content. */
function plannedContent(file: string): Buffer {
  return Buffer.from(`photo ${file.split("-")[1]}`);
}

/** As a plan has it. */
export function plannedHash(file: string): string {
  return `sha256:${sha256(plannedContent(file))}`;
}

function inputOf(path: string, content: Buffer | null): LocalInput {
  if (content === null) return { wrong: "there is no such file", expected: "a file" };
  return { path, sha256: `sha256:${sha256(content)}`, bytes: content.length, mime: "image/png" };
}

/** Whether a job has left items blocked whose files may yet be published: whoever is told why comes back. */
export async function awaitsBucket(
  bucket: SimulatedBucket | null,
  { items }: Pick<Scenario, "items">,
  store: Store,
  { run, number }: Pick<Job, "run" | "number">,
): Promise<boolean> {
  if (bucket === null || run === null) return false;
  return (await store.blocked(run.id)).some(({ rowId, note }) => {
    if (note?.includes(bucketTrouble)) return true;
    const file = items.find(({ id }) => id === itemOf(number, rowId))?.file;
    const isForFile = note?.startsWith("cannot be published") === true;
    return isForFile && file !== undefined && bucket.willBeAsPlanned(file);
  });
}
