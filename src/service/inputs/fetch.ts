import { realpathSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import type { Readable } from "node:stream";
import type { Agent } from "undici";

/** The largest accepted input, in bytes. */
export const inputBytesMax = 50 * 1024 * 1024;
const redirectsMax = 3;
const timeoutMs = 20_000;

/**
 * The bytes of an input: a URL, or a file below `root`. Throws with one plain sentence for everything that can be
 * wrong with it; the sentence becomes the error of the task. The signal ends a download, however slow its server is.
 */
export async function fetchInput(
  address: string,
  root: string | undefined,
  signal?: AbortSignal,
): Promise<Uint8Array> {
  if (isLocalPath(address)) return readFile(localFile(address, root));
  const { Agent } = await import("undici");
  const agent = new Agent({
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    connect: { timeout: timeoutMs },
  });
  try {
    return await download(address, agent, signal);
  } finally {
    await agent.destroy();
  }
}

/**
 * The real path of a local input. Throws with a plain sentence unless it is a file below `root` that is not too large;
 * no link leads out of the folder.
 */
function localFile(path: string, root: string | undefined): string {
  if (root === undefined) throw new Error(`${path} is a local file, and this sandbox takes none`);
  const folder = realpathSync(root);
  const real = existing(resolve(folder, path));
  if (real === null) throw new Error(`${path} does not exist`);
  const inside = relative(folder, real);
  if (inside === "" || inside === ".." || inside.startsWith(`..${sep}`) || resolve(folder, inside) !== real) {
    throw new Error(`${path} is outside the folder for inputs`);
  }
  const facts = statSync(real);
  if (!facts.isFile()) throw new Error(`${path} is not a file`);
  if (facts.size > inputBytesMax) throw new Error(`${path} is larger than ${inputBytesMax} bytes`);
  return real;
}

function existing(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** Follows a few redirects itself, so that each address is checked by the same rule. */
async function download(first: string, agent: Agent, signal?: AbortSignal): Promise<Uint8Array> {
  let address = first;
  for (let hop = 0; hop <= redirectsMax; hop++) {
    const problem = inputProblem(address, undefined);
    if (problem) throw new Error(`${address} ${problem}`);
    const { statusCode, headers, body } = await get(address, agent, signal);
    const location = headers["location"];
    if (statusCode >= 300 && statusCode < 400 && typeof location === "string") {
      discard(body);
      address = new URL(location, address).href;
      continue;
    }
    if (statusCode === 200) return readLimited(address, body);
    discard(body);
    throw new Error(`${address} answered ${statusCode}`);
  }
  throw new Error(`${first} redirects more than ${redirectsMax} times`);
}

/** Discards an unused body. Undici reports that as a stream error, which is ignored. */
export function discard(body: Readable): void {
  body.on("error", () => {});
  body.destroy();
}

async function get(address: string, agent: Agent, signal?: AbortSignal) {
  const { origin, pathname, search } = new URL(address);
  try {
    return await agent.request({
      origin,
      path: pathname + search,
      method: "GET",
      headers: { accept: "*/*" },
      signal: signal ?? null,
    });
  } catch (error) {
    throw new Error(`${address} cannot be reached: ${error instanceof Error ? error.message : error}`);
  }
}

async function readLimited(address: string, body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > inputBytesMax) throw new Error(`${address} is larger than ${inputBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const scheme = /^([a-z][a-z0-9+.-]*):/i;

/**
 * What is wrong with a media field's value, to be read after the field's name; null when nothing is. Inputs are https,
 * http on this machine only, and, if there is a folder for them, local files. Those must exist already, so that no task
 * is paid for whose input is missing.
 */
export function inputProblem(value: string, inputRoot: string | undefined): string | null {
  if (isLocalPath(value)) return localProblem(value, inputRoot);
  const url = URL.canParse(value) ? new URL(value) : null;
  if (!url) return "is not a URL that can be read.";
  if (url.protocol === "https:") return null;
  if (url.protocol === "http:")
    return isLoopback(url.hostname) ? null : "must be https, or http on this machine.";
  return `may not have the scheme ${url.protocol}`;
}

function localProblem(path: string, root: string | undefined): string | null {
  if (root === undefined) return "must be a URL: https://…";
  try {
    localFile(path, root);
    return null;
  } catch (error) {
    return `cannot be used: ${error instanceof Error ? error.message : error}.`;
  }
}

/** Whether a host name of a URL means this machine. */
export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(\.\d{1,3}){3}$/.test(hostname);
}

/** Whether a media field's value is a path and not a URL. */
function isLocalPath(value: string): boolean {
  return !scheme.test(value);
}
