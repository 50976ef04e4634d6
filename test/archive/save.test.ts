import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { crc32, gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { inspect } from "../../src/archive/check/content.js";
import { nodeDisk } from "../../src/archive/disk/node-disk.js";
import { removeLeftovers } from "../../src/archive/disk/temporary.js";
import { type Downloads, undiciDownloads } from "../../src/archive/download/download.js";
import { Partials } from "../../src/archive/download/partial.js";
import { Indexes } from "../../src/archive/index-file.js";
import {
  openArchive,
  type SavePorts,
  type SaveRequest,
  type SaveResult,
  saveOutput,
} from "../../src/archive/save.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Download } from "../../src/core/ports/send.js";
import { ManualClock } from "../manual-clock.js";
import { breakingOnce } from "./breaking.js";
import { media } from "./media.js";
import { serve, type TestServer } from "./server.js";
import { systemError, watchedDisk } from "./watched-disk.js";

let server: TestServer;
let downloads: Downloads;
let root: string;
let folder: string;
let clock: ManualClock;
let picture: Buffer;

beforeAll(async () => {
  server = await serve();
  downloads = undiciDownloads({ baseUrl: server.url });
  root = await mkdtemp(join(tmpdir(), "bulkgen-save-"));
  picture = await media.png();
});
afterAll(async () => {
  await server.close();
  await downloads.close();
  await rm(root, { recursive: true });
});

let count = 0;
beforeEach(() => {
  folder = join(root, `job-${++count}`);
  clock = new ManualClock();
  server.requests.length = 0;
  server.answer(sends(picture));
});
afterEach(() => {
  expect(clock.asleep, "every watch is put away").toBe(0);
});

function sends(bytes: Uint8Array | string, status = 200): RequestListener {
  return (_, reply) => reply.writeHead(status, { "content-length": Buffer.byteLength(bytes) }).end(bytes);
}

function wanted(change: Partial<SaveRequest> = {}, task = "task-1"): SaveRequest {
  return {
    url: `${server.url}/out?signature=canary`,
    jobFolder: folder,
    name: "Café/hero.png",
    outputNumber: 1,
    outputCount: 1,
    category: "image",
    index: {
      item: "row-1",
      key: `k1:${task}`,
      task,
      external_task: "ext-1",
      model: "flux",
      prompt: "a “red” café",
      params: { aspect_ratio: "16:9" },
      inputs: { image_url: "https://example.com/a.png" },
      credits: 4.5,
      created: "2026-11-20T10:00:00Z",
      completed: "2026-11-20T10:00:05Z",
    },
    ...change,
  };
}

/** A save by a process of its own: it knows only what is on the disk. */
function save(request: SaveRequest, ports: Partial<SavePorts> = {}): Promise<SaveResult> {
  const disk = ports.disk ?? nodeDisk;
  return saveOutput(request, {
    disk,
    download: downloads.download,
    clock,
    indexes: new Indexes(disk),
    partials: new Partials(),
    version: "1.2.3",
    inspect: (path, category) => inspect(disk, path, category),
    ...ports,
  });
}

/** Every file below the job's folder, by its relative path. */
async function files(): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted();
}

