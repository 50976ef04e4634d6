import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import type { AWSHeaders, S3Config, S3mini, UploadPart } from "s3mini";
import type { RequestInit as UndiciRequest } from "undici";
import { type Proxies, ProxyError, proxiesIn } from "../proxy/variables.js";
import type { Environment } from "../text/environment.js";

/**
 * A bucket of an S3-compatible store. Its address and credentials come from the variables that other S3 programs read
 * too, so a machine that is set up for them needs nothing more.
 */
export interface Bucket {
  /** `s3://bucket/prefix`, for messages. */
  readonly name: string;
  /** Uploads a file, which must have these facts, and returns when the store has all of it. */
  put(key: string, file: ObjectFile): Promise<void>;
  /** Gives an object a second key, and returns when the store has all of it. Its bytes do not leave the store. */
  copy(from: string, to: string): Promise<void>;
  /** Removes an object; fine when there is none. */
  remove(key: string): Promise<void>;
  /** Names in a folder, which is a key or empty; those of folders end in `/`. */
  list(folder: string): Promise<string[]>;
  /** What the store has under a key; null when it has nothing. */
  find(key: string): Promise<StoredObject | null>;
  /** The content of an object, in pieces: all of it, or the bytes from `start` up to and without `end`. */
  read(key: string, range?: { start: number; end: number }): AsyncIterable<Uint8Array>;
  /** An address at which anyone can read the object for this many seconds. */
  link(key: string, seconds: number): Promise<string>;
}

interface ObjectFile {
  /** Absolute. */
  path: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mime: string;
}

interface StoredObject {
  bytes: number;
  /** The hash that was stored with the upload; null for an object of another program. */
  sha256: string | null;
}

/** The bucket cannot be used, or refuses something. The message says what to do. */
export class BucketError extends Error {
  override readonly name = "BucketError";
  /** Trying again does not help until a person changes the credentials, their rights, or the bucket. */
  readonly isForGood: boolean;

  constructor(
    message: string,
    { isForGood = false, ...options }: ErrorOptions & { isForGood?: boolean } = {},
  ) {
    super(message, options);
    this.isForGood = isForGood;
  }
}

export interface BucketTarget {
  bucket: string;
  /** Without slashes at its ends; empty for none. */
  prefix: string;
}

/** The parts of `s3://bucket/prefix`; null for other text. */
export function bucketTarget(text: string): BucketTarget | null {
  const [, bucket, prefix = ""] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(text) ?? [];
  return bucket === undefined ? null : { bucket, prefix: prefix.replace(/^\/+|\/+$/g, "") };
}

/** A larger object is uploaded in parts of this size. */
const partBytes = 8 * 2 ** 20;
/** S3 itself cannot copy a larger object. */
const copyBytesMax = 5 * 2 ** 30;
/** For one request, which carries at most one part. */
const answerMsMax = 300_000;
/** The longest time for which S3 signs an address (s). */
export const linkSecondsMax = 604_800;

