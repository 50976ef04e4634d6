import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Downloads, undiciDownloads } from "../../src/archive/download.js";
import { Indexes } from "../../src/archive/index-file.js";
import { removeLeftovers } from "../../src/archive/leftovers.js";
import { nodeDisk } from "../../src/archive/node-disk.js";
import { type SavePorts, type SaveRequest, type SaveResult, saveOutput } from "../../src/archive/save.js";
import type { Disk } from "../../src/core/disk.js";
import type { Download } from "../../src/core/send.js";
import { ManualClock } from "../manual-clock.js";
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
    expect(await lines()).toEqual([{ ...wanted().index, output: 1, ...facts }]);
  });

  test("P13: the steps come in the order that makes the file durable", async () => {
    const steps: string[] = [];
    const disk = watchedDisk(nodeDisk, (step, path) => {
      const at = relative(folder, path).replace(/\.bulkgen-.*\.part$/, "part");
      if (steps.at(-1) !== `${step} ${at}`) steps.push(`${step} ${at}`);
    });
    await save(wanted(), { disk });
    expect(steps.filter((step) => !/^(size|list) /.test(step))).toEqual([
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

  test("P21: the signed URL is written nowhere", async () => {
    await save(wanted());
    server.answer(sends("<html>no</html>"));
    await save(wanted({}, "task-2"));
    for (const file of await files())
      expect(await readFile(join(folder, file), "latin1")).not.toContain("canary");
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

  test("P13: the same content for another item is a file of its own", async () => {
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
      folder = join(root, `ended-${last}`);
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

  test("P17: a folder that cannot be made is told by its code", async () => {
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
      reason: expect.stringContaining("cut off"),
    });
    expect((await files()).filter((file) => !file.startsWith("_quarantine/"))).toEqual([]);
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

  test("P22: a packed answer is not unpacked", async () => {
    server.answer((_, reply) => reply.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(picture)));
    expect(await save(wanted())).toMatchObject({
      kind: "try_again",
      reason: "the server sent it gzip-encoded, unasked",
    });
    expect(server.requests[0]?.headers["accept-encoding"]).toBe("identity");
  });

  test("P22: an address that the rule refuses is told as refused", async () => {
    for (const url of ["http://169.254.169.254/latest/meta-data", "ftp://example.com/a.png", "nonsense"])
      expect(await save(wanted({ url }))).toMatchObject({ kind: "refused" });
  });
});

describe("limits", () => {
  const limits = { bytesMax: 1000, msMax: 90_000, stallMsMax: 60_000 };

  test("P22: an output that says it is too large is not begun", async () => {
    server.answer(sends(Buffer.alloc(1001)));
    expect(await save(wanted(), { limits })).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("1001"),
    });
  });

  test("P22: a server that sends forever is cut off at the cap, and nothing is left", async () => {
    server.answer((_, reply) => {
      const more = () => {
        while (!reply.destroyed && reply.write(Buffer.alloc(400)));
      };
      reply.on("drain", more);
      more();
    });
    expect(await save(wanted(), { limits })).toMatchObject({ kind: "refused" });
    expect(await files()).toEqual([]);
  });

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
    expect(result).toEqual({ kind: "try_again", reason: "no byte came for 60 s" });
    expect(await files()).toEqual([]);
  });

  test("P22: a transfer that takes too long in all is broken off", async () => {
    expect(await stopping(() => clock.advance(90_000))).toEqual({
      kind: "try_again",
      reason: "the transfer took longer than 90 s",
    });
  });

  test("an interrupt ends the transfer and leaves nothing", async () => {
    const interrupt = new AbortController();
    const result = await stopping(() => interrupt.abort(), { signal: interrupt.signal });
    expect(result).toEqual({ kind: "try_again", reason: "the download was interrupted" });
    expect(await files()).toEqual([]);
  });
});