async function lines(file = "index.jsonl"): Promise<Record<string, unknown>[]> {
  const text = await readFile(join(folder, file), "utf8").catch(() => "");
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

describe("a good output", () => {
  test("P13: it is named, hashed and in the index, and nothing else is left", async () => {
    const result = await save(wanted());
    expect(result).toMatchObject({
      kind: "saved",
      file: "Café/hero.png",
      mime: "image/png",
      check: "decoded",
    });
    expect(await files()).toEqual(["Café/hero.png", "index.jsonl"]);
    expect(await readFile(join(folder, "Café/hero.png"))).toEqual(picture);
    const { kind: _, ...facts } = result as SaveResult & { kind: "saved" };
    expect(facts.bytes).toBe(picture.length);
    const program = { saved: "2026-01-01T00:00:00.000Z", bulkgen: "1.2.3" };
    const size = { width: 48, height: 36 };
    expect(await lines()).toEqual([{ ...wanted().index, output: 1, ...facts, ...size, ...program }]);
  });

  test("P13: the steps come in the order that makes the file durable", async () => {
    const steps: string[] = [];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      const at = relative(folder, path).replace(/\.bulkgen-.*\.part$/, "part");
      if (steps.at(-1) !== `${step} ${at}`) steps.push(`${step} ${at}`);
    });
    await save(wanted(), { disk });
    expect(steps.filter((step) => !/^(size|list|realPath|freeBytes) /.test(step))).toEqual([
      "makeFolder ",
      "makeFolder Café",
      "create Café/part",
      "write Café/part",
      "read Café/part",
      "sync Café/part",
      "link Café/hero.png",
      "close Café/part",
      "unlink Café/part",
      "syncFolder Café",
      "append index.jsonl",
    ]);
  });

  test("several outputs of one task are numbered", async () => {
    const results = [
      await save(wanted({ outputCount: 2 })),
      await save(wanted({ outputCount: 2, outputNumber: 2 })),
    ];
    expect(results).toMatchObject([{ file: "Café/hero-1.png" }, { file: "Café/hero-2.png" }]);
  });

  test("with sidecars, a file with its facts is beside it; names that would share one get numbers", async () => {
    const ports = { sidecars: true, indexes: new Indexes(nodeDisk) };
    await save(wanted(), ports);
    server.answer(sends(await media.jpeg()));
    expect(await save(wanted({}, "task-2"), ports)).toMatchObject({ file: "Café/hero-2.jpg" });
    const [first, second] = await lines();
    expect(JSON.parse(await readFile(join(folder, "Café/hero.json"), "utf8"))).toEqual(first);
    expect(JSON.parse(await readFile(join(folder, "Café/hero-2.json"), "utf8"))).toEqual(second);
    expect(await files()).toHaveLength(5);
  });

  test("with sidecars, a file of that name that was there before stays as it is", async () => {
    await mkdir(join(folder, "Café"), { recursive: true });
    await writeFile(join(folder, "Café/hero.json"), "mine");
    expect(await save(wanted(), { sidecars: true })).toMatchObject({ file: "Café/hero-2.png" });
    expect(await readFile(join(folder, "Café/hero.json"), "utf8")).toBe("mine");
    expect(await files()).toHaveLength(4);
  });

  test("is named with what a bucket notes of it: its size, its hash and its type", async () => {
    const noted: unknown[] = [];
    const disk: Disk = {
      ...nodeDisk,
      link(from, to, content) {
        noted.push(content);
        return nodeDisk.link(from, to);
      },
    };
    const result = await save(wanted(), { disk });
    const { bytes, sha256 } = result as SaveResult & { kind: "saved" };
    expect(noted).toMatchObject([{ bytes, sha256, mime: "image/png" }]);
  });

  test("P13: with sidecars, after an end at any step, the redo leaves one file, one line and one sidecar", async () => {
    const saveUntil = async (last: number) => {
      let steps = 0;
      const disk = watchedDisk(nodeDisk, () => {
        if (steps++ >= last) throw systemError("EIO");
      });
      await save(wanted(), { disk, sidecars: true });
      return steps;
    };
    const inFull = await saveUntil(Number.POSITIVE_INFINITY);
    for (let last = 0; last < inFull; last++) {
      folder = join(root, `job-${count}-ended-${last}`);
      await saveUntil(last);
      await removeLeftovers(nodeDisk, folder);
      expect(await save(wanted(), { sidecars: true })).toMatchObject({
        kind: "saved",
        file: "Café/hero.png",
      });
      expect(await files(), `ended at step ${last}`).toEqual([
        "Café/hero.json",
        "Café/hero.png",
        "index.jsonl",
      ]);
      expect(await lines()).toHaveLength(1);
    }
  });

  test("P21: the signed URL is written nowhere", async () => {
    await save(wanted());
    server.answer(sends("<html>no</html>"));
    await save(wanted({}, "task-2"));
    expect(server.requests.map(({ url }) => url)).toEqual(Array(2).fill("/out?signature=canary"));
    const written = await files();
    expect(written).toEqual([
      "Café/hero.png",
      expect.stringMatching(/^_quarantine\/.*\.bad$/),
      "_quarantine/index.jsonl",
      "index.jsonl",
    ]);
    for (const file of written) expect(await readFile(join(folder, file), "latin1")).not.toContain("canary");
  });
});

describe("a symbolic link that somebody planted", () => {
  test("P23: as a folder for outputs it takes none: the file lies beside it, and nothing is made behind it", async () => {
    const elsewhere = await mkdtemp(join(root, "elsewhere-"));
    await mkdir(folder);
    await symlink(elsewhere, join(folder, "Café"));
    expect(await save(wanted({ name: "Café/hero" }))).toMatchObject({ kind: "saved", file: "Café-hero.png" });
    expect(await readdir(elsewhere)).toEqual([]);
  });

  test("P23: as the quarantine it takes nothing, and stops nothing", async () => {
    const elsewhere = await mkdtemp(join(root, "elsewhere-"));
    await mkdir(folder);
    await symlink(elsewhere, join(folder, "_quarantine"));
    server.answer(sends("<html></html>"));
    expect(await save(wanted())).toMatchObject({ kind: "try_again" });
    expect(await readdir(elsewhere)).toEqual([]);
  });

  test("P23: under the name of a file it is taken, and what it points at stays as it is", async () => {
    await mkdir(join(folder, "Café"), { recursive: true });
    await writeFile(join(root, "precious"), "mine");
    await symlink(join(root, "precious"), join(folder, "Café/hero.png"));
    await symlink(join(root, "nowhere"), join(folder, "index.jsonl"));
    expect(await save(wanted())).toMatchObject({ kind: "disk", code: "ELOOP" });
    await rm(join(folder, "index.jsonl"));
    expect(await save(wanted())).toMatchObject({ kind: "saved", file: "Café/hero-2.png" });
    expect(await readFile(join(root, "precious"), "utf8")).toBe("mine");
  });

  test("the job's folder itself may be one: that is where its owner wants the files", async () => {
    const elsewhere = await mkdtemp(join(root, "elsewhere-"));
    await symlink(elsewhere, folder);
    expect(await save(wanted())).toMatchObject({ kind: "saved", file: "Café/hero.png" });
  });
});

