import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import type { S3Config, S3mini } from "s3mini";
import { fetch, type RequestInit as UndiciRequest } from "undici";

/**
 * A bucket of an S3-compatible store. Its address and credentials come from the variables that other S3 programs read
 * too, so a machine that is set up for them needs nothing more.
 */
export interface Bucket {
  /** `s3://bucket/prefix`, for messages. */
  readonly name: string;
  /** Uploads a file, which must have these facts, and returns when the store has all of it. */
  put(key: string, file: ObjectFile): Promise<void>;
  /** What the store has under a key; null when it has nothing. */
  find(key: string): Promise<StoredObject | null>;
  /** The content of an object, in pieces. */
  read(key: string): AsyncIterable<Uint8Array>;
  /** An address at which anyone can read the object for so many seconds. */
  link(key: string, seconds: number): Promise<string>;
}

export interface ObjectFile {
  /** Absolute. */
  path: string;
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mime: string;
}

export interface StoredObject {
  bytes: number;
  /** As it was uploaded with it; null for an object of another program. */
  sha256: string | null;
}

/** The bucket cannot be used, or refuses something. The message says what to do. */
export class BucketError extends Error {
  override readonly name = "BucketError";
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

/** An object of more bytes is uploaded in parts of so many. */
const partBytes = 8 * 2 ** 20;
/** For one request, a part at most. */
const answerMsMax = 300_000;
/** The longest time for which S3 signs an address (s). */
export const linkSecondsMax = 604_800;

type Environment = Readonly<Record<string, string | undefined>>;

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
  let opened: Promise<S3mini> | undefined;
  const client = () => {
    opened ??= open(
      { ...access, endpoint, minPartSize: partBytes, requestAbortTimeout: requestMsMax },
      signal,
    );
    return opened;
  };
  const keyOf = (key: string) => (prefix === "" ? key : `${prefix}/${key}`);
  const attempt = async <Result>(what: string, act: (s3: S3mini) => Promise<Result>): Promise<Result> => {
    try {
      return await act(await client());
    } catch (error) {
      throw told(error, name, what);
    }
  };
  const find = (key: string) =>
    attempt(`the question for ${key}`, async (s3) => stored(await s3.getObjectRaw(keyOf(key), false, 0, 1)));
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
        } else await s3.putAnyObject(keyOf(key), streamOf(file.path), mime, undefined, headers);
      });
      const has = await find(key);
      if (has.bytes !== bytes || has.sha256 !== sha256)
        throw new BucketError(
          `${name} has another ${key} than was uploaded: expected ${bytes} bytes with hash ${sha256}, got ${has.bytes} with ${has.sha256 ?? "no hash"}`,
        );
    },
    async *read(key) {
      const what = `the download of ${key}`;
      const answer = await attempt(what, (s3) => s3.getObjectRaw(keyOf(key)));
      if (answer.body === null) return;
      try {
        for await (const piece of answer.body) yield piece;
      } catch (error) {
        throw told(error, name, what);
      }
    },
    link: (key, seconds) =>
      attempt(`the signing of an address for ${key}`, (s3) =>
        s3.getPresignedUrl("GET", keyOf(key), Math.min(seconds, linkSecondsMax)),
      ),
  };
}

async function open(config: S3Config, signal?: AbortSignal): Promise<S3mini> {
  const { S3mini: Client } = await import("s3mini");
  const send = (url: RequestInfo, init: RequestInit = {}) => {
    const signals = [init.signal, signal].filter((each) => each instanceof AbortSignal);
    return fetch(url as string, { ...init, signal: AbortSignal.any(signals) } as UndiciRequest);
  };
  return new Client({ ...config, fetch: send as unknown as NonNullable<S3Config["fetch"]> });
}

function streamOf(path: string): ReadableStream {
  return Readable.toWeb(createReadStream(path, { highWaterMark: 2 ** 20 })) as ReadableStream;
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
  if (missing.length > 0) throw new BucketError(`${name} cannot be used: set ${missing.join(" and ")}`);
  return { accessKeyId: id, secretAccessKey: secret, region: regionOf(environment) };
}

function regionOf({ AWS_REGION: region, AWS_DEFAULT_REGION: other }: Environment): string {
  return region || other || "us-east-1";
}

function endpointOf(environment: Environment): string {
  const { AWS_ENDPOINT_URL_S3: ofS3, AWS_ENDPOINT_URL: general } = environment;
  const given = ofS3 || general || `https://s3.${regionOf(environment)}.amazonaws.com`;
  if (!URL.canParse(given)) throw new BucketError(`AWS_ENDPOINT_URL is no address: ${given}`);
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
  return status === 404 && serviceCode !== "NoSuchBucket";
}

/** The error in a person's words. S3's own texts repeat addresses, which are signed. */
function told(error: unknown, name: string, what: string): BucketError {
  const { status, serviceCode } = refusalIn(error);
  const code = serviceCode === undefined ? "" : ` (${serviceCode})`;
  const options = { cause: error };
  if (serviceCode === "NoSuchBucket")
    return new BucketError(`there is no bucket for ${name}: make it, or correct its name`, options);
  if (status === 401 || status === 403)
    return new BucketError(
      `${name} refused ${what}${code}: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do`,
      options,
    );
  if (status !== undefined) return new BucketError(`${name} answered ${what} with ${status}${code}`, options);
  return new BucketError(`${name} did not answer ${what} (${whyNoAnswer(error as Error)})`, options);
}

function whyNoAnswer({ name, cause }: Error): string {
  if (name === "TimeoutError") return "it took too long";
  return (cause as { code?: string } | undefined)?.code ?? name;
}
