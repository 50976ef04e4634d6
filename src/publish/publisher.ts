import { extname } from "node:path";
import { type Bucket, BucketError, bucketTarget, linkSecondsMax, openBucket } from "../bucket/bucket.js";
import type { Clock } from "../clock.js";
import { runShell } from "../shell.js";
import type { Environment } from "../text/environment.js";

/** Puts local inputs where the service can read them. */
export interface Publisher {
  /** Where it puts them, for messages. Addresses that it gave belong to this name. */
  readonly name: string;
  /** Its addresses are made of the files' names. */
  readonly byName?: true;
  /** Rejects with PublishError. */
  publish(file: PublishFile): Promise<Published>;
}

export interface PublishFile {
  /** Absolute. */
  path: string;
  /** Relative to the manifest's folder, with `/` between its parts. */
  name: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mime: string;
}

export interface Published {
  url: string;
  /** When the address expires (UTC ms); null for never. */
  until: number | null;
}

/** A file could not be published. The message says why. */
export class PublishError extends Error {
  override readonly name: string = "PublishError";
}

/** A file could not be published, because it is not archived yet. */
export class NotArchivedError extends PublishError {
  override readonly name = "NotArchivedError";
}

export interface PublishPlace {
  /** `s3://bucket/prefix`, or an address under which the files are already; null when a command is given. */
  to: string | null;
  /** A command that prints the address of the file in BULKGEN_FILE. */
  command: string | null;
  /** How long an address must stay valid (ms). */
  expiresMs: number;
}

/** The settings for where local inputs go. A job file overrides the settings files; flags and variables override it. */
export interface PublishSettings {
  /** By a flag or a variable. */
  given: Partial<PublishPlace>;
  /** By the settings files. */
  configured: Partial<PublishPlace>;
}

const expiresMsDefault = 86_400_000;

/** Where local inputs go; null if nothing says so. */
export function publishPlace(
  { given, configured }: PublishSettings,
  ofJob: { to?: string | undefined; expiresMs?: number | null | undefined },
): PublishPlace | null {
  const expiresMs = given.expiresMs ?? ofJob.expiresMs ?? configured.expiresMs ?? expiresMsDefault;
  const place = [given, ofJob as Partial<PublishPlace>, configured].find(
    ({ to, command }) => typeof to === "string" || typeof command === "string",
  );
  return place === undefined ? null : { to: place.to ?? null, command: place.command ?? null, expiresMs };
}

export interface Surroundings {
  environment: Environment;
  cwd: string;
  clock: Clock;
  /** Ends what is being published. */
  interrupt: AbortSignal;
}

/** How long a publish command may take (ms). */
const commandMsMax = 600_000;

/** What `publish` may be, for messages. */
export const publishForms = "s3://bucket/prefix, or the https:// address of a folder";

export function isPublishTarget(text: string): boolean {
  return bucketTarget(text) !== null || folderAddress(text) !== null;
}

/** Throws PublishError when the place cannot be used as it is set up. */
export function openPublisher(settings: PublishPlace, surroundings: Surroundings): Publisher {
  const { to, command } = settings;
  if (command !== null) return byCommand(command, settings, surroundings);
  const target = to === null ? null : bucketTarget(to);
  if (target !== null) {
    try {
      return toBucket(
        openBucket(target, surroundings.environment, surroundings.interrupt),
        settings,
        surroundings,
      );
    } catch (error) {
      throw publishError(error);
    }
  }
  const base = to === null ? null : folderAddress(to);
  if (base === null) throw new PublishError(`publish: expected ${publishForms}, got ${JSON.stringify(to)}`);
  return atAddress(base);
}

/** The files are there already, at the same paths as below the manifest's folder. */
function atAddress(base: URL): Publisher {
  return {
    name: base.href,
    byName: true,
    publish: async ({ name }) => ({
      url: new URL(name.split("/").map(encodeURIComponent).join("/"), base).href,
      until: null,
    }),
  };
}

function folderAddress(text: string): URL | null {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  // A service takes https; the sandbox reads from this machine.
  if (url.protocol === "http:" && !["localhost", "127.0.0.1", "[::1]"].includes(url.hostname)) return null;
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url.search === "" && url.hash === "" ? url : null;
}

/** Objects are named after their content, so each is uploaded once, whoever runs it. */
function toBucket(bucket: Bucket, { expiresMs }: PublishPlace, { clock }: Surroundings): Publisher {
  return {
    name: bucket.name,
    async publish(file) {
      const key = `${file.sha256}${extname(file.name).toLowerCase()}`;
      try {
        const has = await bucket.find(key);
        if (has?.bytes !== file.bytes || has.sha256 !== file.sha256) await bucket.put(key, file);
        const seconds = Math.min(Math.ceil(expiresMs / 1000), linkSecondsMax);
        const until = clock.now() + seconds * 1000;
        return { url: await bucket.link(key, seconds), until };
      } catch (error) {
        throw publishError(error);
      }
    },
  };
}

function publishError(error: unknown): unknown {
  return error instanceof BucketError ? new PublishError(error.message, { cause: error }) : error;
}

function byCommand(command: string, { expiresMs }: PublishPlace, surroundings: Surroundings): Publisher {
  const { environment, cwd, clock, interrupt } = surroundings;
  return {
    name: `command ${command}`,
    async publish({ path, name, sha256, mime }) {
      const began = clock.now();
      const ended = new AbortController();
      const late = new AbortController();
      void clock.sleep(commandMsMax, ended.signal).then(() => {
        if (!ended.signal.aborted) late.abort();
      });
      const { trouble, printed } = await runShell({
        command,
        cwd,
        environment,
        facts: { BULKGEN_FILE: path, BULKGEN_NAME: name, BULKGEN_SHA256: sha256, BULKGEN_MIME: mime },
        signal: AbortSignal.any([late.signal, interrupt]),
        reads: "stdout",
      });
      ended.abort();
      if (trouble !== null) throw new PublishError(`the publish command ${trouble}, for ${name}`);
      return { url: addressIn(printed, name), until: began + expiresMs };
    },
  };
}

/** The last line of what the command printed. */
function addressIn(printed: string, name: string): string {
  const line = printed.trimEnd().split("\n").at(-1)?.trim() ?? "";
  if (/^https?:\/\/\S+$/i.test(line) && URL.canParse(line)) return line;
  if (/^https?:\/\/\S+\s/i.test(line))
    throw new PublishError(
      `the publish command's last line for ${name} has a space in it, and an address has none: print the address alone, with %20 for each space in it; got ${JSON.stringify(line.slice(0, 200))}`,
    );
  const got = line === "" ? "nothing" : JSON.stringify(line.slice(0, 100));
  throw new PublishError(
    `the publish command gave no address for ${name}: expected an https:// address on its last line, got ${got}`,
  );
}