test("a file in the place of a folder does not keep an output from being saved", async () => {
  await mkdir(folder);
  await writeFile(join(folder, "cups"), "mine");
  expect(await save(wanted({ name: "cups/small/red" }))).toMatchObject({
    kind: "saved",
    file: "cups-small-red.png",
  });
  expect(await readFile(join(folder, "cups"), "utf8")).toBe("mine");
});

test("P23: a name of 400 characters is shortened so that every file system accepts it", async () => {
  const result = await save(wanted({ name: `${"é".repeat(400)}/${"x".repeat(400)}` }));
  expect(result.kind).toBe("saved");
  for (const segment of (result as { file: string }).file.split("/"))
    expect(Buffer.byteLength(segment)).toBeLessThanOrEqual(140);
});

describe("checksums that the server states", () => {
  const sum = (algorithm: string, bytes: Uint8Array) => createHash(algorithm).update(bytes).digest("base64");
  const crc = (bytes: Uint8Array) => {
    const four = Buffer.alloc(4);
    four.writeUInt32BE(crc32(bytes));
    return four.toString("base64");
  };
  const headers: readonly [string, (bytes: Uint8Array) => string][] = [
    ["repr-digest", (bytes) => `sha-512=:${sum("sha512", bytes)}:, sha-256=:${sum("sha256", bytes)}:`],
    ["content-digest", (bytes) => `sha-256=:${sum("sha256", bytes)}:`],
    ["digest", (bytes) => `SHA-256=${sum("sha256", bytes)},unknown=abcd`],
    ["content-md5", (bytes) => sum("md5", bytes)],
    ["x-amz-checksum-sha256", (bytes) => sum("sha256", bytes)],
    ["x-amz-checksum-sha1", (bytes) => sum("sha1", bytes)],
    ["x-amz-checksum-crc32", crc],
    ["x-goog-hash", (bytes) => `crc32c=AAAAAA==, md5=${sum("md5", bytes)}`],
  ];

  test.each(headers)("P13: what does not have its %s is fetched again", async (header, value) => {
    const sending = (stated: Uint8Array) =>
      server.answer((_, reply) => reply.writeHead(200, { [header]: value(stated) }).end(picture));
    sending(Buffer.from("other"));
    expect(await save(wanted())).toMatchObject({
      kind: "try_again",
      reason: expect.stringMatching(/^the (sha|md5|crc)\S* checksum of the content is not/),
    });
    expect(await files()).toEqual([]);
    sending(picture);
    expect(await save(wanted())).toMatchObject({ kind: "saved" });
  });

  test.each([
    ["x-amz-checksum-sha256", "AAAA-3"],
    // That of a file in three parts, whose length is right.
    ["x-amz-checksum-sha256", `${"A".repeat(43)}=-3`],
    ["content-md5", "no checksum"],
    ["content-md5", `:${"A".repeat(22)}==`],
    ["repr-digest", "sha-256=:AAAA:"],
  ])("%s: %s proves nothing", async (header, value) => {
    server.answer((_, reply) => reply.writeHead(200, { [header]: value }).end(picture));
    expect(await save(wanted())).toMatchObject({ kind: "saved" });
  });

  test("of a file that was uploaded in parts, the checksum of the parts proves nothing", async () => {
    const stated = {
      "x-amz-checksum-sha256": sum("sha256", Buffer.from("parts")),
      "x-amz-checksum-type": "COMPOSITE",
    };
    server.answer((_, reply) => reply.writeHead(200, stated).end(picture));
    expect(await save(wanted())).toMatchObject({ kind: "saved" });
  });

  test("P14: they are those of the whole file also when only its rest was fetched", async () => {
    const partials = new Partials();
    const stated = { etag: '"a"', "content-md5": sum("md5", picture) };
    server.answer((_, reply) => {
      reply.writeHead(200, { ...stated, "content-length": picture.length });
      reply.end(picture);
    });
    const download = breakingOnce(downloads.download, 100);
    expect(await save(wanted(), { partials, download })).toMatchObject({ kind: "try_again" });
    server.answer((_, reply) => {
      const range = `bytes 100-${picture.length - 1}/${picture.length}`;
      reply.writeHead(206, { etag: '"a"', "content-range": range }).end(picture.subarray(100));
    });
    expect(await save(wanted(), { partials })).toMatchObject({ kind: "saved", bytes: picture.length });
    expect(server.requests[1]?.headers).toMatchObject({ range: "bytes=100-", "if-range": '"a"' });
  });
});

