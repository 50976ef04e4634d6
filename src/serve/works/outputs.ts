import { createWriteStream } from "node:fs";
import { copyFile, mkdir, open, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, extname, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Dispatcher } from "undici";
import type { Category } from "../../api/records.js";
import { type JobOutput, JobRefused } from "../../providers/provider.js";
import type { Proxies } from "../../proxy/variables.js";
import { discard } from "../../service/inputs/fetch.js";

/** Finished files on disk: fetched whole, checked, and only then called outputs. */

/** The largest file that is taken from a provider, in bytes. */
const outputBytesMax = 4 * 1024 * 1024 * 1024;
const idleMs = 60_000;
const redirectsMax = 5;

/** A file that could not be fetched this time. */
export class NotFetched extends Error {
  override readonly name = "NotFetched";

  constructor(
    message: string,
    /** The address has nothing any more: a new one may help, another try will not. */
    readonly gone: boolean,
  ) {
    super(message);
  }
}

/** A file of at most so many bytes is checked in memory, which takes a fraction of the calls of the system. */
const smallBytes = 1024 * 1024;

export interface OutputPlace {
  folder: string;
  number: number;
  category: Category;
  proxies: Proxies | null;
}

/**
 * Brings one output into `folder` as `<number>.<extension>` and returns the extension. Throws `JobRefused` if what is there is
 * not what was asked for, and NotFetched or a system's error if it could not be brought. One that is in `folder` already stays.
 */
export async function bringOutput(
  output: JobOutput,
  { folder, number, category, proxies }: OutputPlace,
  signal: AbortSignal,
): Promise<string> {
  if ("path" in output && dirname(output.path) === folder) return extname(output.path).slice(1);
  await mkdir(folder, { recursive: true });
  const part = join(folder, `${number}.part`);
  if ("path" in output) await copyFile(output.path, part);
  else if ("url" in output) await download(output.url, output.headers ?? {}, part, proxies, signal);
  const extension = await checkedExtension(
    "bytes" in output ? output.bytes : await contentOf(part),
    category,
  );
  if ("bytes" in output) await writeFile(part, output.bytes, { flush: true });
  else await synced(part);
  await rename(part, join(folder, `${number}.${extension}`));
  await synced(folder);
  return extension;
}

/** The bytes of a small file, the path of another. */
async function contentOf(path: string): Promise<Uint8Array | string> {
  const { size } = await stat(path);
  return size > smallBytes ? path : readFile(path);
}

async function synced(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function download(
  address: string,
  headers: Record<string, string>,
  path: string,
  proxies: Proxies | null,
  signal: AbortSignal,
): Promise<void> {
  const { connectionsTo } = await import("../../proxy/tunnel.js");
  const options = { headersTimeout: idleMs, bodyTimeout: idleMs, connect: { timeout: idleMs } };
  const agents: Dispatcher[] = [];
  const agentFor = (url: URL) => {
    const agent = connectionsTo(url, proxies, options);
    agents.push(agent);
    return agent;
  };
  try {
    const { statusCode, headers: answered, body } = await followed(agentFor, address, headers, signal);
    if (statusCode !== 200) {
      discard(body);
      const gone = statusCode === 403 || statusCode === 404 || statusCode === 410;
      throw new NotFetched(`the provider's file answered ${statusCode}`, gone);
    }
    let size = 0;
    const counted = new Transform({
      transform(chunk: Uint8Array, _, done) {
        size += chunk.byteLength;
        done(size > outputBytesMax ? new Error("the provider's file is too large") : null, chunk);
      },
    });
    await pipeline(body, counted, createWriteStream(path), { signal });
    const length = answered["content-length"];
    if (typeof length === "string" && answered["content-encoding"] === undefined && Number(length) !== size)
      throw new NotFetched(`the provider's file broke off after ${size} of ${length} bytes`, false);
  } finally {
    await Promise.all(agents.map((agent) => agent.destroy()));
  }
}

/** The answer at the end of a few redirects. One to another host loses the headers, which only the first is to know. */
async function followed(
  agentFor: (url: URL) => Dispatcher,
  first: string,
  headers: Record<string, string>,
  signal: AbortSignal,
) {
  const { origin } = new URL(first);
  let address = new URL(first);
  for (let hop = 0; ; hop++) {
    const answer = await agentFor(address).request({
      origin: address.origin,
      path: address.pathname + address.search,
      method: "GET",
      headers: address.origin === origin ? headers : {},
      signal,
    });
    const { location } = answer.headers;
    if (answer.statusCode < 300 || answer.statusCode >= 400 || typeof location !== "string") return answer;
    discard(answer.body);
    if (hop === redirectsMax) throw new NotFetched("the provider's file redirects too often", false);
    address = new URL(location, address);
  }
}

/** The extension of a finished file. Throws `JobRefused` if it is empty, of another kind or broken. */
async function checkedExtension(content: Uint8Array | string, category: Category): Promise<string> {
  if (content.length === 0) throw new JobRefused("provider", "The provider's answer was empty.");
  const { fileTypeFromBuffer, fileTypeFromFile } = await import("file-type");
  const found = await (typeof content === "string" ? fileTypeFromFile(content) : fileTypeFromBuffer(content));
  const isPdf = category === "image" && found?.mime === "application/pdf";
  if (!isPdf && !found?.mime.startsWith(`${category}/`)) {
    throw new JobRefused(
      "provider",
      `The provider's answer is ${found?.mime ?? "of no known kind"}, not ${category}.`,
    );
  }
  if (category === "image" && !isPdf) await decode(content);
  return found?.ext === "jpg" || found === undefined ? "jpg" : found.ext;
}

async function decode(content: Uint8Array | string): Promise<void> {
  const { default: sharp } = await import("sharp");
  try {
    await sharp(content, { failOn: "truncated", limitInputPixels: 300_000_000 })
      .resize(8, 8, { fit: "fill", fastShrinkOnLoad: false })
      .raw()
      .toBuffer();
  } catch {
    throw new JobRefused("provider", "The provider's picture is broken.");
  }
}

const contentTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  webp: "image/webp",
  gif: "image/gif",
  avif: "image/avif",
  pdf: "application/pdf",
  mp4: "video/mp4",
  mov: "video/quicktime",
  webm: "video/webm",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
  opus: "audio/ogg",
  flac: "audio/flac",
  m4a: "audio/mp4",
};

export function contentTypeOf(path: string): string {
  return contentTypes[extname(path).slice(1)] ?? "application/octet-stream";
}

/** Removes a folder with all that is in it, if it is there. */
export function removeFolder(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true });
}