/** Throws BucketError when the environment does not say how to reach it. The signal ends its requests. */
export function openBucket(
  { bucket, prefix }: BucketTarget,
  environment: Environment,
  signal?: AbortSignal,
  requestMsMax = answerMsMax,
): Bucket {
  const name = `s3://${bucket}${prefix === "" ? "" : `/${prefix}`}`;
  const access = accessTo(name, environment);
  const endpoint = `${endpointOf(environment)}/${bucket}`;
  const proxies = proxiesOf(environment);
  let opened: Promise<S3mini> | undefined;
  const client = () => {
    opened ??= open(
      { ...access, endpoint, minPartSize: partBytes, requestAbortTimeout: requestMsMax },
      proxies,
      signal,
    );
    return opened;
  };
  const keyOf = (key: string) => (prefix === "" ? key : `${prefix}/${key}`);
  const attempt = async <Result>(what: string, act: (s3: S3mini) => Promise<Result>): Promise<Result> => {
    try {
      return await act(await client());
    } catch (error) {
      throw bucketError(error, name, what);
    }
  };
  const find = (key: string) =>
    attempt(`the request for ${key}`, async (s3) => stored(await s3.getObjectRaw(keyOf(key), false, 0, 1)));
  async function* read(key: string, range?: { start: number; end: number }) {
    const what = `the download of ${key}`;
    const answer = await attempt(what, (s3) =>
      s3.getObjectRaw(keyOf(key), range === undefined, range?.start, range?.end),
    );
    if (answer.body === null) return;
    try {
      for await (const piece of answer.body) yield piece;
    } catch (error) {
      throw bucketError(error, name, what);
    }
  }
  const confirm = async (key: string, expected: StoredObject) => {
    const has = await find(key);
    if (has.bytes !== expected.bytes || has.sha256 !== expected.sha256)
      throw new BucketError(
        `${name} has another ${key} than was uploaded: expected ${expected.bytes} bytes with hash ${expected.sha256}, got ${has.bytes} with ${has.sha256 ?? "no hash"}`,
      );
  };
  return {
    name,
    find: (key) =>
      find(key).catch((error: unknown) => {
        if (isMissingObject(error)) return null;
        throw error;
      }),
    async put(key, file) {
      const { bytes, sha256, mime } = file;
      const headers = { "x-amz-meta-sha256": sha256 };
      // A store that knows this header refuses content that was damaged on the way.
      const proof = { "x-amz-checksum-sha256": Buffer.from(sha256, "hex").toString("base64") };
      await attempt(`the upload of ${file.path}`, async (s3) => {
        if (bytes <= partBytes) {
          const content = await readFile(file.path);
          await s3.putObject(keyOf(key), content, mime, undefined, { ...headers, ...proof });
        } else await putParts(s3, keyOf(key), contentOf(file.path), { sha256, mime }, headers);
      });
      await confirm(key, file);
    },
    async copy(from, to) {
      const source = await find(from);
      await attempt(`the copy of ${from} to ${to}`, async (s3) => {
        // Some stores do not take the slashes as the library encodes them.
        const path = [bucket, ...keyOf(from).split("/")].map(encodeURIComponent).join("/");
        const additionalHeaders = { "x-amz-copy-source": `/${path}` };
        if (source.bytes <= copyBytesMax)
          return void (await s3.copyObject(keyOf(from), keyOf(to), { additionalHeaders }));
        const { sha256 } = source;
        const headers: AWSHeaders = sha256 === null ? {} : { "x-amz-meta-sha256": sha256 };
        await putParts(s3, keyOf(to), read(from), { sha256, mime: "application/octet-stream" }, headers);
      });
      await confirm(to, source);
    },
    remove: (key) =>
      attempt(`the removal of ${key}`, async (s3) => {
        await s3.deleteObject(keyOf(key));
      }),
    async list(folder) {
      const above = folder === "" ? keyOf("") : `${keyOf(folder)}/`;
      const found = await attempt(`the list of ${folder}`, (s3) =>
        s3.listObjects("/", above, undefined, { delimiter: "/" }),
      );
      if (found === null) throw noBucket(name);
      return found.map(({ Key }) => Key.slice(above.length)).filter((own) => own !== "");
    },
    read,
    link: (key, seconds) =>
      attempt(`the signing of an address for ${key}`, (s3) =>
        s3.getPresignedUrl("GET", keyOf(key), Math.min(seconds, linkSecondsMax)),
      ),
  };
}