describe("a name that is taken", () => {
  test("P13: a file that was there before stays as it is", async () => {
    await mkdir(join(folder, "Café"), { recursive: true });
    await writeFile(join(folder, "Café/hero.png"), "mine");
    expect(await save(wanted())).toMatchObject({ kind: "saved", file: "Café/hero-2.png" });
    expect(await readFile(join(folder, "Café/hero.png"), "utf8")).toBe("mine");
  });

  test("P23: a name that differs only by case counts as taken, on disk and in the index", async () => {
    await mkdir(folder);
    await writeFile(join(folder, "HERO.PNG"), "mine");
    const indexes = new Indexes(nodeDisk);
    const files = [
      await save(wanted({ name: "hero" }), { indexes }),
      await save(wanted({ name: "Hero" }, "task-2"), { indexes }),
    ];
    expect(files).toMatchObject([{ file: "hero-2.png" }, { file: "Hero-3.png" }]);
  });

  test("P13: two outputs that want one name at the same moment get two files, with two lines", async () => {
    const indexes = new Indexes(nodeDisk);
    const both = await Promise.all([save(wanted(), { indexes }), save(wanted({}, "task-2"), { indexes })]);
    expect(both.map((result) => result.kind === "saved" && result.file).toSorted()).toEqual([
      "Café/hero-2.png",
      "Café/hero.png",
    ]);
    expect(await lines()).toHaveLength(2);
  });

  test("P13: a file without a line is adopted by the output whose content it has, and by no other", async () => {
    const left = await media.png();
    await mkdir(join(folder, "Café"), { recursive: true });
    await writeFile(join(folder, "Café/hero.png"), left);
    const indexes = new Indexes(nodeDisk);
    expect(await save(wanted(), { indexes })).toMatchObject({ file: "Café/hero-2.png" });
    server.answer(sends(left));
    expect(await save(wanted({}, "task-2"), { indexes })).toMatchObject({ file: "Café/hero.png" });
    expect(await files()).toHaveLength(3);
  });

  test("P13: the same content for another item is another file", async () => {
    await save(wanted());
    expect(await save(wanted({}, "task-2"))).toMatchObject({ file: "Café/hero-2.png" });
  });
});

describe("a redo", () => {
  test("P13: a file that is in the index and whole is not fetched again", async () => {
    const first = await save(wanted());
    server.requests.length = 0;
    expect(await save(wanted())).toEqual(first);
    expect(server.requests).toHaveLength(0);
    expect(await lines()).toHaveLength(1);
  });

  test("P13: a file that was lost is fetched again, under its name and with its one line", async () => {
    const first = await save(wanted());
    await rm(join(folder, "Café/hero.png"));
    expect(await save(wanted())).toEqual(first);
    expect(await lines()).toHaveLength(1);
  });

  test("P13: a file that was changed is not trusted: the good one comes beside it", async () => {
    await save(wanted());
    await writeFile(join(folder, "Café/hero.png"), Buffer.alloc(picture.length));
    expect(await save(wanted())).toMatchObject({ kind: "saved", file: "Café/hero-2.png" });
  });

  test("P13, P17: after an end at any step of the disk, the redo leaves one file and one line", async () => {
    const inFull = await stepsUntil(Number.POSITIVE_INFINITY);
    expect(inFull).toBeGreaterThan(12);
    for (let last = 0; last < inFull; last++) {
      folder = join(root, `job-${count}-ended-${last}`);
      await stepsUntil(last);
      await removeLeftovers(nodeDisk, folder);
      expect(await save(wanted()), `ended at step ${last}`).toMatchObject({
        kind: "saved",
        file: "Café/hero.png",
      });
      expect(await files()).toEqual(["Café/hero.png", "index.jsonl"]);
      expect(await lines()).toHaveLength(1);
    }
  });

  /** Saves on a disk that does nothing any more after `last` steps; returns how many it was asked for. */
  async function stepsUntil(last: number): Promise<number> {
    let steps = 0;
    const disk = watchedDisk(nodeDisk, () => {
      if (steps++ >= last) throw systemError("EIO");
    });
    await save(wanted(), { disk });
    return steps;
  }

  test("a line that was cut short does not swallow the next one", async () => {
    await mkdir(folder);
    await writeFile(join(folder, "index.jsonl"), '{"item":"row-0","file":"x.p');
    await save(wanted());
    const [torn, whole] = (await readFile(join(folder, "index.jsonl"), "utf8")).split("\n");
    expect(torn).toBe('{"item":"row-0","file":"x.p');
    expect(JSON.parse(whole ?? "")).toMatchObject({ item: "row-1" });
  });
});

