import { createHash } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import type { RequestListener, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inspect } from "../../src/archive/check/content.js";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { type Downloads, undiciDownloads } from "../../src/archive/download/download.js";
import type { SaveResult } from "../../src/archive/save.js";
import { type Archive, openArchive } from "../../src/archive/save.js";
import { ManualClock } from "../manual-clock.js";
import { breakingOnce } from "./breaking.js";
import { serve, type TestServer } from "./server.js";

/**
 * P14: whatever a server does with Range, ETag, encodings, redirects and expiry, what is saved is one version, whole.
 * The files are bitmaps, of which only the first bytes are checked: nothing but the transfer stands between a splice
 * and the archive. Every case is a first transfer that breaks off, and what the server does after that.
 */
const size = 90_000;
const before = bitmap("before");
const after = bitmap("after");

function bitmap(name: string): Buffer {
  const bytes = Buffer.alloc(size);
  for (let at = 0, sum = name; at < size; at += 32) {
    const hash = createHash("sha256").update(sum).digest();
    hash.copy(bytes, at);
    sum = hash.toString("hex");
  }
  bytes.write("BM", 0, "latin1");
  bytes.writeUInt32LE(size, 2);
  return bytes;
}

let server: TestServer;
let downloads: Downloads;
let root: string;
beforeAll(async () => {
  server = await serve();
  downloads = undiciDownloads({ baseUrl: server.url });
  root = await mkdtemp(join(tmpdir(), "bulkgen-matrix-"));
});
afterAll(async () => {
  await server.close();
  await downloads.close();
  await rm(root, { recursive: true });
});

/** How the server marks versions: the ETag of the old and of the new one. */
const tags = {
  strong: (version: Buffer) => (version === before ? '"one"' : '"two"'),
  weak: (version: Buffer) => (version === before ? 'W/"one"' : 'W/"two"'),
  "the same for all": () => '"same"',
  malformed: () => "one",
  none: () => undefined,
} as const;

interface Ask {
  reply: ServerResponse;
  range: string | undefined;
  ifRange: string | undefined;
  version: Buffer;
  tag: string | undefined;
}

type Behaviour = (ask: Ask) => void;

const whole: Behaviour = ({ reply, version, tag }) => {
  reply.writeHead(200, { ...etag(tag), "content-length": size }).end(version);
};

function etag(tag: string | undefined): Record<string, string> {
  return tag === undefined ? {} : { etag: tag };
}

function part(
  change: (first: number) => { first?: number; told?: string; tag?: string; length?: number },
): Behaviour {
  return (ask) => {
    const asked = /^bytes=(\d+)-$/.exec(ask.range ?? "");
    if (asked === null) return whole(ask);
    const from = Number(asked[1]);
    const { first = from, told, tag = ask.tag, length } = change(from);
    const bytes = ask.version.subarray(first);
    ask.reply
      .writeHead(206, {
        ...etag(tag),
        "content-range": told ?? `bytes ${first}-${size - 1}/${size}`,
        "content-length": length ?? bytes.length,
      })
      .end(bytes);
  };
}

/** What the server does once the first transfer has broken off. */
const behaviours: Readonly<Record<string, Behaviour>> = {
  "knows ranges": (ask) => (ask.ifRange === ask.tag ? part(() => ({}))(ask) : whole(ask)),
  "ignores If-Range": part(() => ({})),
  "ignores ranges": whole,
  "sends another range": part((first) => ({ first: first - 100 })),
  "sends another range and denies it": part((first) => ({
    first: first - 100,
    told: `bytes ${first}-${size - 1}/${size}`,
    length: size - first + 100,
  })),
  "names another total": part((first) => ({ told: `bytes ${first}-${size - 1}/${size + 5}` })),
  "names no total": part((first) => ({ told: `bytes ${first}-${size - 1}/*` })),
  "names no range": part(() => ({ told: "bytes" })),
  "sends a part with no tag": (ask) => part(() => ({}))({ ...ask, tag: undefined }),
  "sends a part with a weak tag": part(() => ({ tag: 'W/"one"' })),
  "answers 416": (ask) => (ask.range === undefined ? whole(ask) : void ask.reply.writeHead(416).end()),
  "packs parts": (ask) => {
    if (ask.range === undefined) return whole(ask);
    const headers = { ...etag(ask.tag), "content-encoding": "gzip", "content-range": `bytes 0-9/${size}` };
    ask.reply.writeHead(206, headers).end(gzipSync(ask.version));
  },
  "sends many parts": (ask) => {
    if (ask.range === undefined) return whole(ask);
    ask.reply.writeHead(206, { ...etag(ask.tag), "content-type": "multipart/byteranges; boundary=a" });
    ask.reply.end("--a\r\n\r\nx\r\n--a--");
  },
};