/** The store checks each part on its way, and the whole is checked before the object gets its key. */
async function putParts(
  s3: S3mini,
  key: string,
  content: AsyncIterable<Uint8Array>,
  { sha256, mime }: { sha256: string | null; mime: string },
  headers: AWSHeaders,
): Promise<void> {
  const upload = await s3.getMultipartUploadId(key, mime, undefined, headers);
  try {
    const parts: UploadPart[] = [];
    const whole = createHash("sha256");
    for await (const part of inParts(content)) {
      whole.update(part);
      const proof = { "content-md5": createHash("md5").update(part).digest("base64") } as AWSHeaders;
      const send = () => s3.uploadPart(key, upload, part, parts.length + 1, {}, undefined, proof);
      // A large file should not fail because of one part.
      parts.push(await send().catch(send));
    }
    const hash = whole.digest("hex");
    if (sha256 !== null && hash !== sha256)
      throw new BucketError(`the file has changed: expected the hash ${sha256}, got ${hash}`);
    await s3.completeMultipartUpload(key, upload, parts);
  } catch (error) {
    await s3.abortMultipartUpload(key, upload).catch(() => undefined);
    throw error;
  }
}

async function* inParts(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of content) {
    for (let at = 0; at < piece.length; ) {
      const some = piece.subarray(at, at + partBytes - bytes);
      pieces.push(some);
      bytes += some.length;
      at += some.length;
      if (bytes < partBytes) continue;
      yield Buffer.concat(pieces);
      pieces = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield Buffer.concat(pieces);
}

function proxiesOf(environment: Environment): Proxies | null {
  try {
    return proxiesIn(environment);
  } catch (error) {
    if (error instanceof ProxyError) throw new BucketError(error.message, { isForGood: true, cause: error });
    throw error;
  }
}

async function open(config: S3Config, proxies: Proxies | null, signal?: AbortSignal): Promise<S3mini> {
  // Loaded late: many commands need only the name of a bucket.
  const [{ S3mini: Client }, { fetch }, { proxied }] = await Promise.all([
    import("s3mini"),
    import("undici"),
    import("../proxy/tunnel.js"),
  ]);
  const by = proxies === null ? {} : { dispatcher: proxied(proxies, {}) };
  const send = async (url: RequestInfo, init: RequestInit = {}) => {
    const signals = [init.signal, signal].filter((each) => each instanceof AbortSignal);
    const request = { ...init, ...by, signal: AbortSignal.any(signals) } as UndiciRequest;
    return bounded((await fetch(url as string, request)) as unknown as Response);
  };
  return new Client({ ...config, fetch: send as unknown as NonNullable<S3Config["fetch"]> });
}

/** An error of S3 has some hundred bytes, and a page of a list some hundred thousand. */
const errorBytesMax = 64 * 1024;
const documentBytesMax = 8 * 2 ** 20;
/** Documents of S3 close what they open; the library that reads them needs minutes for one that does not. */
const openTagsMax = 100;

/**
 * The answer with a bounded document: a server that is not a store, or one that unpacks to gigabytes, must not fill the
 * memory. Objects stay as they are: they are not read whole.
 */
async function bounded(answer: Response): Promise<Response> {
  const isDocument = /\bxml\b/i.test(answer.headers.get("content-type") ?? "");
  if ((answer.ok && !isDocument) || answer.body === null) return answer;
  const text = await textUpTo(answer.body, answer.ok ? documentBytesMax : errorBytesMax);
  const opened = (text.match(/<[A-Za-z]/g)?.length ?? 0) - (text.match(/\/>/g)?.length ?? 0);
  const closed = text.match(/<\//g)?.length ?? 0;
  const { status, statusText } = answer;
  const headers = new Headers(answer.headers);
  for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  return new Response(opened - closed > openTagsMax ? "" : text, { status, statusText, headers });
}

/** As much of a body as fits; the rest is not read. */
async function textUpTo(body: ReadableStream<Uint8Array>, bytesMax: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece.subarray(0, bytesMax - bytes));
    bytes += piece.length;
    if (bytes >= bytesMax) break;
  }
  return Buffer.concat(pieces).toString();
}

function contentOf(path: string): AsyncIterable<Uint8Array> {
  return createReadStream(path, { highWaterMark: 2 ** 20 });
}