describe("a disk that cannot", () => {
  const steps = [
    "size",
    "makeFolder",
    "create",
    "write",
    "read",
    "sync",
    "list",
    "link",
    "syncFolder",
    "append",
  ] as const;
  test.each(steps)(
    "P17: full at %s: nothing is lost, and the same process goes on when there is room",
    async (at) => {
      let full = true;
      const disk: Disk = watchedDisk(nodeDisk, (step) => {
        if (full && step === at) throw systemError("ENOSPC");
      });
      const indexes = new Indexes(disk);
      expect(await save(wanted(), { disk, indexes })).toMatchObject({ kind: "disk", code: "ENOSPC" });
      expect((await files()).filter((file) => file.endsWith(".part"))).toEqual([]);
      full = false;
      expect(await save(wanted(), { disk, indexes })).toMatchObject({ kind: "saved", file: "Café/hero.png" });
      expect(await files()).toEqual(["Café/hero.png", "index.jsonl"]);
      expect(await lines()).toHaveLength(1);
    },
  );

  test.each(["link", "syncFolder", "append"] as const)(
    "P17: full at %s with sidecars: a file and its sidecar have the same names when there is room",
    async (at) => {
      for (const calls of [1, 2]) {
        folder = join(root, `job-${count}-full-${calls}`);
        let left = calls;
        const disk: Disk = watchedDisk(nodeDisk, (step) => {
          if (step === at && --left === 0) throw systemError("ENOSPC");
        });
        const ports = { disk, indexes: new Indexes(disk), sidecars: true };
        const first = await save(wanted(), ports);
        expect(first.kind).toBe(left > 0 ? "saved" : "disk");
        expect(await save(wanted(), ports)).toMatchObject({ kind: "saved", file: "Café/hero.png" });
        expect(await files()).toEqual(["Café/hero.json", "Café/hero.png", "index.jsonl"]);
      }
    },
  );

  test("P13: a large file is flushed while it comes, and a flush that failed is not forgotten at the end", async () => {
    const large = Buffer.alloc(40 * 2 ** 20, 7);
    large.write("BM", 0, "latin1");
    large.writeUInt32LE(large.length, 2);
    server.answer(sends(large));
    const steps: string[] = [];
    const failing = (call: number) => {
      let calls = 0;
      return watchedDisk(nodeDisk, (step) => {
        steps.push(step);
        if (step === "sync" && ++calls === call) throw systemError("EIO");
      });
    };
    expect(await save(wanted({ category: "any" }), { disk: failing(1) })).toMatchObject({
      kind: "disk",
      code: "EIO",
    });
    expect(await files()).toEqual([]);
    steps.length = 0;
    expect(await save(wanted({ category: "any" }), { disk: failing(0) })).toMatchObject({ kind: "saved" });
    expect(steps.indexOf("sync")).toBeLessThan(steps.lastIndexOf("write"));
    expect(steps.lastIndexOf("sync")).toBeGreaterThan(steps.lastIndexOf("write"));
    expect(steps.lastIndexOf("sync")).toBeLessThan(steps.indexOf("link"));
  });

  test("P17: a disk that is full before the first byte holds no connection open", async () => {
    server.answer(sends(Buffer.alloc(4 * 2 ** 20, 7)));
    let body: Readable | undefined;
    const download: Download = async (url, options) => {
      const reply = await downloads.download(url, options);
      body = reply.body as Readable;
      return reply;
    };
    const disk = { ...nodeDisk, freeBytes: async () => 0 };
    expect(await save(wanted(), { download, disk })).toMatchObject({ kind: "disk", code: "ENOSPC" });
    expect(body?.destroyed).toBe(true);
  });

  test("P17: a folder that cannot be made is reported with its code", async () => {
    await writeFile(folder, "a file where the folder should be");
    expect(await save(wanted())).toMatchObject({ kind: "disk" });
  });
});

