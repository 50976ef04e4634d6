import { lookup } from "node:dns";
import { createWriteStream } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import type { LookupFunction } from "node:net";
import { dirname } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import ipaddr from "ipaddr.js";
import { JobRefused, type MediaFile, type MediaName } from "../../providers/provider.js";
import type { Proxies } from "../../proxy/variables.js";
import { discard, inputBytesMax } from "../../service/inputs/fetch.js";

/**
 * Inputs are fetched from public https addresses, from the service's own outputs and uploads, and from nowhere else: whoever may
 * name an address to a service on a network could otherwise read what only that network may.
 */

/** A file of this service by its address; undefined if the address is not ours. Throws `JobRefused` if it may not be read. */
export type OwnFile = (address: string) => { path: string } | undefined;

const redirectsMax = 3;
const idleMs = 30_000;

/** What is wrong with the address of an input, to be read after the field's name; null when nothing is. */
export function inputAddressProblem(
  value: string,
  isOwn: (address: string) => boolean,
  allowedHosts: readonly string[],
): string | null {
  const url = URL.canParse(value) ? new URL(value) : null;
  if (url === null) return "is not an address that can be read: it must begin with https://.";
  if (isOwn(value)) return null;
  if (url.username || url.password) return "may have no user and password in it.";
  if (allowedHosts.includes(url.hostname) && /^https?:$/.test(url.protocol)) return null;
  if (url.protocol !== "https:")
    return "must be https, or a file of this service. Other hosts are listed in inputs.allow of the models file.";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (ipaddr.isValid(host) && !isPublic(host)) return "is an address of a private network.";
  return null;
}

function isPublic(address: string): boolean {
  const read = ipaddr.process(address);
  return read.range() === "unicast";
}

export interface InputPlace {
  /** Where the file will be, if it is fetched: a job's own, because an address may have another picture tomorrow. */
  file: string;
  own: OwnFile;
  allowedHosts: readonly string[];
  proxies: Proxies | null;
}

/** The input at an address, on disk. Throws `JobRefused` with a sentence for clients. */
export async function bringInput(
  field: MediaName,
  address: string,
  place: InputPlace,
  signal: AbortSignal,
): Promise<MediaFile> {
  const here = place.own(address);
  const path = here?.path ?? (await fetched(address, place, signal));
  const { fileTypeFromFile } = await import("file-type");
  const found = await fileTypeFromFile(path).catch(() => undefined);
  if (!found?.mime.startsWith(`${field}/`))
    throw new JobRefused("input", `${field}_url is ${found?.mime ?? "of no known kind"}, not ${field}.`);
  return { path, type: found.mime, address: here ? null : address };
}

async function fetched(
  first: string,
  { file, allowedHosts, proxies }: InputPlace,
  signal: AbortSignal,
): Promise<string> {
  await mkdir(dirname(file), { recursive: true });
  const { connectionsTo } = await import("../../proxy/tunnel.js");
  let address = first;
  for (let hop = 0; hop <= redirectsMax; hop++) {
    const problem = inputAddressProblem(address, () => false, allowedHosts);
    if (problem) throw new JobRefused("input", `The input ${shown(address)} ${problem}`);
    const url = new URL(address);
    const isAllowed = allowedHosts.includes(url.hostname);
    const agent = connectionsTo(url, proxies, {
      headersTimeout: idleMs,
      bodyTimeout: idleMs,
      connect: { timeout: idleMs, ...(isAllowed ? {} : { lookup: publicLookup }) },
    });
    try {
      if (proxies !== null && !isAllowed) await refusePrivateName(url.hostname);
      const { origin, pathname, search } = url;
      const path = pathname + search;
      const { statusCode, headers, body } = await agent.request({ origin, path, method: "GET", signal });
      const location = headers["location"];
      if (statusCode >= 300 && statusCode < 400 && typeof location === "string") {
        discard(body);
        address = new URL(location, address).href;
        continue;
      }
      if (statusCode !== 200) {
        discard(body);
        throw new JobRefused("input", `The input ${shown(address)} answered ${statusCode}.`);
      }
      await pipeline(body, bounded(), createWriteStream(`${file}.part`), { signal });
      await rename(`${file}.part`, file);
      return file;
    } catch (error) {
      if (error instanceof JobRefused || signal.aborted) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new JobRefused("input", `The input ${shown(address)} cannot be read: ${why}.`);
    } finally {
      await agent.destroy();
    }
  }
  throw new JobRefused("input", `The input ${shown(first)} redirects more than ${redirectsMax} times.`);
}

function bounded(): Transform {
  let size = 0;
  return new Transform({
    transform(chunk: Uint8Array, _, done) {
      size += chunk.byteLength;
      done(size > inputBytesMax ? new Error(`it is larger than ${inputBytesMax} bytes`) : null, chunk);
    },
  });
}

/** Resolves a name to its public addresses alone, at the moment of the connection, so that a name cannot change in between. */
const publicLookup: LookupFunction = (name, options, done) => {
  lookup(name, { ...options, all: true }, (error, found) => {
    if (error) return done(error, "", 0);
    const allowed = found.filter(({ address }) => isPublic(address));
    const [first] = allowed;
    if (first === undefined) return done(new Error(`${name} is on a private network`), "", 0);
    if (options.all) return done(null, allowed);
    return done(null, first.address, first.family);
  });
};

/** A proxy resolves names itself. One that cannot be resolved here passes: then only the proxy knows where it leads. */
function refusePrivateName(name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    publicLookup(name, { all: true }, (error) => {
      if (error !== null && (error as NodeJS.ErrnoException).code === undefined) reject(error);
      else resolve();
    });
  });
}

/** An address without its query, which may hold a signature. */
function shown(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url === null ? address : url.origin + url.pathname;
}