function stored(answer: Response): StoredObject {
  void answer.body?.cancel();
  const whole = /\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1];
  return {
    bytes: Number(whole ?? answer.headers.get("content-length")),
    sha256: answer.headers.get("x-amz-meta-sha256"),
  };
}

function accessTo(name: string, environment: Environment) {
  const { AWS_ACCESS_KEY_ID: id = "", AWS_SECRET_ACCESS_KEY: secret = "" } = environment;
  const missing = Object.entries({ AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret })
    .filter(([, value]) => value === "")
    .map(([variable]) => variable);
  if (missing.length > 0)
    throw new BucketError(`${name} cannot be used: set ${missing.join(" and ")}`, { isForGood: true });
  return { accessKeyId: id, secretAccessKey: secret, region: regionOf(environment) };
}

function regionOf({ AWS_REGION: region, AWS_DEFAULT_REGION: other }: Environment): string {
  return region || other || "us-east-1";
}

function endpointOf(environment: Environment): string {
  const { AWS_ENDPOINT_URL_S3: ofS3, AWS_ENDPOINT_URL: general } = environment;
  const given = ofS3 || general || `https://s3.${regionOf(environment)}.amazonaws.com`;
  if (!URL.canParse(given))
    throw new BucketError(`AWS_ENDPOINT_URL is not an address: ${given}`, { isForGood: true });
  return given.replace(/\/+$/, "");
}

interface Refusal {
  status?: number;
  serviceCode?: string;
}

function refusalIn(error: unknown): Refusal {
  const { status, serviceCode, cause } = error as Refusal & { cause?: unknown };
  if (status !== undefined || !(cause instanceof Error))
    return { ...(status ? { status } : {}), ...(serviceCode ? { serviceCode } : {}) };
  return refusalIn(cause);
}

function isMissingObject(error: unknown): boolean {
  const { status, serviceCode } = refusalIn((error as Error).cause);
  return status === 404 && serviceCode !== "NoSuchBucket" && isCode(serviceCode);
}

/** Whether it is an error code of S3, such as NoSuchKey. A server that is not a store, such as a web server, sends none. */
function isCode(serviceCode: string | undefined): boolean {
  return serviceCode !== undefined && serviceCode !== "Unknown";
}

/** The error in plain words. S3's own messages repeat addresses, which are signed. */
function bucketError(error: unknown, name: string, what: string): BucketError {
  if (error instanceof BucketError) return error;
  const { status, serviceCode } = refusalIn(error);
  const code = isCode(serviceCode) ? ` (${serviceCode})` : "";
  const options = { cause: error };
  if (serviceCode === "NoSuchBucket") return noBucket(name, error);
  if (status === 404 && code === "")
    return new BucketError(
      `${name} cannot be reached: the server that answered ${what} is not an S3 store (404): check AWS_ENDPOINT_URL`,
      { ...options, isForGood: true },
    );
  if (status === 401 || status === 403)
    return new BucketError(
      `${name} refused ${what}${code}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do`,
      { ...options, isForGood: true },
    );
  if (status !== undefined) return new BucketError(`${name} answered ${what} with ${status}${code}`, options);
  return new BucketError(`${name} did not answer ${what} (${whyNoAnswer(error as Error)})`, options);
}

function noBucket(name: string, cause?: unknown): BucketError {
  const [bucket] = name.replace(/^s3:\/\//, "").split("/");
  return new BucketError(`the bucket ${bucket} does not exist: create it, or correct its name`, {
    cause,
    isForGood: true,
  });
}

function whyNoAnswer({ name, cause }: Error): string {
  if (name === "TimeoutError") return "it took too long";
  if (cause instanceof Error && cause.cause instanceof Error) return whyNoAnswer(cause);
  const { code, message } = (cause ?? {}) as { code?: string; message?: string };
  return code ?? message ?? name;
}