describe("a bad answer", () => {
  test.each([400, 401, 403, 404, 410])(
    "P15: %i means that the signed URL is no longer good",
    async (status) => {
      server.answer(sends("<Error/>", status));
      expect(await save(wanted())).toEqual({ kind: "expired", status });
    },
  );

  test("P13: what came of it is gone for good: a power cut after the run's end would bring back a name", async () => {
    const steps: string[] = [];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      if (step === "unlink" || step === "syncFolder")
        steps.push(`${step} ${relative(folder, path).slice(0, 14)}`);
    });
    server.answer(sends("<Error/>", 403));
    expect(await save(wanted(), { disk })).toMatchObject({ kind: "expired" });
    expect(steps).toEqual(["unlink Café/.bulkgen-", "syncFolder Café"]);
    steps.length = 0;
    await writeFile(join(folder, "Café", ".bulkgen-0123456789abcdef-1.part"), "left");
    await removeLeftovers(disk, folder);
    expect(steps).toEqual(["unlink Café/.bulkgen-", "syncFolder Café"]);
  });

  test.each([204, 206, 408, 429, 500, 503])("%i is tried again", async (status) => {
    server.answer((_, reply) => reply.writeHead(status).end());
    expect(await save(wanted())).toEqual({ kind: "try_again", reason: `the server answered ${status}` });
  });

  test("P13: a transfer that ends before its stated length is never archived", async () => {
    server.answer((_, reply) => {
      reply.writeHead(200, { "content-length": picture.length });
      reply.write(picture.subarray(0, 100), () => reply.destroy());
    });
    const result = await save(wanted());
    expect(result).toMatchObject({ kind: "try_again", reason: expect.stringContaining("broke off") });
    expect(await files()).toEqual([]);
  });

  test("P13: a length that differs from the stated one is refused, whatever the connection thought of it", async () => {
    const download: Download = async () => ({
      status: 200,
      headers: { "content-length": String(picture.length + 1) },
      body: Readable.from([picture]),
    });
    expect(await save(wanted(), { download })).toEqual({
      kind: "try_again",
      reason: `the transfer ended after ${picture.length} of ${picture.length + 1} bytes`,
    });
  });

  test("P13: a transfer that ends early without a stated length is found by its content", async () => {
    server.answer((_, reply) => reply.end(picture.subarray(0, -20)));
    expect(await save(wanted())).toMatchObject({
      kind: "try_again",
      reason: expect.stringContaining("truncated"),
    });
    expect((await files()).filter((file) => !file.startsWith("_quarantine/"))).toEqual([]);
  });

  test("P13: a video whose length the server does not state is saved with a check that says so", async () => {
    const film = await media.mp4();
    server.answer((_, reply) => {
      reply.write(film.subarray(0, 50));
      reply.end(film.subarray(50));
    });
    const check = "packets, length unknown";
    expect(await save(wanted({ category: "video" }))).toMatchObject({ kind: "saved", check });
    expect(await lines("index.jsonl")).toMatchObject([{ check }]);
  });

  test("P13: a video in the length that the server stated has no such note", async () => {
    const film = await media.mp4();
    server.answer((_, reply) => reply.writeHead(200, { "content-length": film.length }).end(film));
    expect(await save(wanted({ category: "video" }))).toMatchObject({ kind: "saved", check: "packets" });
  });

  test("P13: a picture needs no such note: its content shows that it is whole", async () => {
    server.answer((_, reply) => {
      reply.write(picture.subarray(0, 50));
      reply.end(picture.subarray(50));
    });
    expect(await save(wanted())).toMatchObject({ kind: "saved", check: "decoded" });
  });

  test("P13: an error page in place of the picture goes to quarantine with the reason, once", async () => {
    server.answer(sends("<!doctype html><title>Sign in</title>"));
    const results = [await save(wanted()), await save(wanted())];
    for (const result of results)
      expect(result).toMatchObject({
        kind: "try_again",
        reason: expect.stringContaining("got an HTML page"),
      });
    expect(await files()).toEqual([
      expect.stringMatching(/^_quarantine\/Café-hero-\w{12}\.bad$/),
      "_quarantine/index.jsonl",
    ]);
    expect(await lines("_quarantine/index.jsonl")).toMatchObject([
      { item: "row-1", task: "task-1", reason: "expected image, got an HTML page" },
    ]);
  });

  describe("that a person accepts", () => {
    const text = "1\n00:00:00,000 --> 00:00:01,000\nHello\n";

    test.each([
      ["/voice.srt?signature=a", text, "audio", "hero.srt", "application/octet-stream"],
      ["/page.html", "<html>", "image", "hero.bin", "application/octet-stream"],
      ["/tool.exe", "MZ", "image", "hero.bin", "application/octet-stream"],
      ["/out", "\0\x01\x02", "audio", "hero.bin", "application/octet-stream"],
      ["/sound.PCM", "\0\x01\x02", "audio", "hero.pcm", "application/octet-stream"],
    ])("is kept as it came from %s, marked as not proven", async (path, content, category, file, mime) => {
      server.answer(sends(content));
      const request = wanted({ url: `${server.url}${path}`, name: "hero.png", category, accepts: true });
      const result = await save(request);
      expect(result).toMatchObject({
        kind: "saved",
        file,
        mime,
        check: expect.stringMatching(/^accepted, /),
      });
      expect(await readFile(join(folder, file), "utf8")).toBe(content);
      expect(await lines()).toMatchObject([{ file, check: (result as { check: string }).check }]);
    });

    test("is known by its content where that is media of another kind", async () => {
      expect(await save(wanted({ category: "video", accepts: true }))).toMatchObject({
        kind: "saved",
        file: "Café/hero.png",
        mime: "image/png",
        check: "accepted, expected video, got image/png",
      });
    });

    test("is proven all the same if nothing is wrong with it", async () => {
      expect(await save(wanted({ accepts: true }))).toMatchObject({ kind: "saved", check: "decoded" });
    });

    test("is taken out of the quarantine, without a request, and only if it is what was put there", async () => {
      server.answer(sends("no picture"));
      expect(await save(wanted())).toMatchObject({ kind: "try_again" });
      server.answer(sends("gone", 404));
      server.requests.length = 0;
      expect(await save(wanted({ accepts: true }))).toMatchObject({ kind: "saved", bytes: 10 });
      expect(server.requests.length).toBe(0);

      server.answer(sends("no picture 2"));
      expect(await save(wanted({ name: "b" }, "task-2"))).toMatchObject({ kind: "try_again" });
      const bad = (await files()).find((file) => /^_quarantine\/b-.*\.bad$/.test(file)) ?? "";
      await writeFile(join(folder, bad), "no picture 3");
      expect(await save(wanted({ name: "b", accepts: true }, "task-2"))).toMatchObject({
        kind: "saved",
        bytes: 12,
      });
      expect(server.requests.length).toBe(2);
      expect(await readFile(join(folder, "b.bin"), "utf8")).toBe("no picture 2");
    });

    test("is not one that is not complete, or whose address is not allowed", async () => {
      server.answer((_, reply) => {
        reply.writeHead(200, { "content-length": 100 });
        reply.write("short");
        reply.destroy();
      });
      expect(await save(wanted({ accepts: true }))).toMatchObject({ kind: "try_again" });
      expect(await save(wanted({ accepts: true, url: "http://169.254.169.254/" }))).toMatchObject({
        kind: "refused",
      });
    });
  });

  test("a compressed answer is not asked for, and decoded all the same", async () => {
    server.answer((_, reply) => reply.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(picture)));
    const sha256 = createHash("sha256").update(picture).digest("hex");
    expect(await save(wanted())).toMatchObject({ kind: "saved", bytes: picture.length, sha256 });
    expect(server.requests[0]?.headers["accept-encoding"]).toBe("identity");
  });

  test("P22: an address that the rule refuses is reported as refused", async () => {
    for (const url of ["http://169.254.169.254/latest/meta-data", "ftp://example.com/a.png", "nonsense"])
      expect(await save(wanted({ url }))).toMatchObject({ kind: "refused" });
  });
});