const cases = Object.keys(tags).flatMap((tag) =>
  Object.keys(behaviours).flatMap((behaviour) =>
    [false, true].flatMap((replaced) =>
      ["direct", "redirected", "expired between"].map((way) => ({ tag, behaviour, replaced, way })),
    ),
  ),
);
type Case = (typeof cases)[number];

let count = 0;

/** Saves until it is saved, as a run does, and returns what lies in the folder. */
async function outcome(given: Case): Promise<{ result: SaveResult; content: Buffer | null; ranges: number }> {
  const jobFolder = join(root, String(++count));
  const archive = openArchive({
    disk: nodeDisk,
    download: breakingOnce(downloads.download, 40_000),
    clock: new ManualClock(),
    version: "0.0.0",
    inspect: (path, category) => inspect(nodeDisk, path, category),
  });
  server.requests.length = 0;
  server.answer(script(given));
  let result: SaveResult = { kind: "try_again", reason: "" };
  for (let turn = 0; turn < 6 && result.kind !== "saved"; turn++)
    result = await save(archive, jobFolder, turn);
  await archive.close();
  const names = (await readdir(jobFolder)).filter((name) => name !== "index.jsonl" && name !== "_quarantine");
  expect(names).toEqual(result.kind === "saved" ? ["a.bmp"] : []);
  const content = result.kind === "saved" ? await readFile(join(jobFolder, "a.bmp")) : null;
  return { result, content, ranges: server.requests.filter(({ headers }) => headers.range).length };
}

function save(archive: Archive, jobFolder: string, turn: number): Promise<SaveResult> {
  return archive.save({
    url: `${server.url}/file?signature=${turn}`,
    jobFolder,
    name: "a",
    outputNumber: 1,
    outputCount: 1,
    category: "image",
    index: {
      item: "a",
      key: "k",
      task: "t",
      external_task: null,
      model: "m",
      prompt: "p",
      params: {},
      inputs: {},
      credits: 1,
      created: null,
      completed: null,
    },
  });
}

function script({ tag, behaviour, replaced, way }: Case): RequestListener {
  let broken = false;
  let expired = way !== "expired between";
  return (request, reply) => {
    if (way === "redirected" && !request.url?.startsWith("/elsewhere"))
      return void reply.writeHead(307, { location: `/elsewhere${request.url}` }).end();
    const tagOf = tags[tag as keyof typeof tags];
    if (!broken) {
      broken = true;
      reply.writeHead(200, { ...etag(tagOf(before)), "content-length": size });
      return void reply.end(before);
    }
    if (!expired) {
      expired = true;
      return void reply.writeHead(403).end();
    }
    const version = replaced ? after : before;
    const { range, "if-range": ifRange } = request.headers;
    const asked = { range, ifRange: typeof ifRange === "string" ? ifRange : undefined };
    behaviours[behaviour]?.({ reply, ...asked, version, tag: tagOf(version) });
  };
}

/** A server that gives two versions one strong tag says that they are the same: nobody could tell. */
function isLie({ tag, replaced }: Case): boolean {
  return replaced && tag === "the same for all";
}

test("P14: in every case what is saved is one version, whole, and good ranges are used", async () => {
  const spliced: Case[] = [];
  const unsaved: Case[] = [];
  let resumed = 0;
  const honest = cases.filter((given) => !isLie(given));
  for (const given of honest) {
    const { content, ranges } = await outcome(given);
    if (content === null) unsaved.push(given);
    else if (!content.equals(before) && !content.equals(after)) spliced.push(given);
    if (content !== null && ranges > 0 && given.behaviour === "knows ranges") resumed++;
    if (!["strong", "the same for all"].includes(given.tag)) expect(ranges, JSON.stringify(given)).toBe(0);
  }
  expect(honest.length).toBeGreaterThanOrEqual(200);
  expect(spliced).toEqual([]);
  expect(unsaved.filter(({ behaviour }) => behaviour !== "sends another range and denies it")).toEqual([]);
  expect(resumed, "a range is asked for wherever the tag is strong").toBe(9);
}, 120_000);