describe("limits", () => {
  const limits = { bytesMax: 1000, msMax: 90_000, stallMsMax: 60_000, bytesPerSecondMin: 1 };

  test("P22: an output that says it is too large is not begun", async () => {
    server.answer(sends(Buffer.alloc(1001)));
    expect(await save(wanted(), { limits })).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("1001"),
    });
  });

  test("P22: a server that sends forever is cut off at the cap, and nothing is left", async () => {
    server.answer((_, reply) => {
      // A tag would let the rest be requested.
      reply.setHeader("etag", '"endless"');
      const more = () => {
        while (!reply.destroyed && reply.write(Buffer.alloc(400)));
      };
      reply.on("drain", more);
      more();
    });
    const download: Download = async (url, options) => {
      const reply = await downloads.download(url, options);
      return { ...reply, body: inPieces(reply.body, 400) };
    };
    expect(await save(wanted(), { limits, download })).toMatchObject({ kind: "refused" });
    expect(await files()).toEqual([]);
  });

  async function* inPieces(body: AsyncIterable<Uint8Array>, bytes: number): AsyncGenerator<Uint8Array> {
    for await (const piece of body)
      for (let at = 0; at < piece.length; at += bytes) yield piece.subarray(at, at + bytes);
  }

  /** Saves from a server that stops after the first bytes; `then` runs when the next ones are waited for. */
  async function stopping(then: () => void, ports: Partial<SavePorts> = {}): Promise<SaveResult> {
    server.answer((_, reply) => {
      reply.writeHead(200, { "content-length": picture.length }).write(picture.subarray(0, 50));
    });
    const download: Download = async (url, options) => {
      const reply = await downloads.download(url, options);
      return { ...reply, body: telling(reply.body, then) };
    };
    return save(wanted(), { download, limits: { ...limits, bytesMax: picture.length }, ...ports });
  }

  async function* telling(body: AsyncIterable<Uint8Array>, then: () => void): AsyncGenerator<Uint8Array> {
    const pieces = body[Symbol.asyncIterator]();
    for (let number = 1; ; number++) {
      const next = pieces.next();
      if (number > 1) then();
      const { done, value } = await next;
      if (done) return;
      yield value;
    }
  }

  test("P22: a transfer in which no byte comes for 60 s is broken off", async () => {
    const result = await stopping(() => clock.advance(60_000));
    expect(result).toEqual({ kind: "try_again", reason: "no bytes arrived for 60 s" });
    expect(await files()).toEqual([]);
  });

  test("P22: a transfer that takes too long in all is broken off", async () => {
    expect(await stopping(() => clock.advance(90_000))).toEqual({
      kind: "try_again",
      reason: "the transfer took longer than 90 s",
    });
  });

  test("P22: a transfer that drips is aborted, however steadily it drips", async () => {
    const paced = { ...limits, msMax: 600_000, bytesMax: 1_000_000, bytesPerSecondMin: 100 };
    async function* drips(): AsyncGenerator<Uint8Array> {
      for (let second = 0; second < 300; second += 30) {
        yield Buffer.alloc(10);
        clock.advance(30_000);
        await null;
      }
    }
    const download: Download = async () => ({ status: 200, headers: {}, body: drips() });
    expect(await save(wanted(), { download: aborting(download), limits: paced })).toEqual({
      kind: "try_again",
      reason: "only 20 bytes arrived in 60 s; expected at least 100 a second",
    });
  });

  /** As a connection does: what is aborted breaks off. */
  function aborting(download: Download): Download {
    return async (url, options) => {
      const reply = await download(url, options);
      async function* body(): AsyncGenerator<Uint8Array> {
        for await (const piece of reply.body) {
          await new Promise((next) => setImmediate(next));
          if (options.signal.aborted) throw new Error("aborted");
          yield piece;
        }
      }
      return { ...reply, body: body() };
    };
  }

  test("P17: the last of the disk is not used up: the state must find room", async () => {
    const free = 2 ** 26 + picture.length;
    const disk = (bytes: number): Disk => ({ ...nodeDisk, freeBytes: async () => bytes });
    expect(await save(wanted(), { disk: disk(free - 1) })).toMatchObject({
      kind: "disk",
      code: "ENOSPC",
      reason: expect.stringContaining("67.1 MB needed"),
    });
    expect(await files()).toEqual([]);
    expect(await save(wanted(), { disk: disk(free) })).toMatchObject({ kind: "saved" });
  });

  test("an interrupt ends the transfer and leaves nothing", async () => {
    const interrupt = new AbortController();
    const result = await stopping(() => interrupt.abort(), { signal: interrupt.signal });
    expect(result).toEqual({ kind: "try_again", reason: "the download was interrupted" });
    expect(await files()).toEqual([]);
  });
});

describe("a file of an earlier version", () => {
  const again = (change: Partial<SaveRequest>, task = "task-2") => save(wanted(change, task));

  test("makes way when the new one is there: it is moved away, and told", async () => {
    await save(wanted());
    server.answer(sends(await media.jpeg()));
    expect(await again({ name: "Café/hero", replaces: ["Café/hero.png"] })).toMatchObject({
      kind: "saved",
      file: "Café/hero.jpg",
      moved: [{ from: "Café/hero.png", to: "_superseded/Café/hero.png" }],
    });
    expect(await files()).toEqual(["Café/hero.jpg", "_superseded/Café/hero.png", "index.jsonl"]);
  });

  test("leaves its name to the new one", async () => {
    await save(wanted());
    const other = await media.gif();
    server.answer(sends(other));
    await again({ name: "Café/other" });
    expect(await again({ replaces: ["Café/other.gif"] }, "task-3")).toMatchObject({
      file: "Café/hero.gif",
      moved: [{ from: "Café/other.gif", to: "_superseded/Café/other.gif" }],
    });
  });

  test("stays where it is, if the index does not know it, it is gone, or it was moved away before", async () => {
    await save(wanted());
    await save(wanted({ name: "gone" }, "task-3"));
    await rm(join(folder, "gone.png"));
    await writeFile(join(folder, "mine.png"), "mine");
    await again({ name: "next", replaces: ["Café/hero.png"] }, "task-4");
    const result = await again({
      name: "last",
      replaces: ["mine.png", "gone.png", "_superseded/Café/hero.png", "nowhere.png"],
    });
    expect(result).toMatchObject({ kind: "saved", file: "last.png" });
    expect(result).not.toHaveProperty("moved");
    expect(await files()).toContain("mine.png");
  });

  test("stays where it is, if the new one is none", async () => {
    await save(wanted());
    server.answer(sends("<html>no</html>"));
    expect(await again({ replaces: ["Café/hero.png"] })).toMatchObject({ kind: "try_again" });
    expect(await files()).toContain("Café/hero.png");
  });
});

describe("an item that was made again", () => {
  const byTask = (task: string, change: Partial<SaveRequest> = {}) =>
    save(wanted({ index: { ...wanted().index, task }, ...change }));

  test("takes the name of its output that was lost, and no other's", async () => {
    await save(wanted());
    await rm(join(folder, "Café/hero.png"));
    // Another item, and another output.
    expect(await save(wanted({}, "task-2"))).toMatchObject({ file: "Café/hero-2.png" });
    expect(await byTask("task-9", { outputNumber: 2 })).toMatchObject({ file: "Café/hero-3.png" });
    expect(await byTask("task-9")).toMatchObject({ file: "Café/hero.png" });
  });

  test("gets a name of its own while that output is there", async () => {
    await save(wanted());
    expect(await byTask("task-9")).toMatchObject({ file: "Café/hero-2.png" });
  });
});

describe("the archive of a process", () => {
  const open = (disk: Disk = nodeDisk, download: Download = downloads.download) =>
    openArchive({
      disk,
      download,
      clock,
      version: "1.2.3",
      inspect: (path, category) => inspect(disk, path, category),
    });

  test("knows what it has, and asks for nothing twice", async () => {
    const archive = open();
    expect(await archive.known(wanted())).toBeNull();
    const saved = await archive.save(wanted());
    expect(await archive.known(wanted())).toEqual(saved);
    expect(await archive.save(wanted())).toEqual(saved);
    expect(server.requests).toHaveLength(1);
    expect((await archive.indexOf(folder)).all()).toHaveLength(1);
    await rm(join(folder, "Café/hero.png"));
    expect(await archive.known(wanted())).toBeNull();
  });

  test("ends a transfer that is no longer wanted", async () => {
    const interrupt = new AbortController();
    interrupt.abort();
    expect(await open().save(wanted(), interrupt.signal)).toMatchObject({
      kind: "try_again",
      reason: "the download was interrupted",
    });
  });

  test("P17: says why its disk would take nothing", async () => {
    expect(await open().refusal(folder)).toBeNull();
    const full = open({ ...nodeDisk, freeBytes: async () => 0 });
    expect(await full.refusal(folder)).toMatchObject({ kind: "disk", code: "ENOSPC" });
    const broken = watchedDisk(nodeDisk, () => {
      throw systemError("EIO");
    });
    expect(await open(broken).known(wanted())).toMatchObject({ kind: "disk", code: "EIO" });
  });

  test("P14: keeps what broke off for the next try, and nothing after its end", async () => {
    const archive = open(nodeDisk, breakingOnce(downloads.download, 100));
    server.answer((_, reply) => reply.writeHead(200, { etag: '"a"' }).end(picture));
    await archive.save(wanted());
    expect(await files()).toEqual([expect.stringMatching(/\.part$/)]);
    await archive.close();
    expect(await files()).toEqual([]);
  });
});
