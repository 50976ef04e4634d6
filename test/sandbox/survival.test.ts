import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serveSandbox } from "../../src/sandbox/serve.js";
import { openSqlite } from "../../src/sqlite.js";
import { Caller } from "./caller.js";
import { CountingRandom, ManualClock } from "./manual-clock.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bulkgen-survival-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const image = { model: "aurora-image-mini", prompt: "What was paid for stays" };

describe("a sandbox started again on the same file", () => {
  it("finds its tasks, credits, counters and pictures after kill -9", async () => {
    const file = join(folder, "sandbox.db");
    const child = await startChild(file);
    const headers = { "x-api-key": child.key, "content-type": "application/json" };
    const generate = { method: "POST", headers, body: JSON.stringify(image) };
    const created = await (await fetch(`${child.url}/api/v1/generate`, generate)).json();
    await child.kill();
    const clock = new ManualClock();
    const caller = await Caller.start({ file, credits: 9_999, random: new CountingRandom() }, clock);
    clock.advance(60_000);
    const task = (await caller.task(created.task_id)).body;
    expect(task).toMatchObject({ status: "completed", credits_consumed: 1 });
    expect((await sharp(await caller.download(task.output_urls[0])).metadata()).width).toBe(640);
    const me = (await caller.get("/api/v1/me")).body;
    expect(me.credits).toEqual({ balance: 499, used_this_key: 1 });
    expect(me.api_key.requests_count).toBe(3);
    await caller.sandbox.close();
  });

  it("makes the same bytes again", async () => {
    const file = join(folder, "sandbox.db");
    const first = await Caller.start({ file });
    const task = await first.finish(image);
    const before = await first.download(task.output_urls[0]);
    await first.sandbox.close();
    const second = await Caller.start({ file }, first.clock);
    const again = (await second.task(task.task_id)).body;
    expect((await second.download(again.output_urls[0])).equals(before)).toBe(true);
    await second.sandbox.close();
  });

  it("takes its own pictures as inputs, at the addresses of the port before too", async () => {
    const options = { file: join(folder, "sandbox.db") };
    const first = await Caller.start(options);
    const [address] = (await first.finish(image)).output_urls;
    await first.sandbox.close();
    const second = await Caller.start(options, first.clock);
    const forged = address.replace(/signature=./, "signature=0");
    const tasks = [];
    for (const image_url of [address, forged])
      tasks.push((await second.generate({ model: "atelier-upscale", image_url })).body.task_id);
    await second.sandbox.settled();
    second.clock.advance(60_000);
    expect((await second.task(tasks[0])).body.status).toBe("completed");
    expect((await second.task(tasks[1])).body).toMatchObject({
      status: "failed",
      error: expect.stringContaining("cannot be reached"),
    });
    await second.sandbox.close();
  });

  it("continues with a task whose input was not fetched yet", async () => {
    const red = sharp({ create: { width: 60, height: 40, channels: 3, background: "#c03020" } });
    writeFileSync(join(folder, "red.png"), await red.png().toBuffer());
    const options = { file: join(folder, "sandbox.db"), inputRoot: folder };
    const first = await Caller.start(options);
    const created = (await first.generate({ model: "atelier-upscale", image_url: "red.png" })).body;
    await first.sandbox.close();
    const second = await Caller.start(options, first.clock);
    await second.sandbox.settled();
    second.clock.advance(60_000);
    expect((await second.task(created.task_id)).body.status).toBe("completed");
    await second.sandbox.close();
  });

  it("does not wait for the slow server of an input, and fetches it again", async () => {
    const red = await sharp({ create: { width: 60, height: 40, channels: 3, background: "#c03020" } })
      .png()
      .toBuffer();
    let isSlow = true;
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "image/png" });
      if (!isSlow) return void response.end(red);
      const drops = setInterval(() => response.write(red.subarray(0, 9)), 100);
      response.once("close", () => clearInterval(drops));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const asked = once(server, "request");
    const { port } = server.address() as AddressInfo;
    const options = { file: join(folder, "sandbox.db") };
    const first = await Caller.start(options);
    const image_url = `http://127.0.0.1:${port}/red.png`;
    const created = (await first.generate({ model: "atelier-upscale", image_url })).body;
    await asked;
    await first.sandbox.close();
    isSlow = false;
    const second = await Caller.start(options, first.clock);
    await second.sandbox.settled();
    second.clock.advance(60_000);
    expect((await second.task(created.task_id)).body.status).toBe("completed");
    await second.sandbox.close();
    server.close();
  });
});

describe("a failure of the sandbox itself", () => {
  it("answers as the page says, charges nothing, and tells its cause to the host alone", async () => {
    const file = join(folder, "sandbox.db");
    const causes: string[] = [];
    const caller = await Caller.start({ file, onError: ({ message }) => causes.push(message) });
    const before = (await caller.get("/api/v1/me")).body.credits.balance;
    const db = openSqlite(file);
    db.exec("create trigger full before insert on tasks begin select raise(abort, 'disk is full'); end");
    const { status, body } = await caller.generate(image);
    expect([status, body.error]).toEqual([
      500,
      { code: "GENERATION_ERROR", message: "Internal error while processing the generation." },
    ]);
    expect(causes).toEqual([expect.stringContaining("disk is full")]);
    db.exec("drop trigger full");
    db.close();
    expect((await caller.get("/api/v1/me")).body.credits.balance).toBe(before);
    expect((await caller.generate(image)).status).toBe(200);
    await caller.sandbox.close();
  });

  it("leaves a task open whose outcome cannot be stored, and a later sandbox decides it", async () => {
    const file = join(folder, "sandbox.db");
    const causes: string[] = [];
    const first = await Caller.start({ file, onError: ({ message }) => causes.push(message) });
    const made = (await first.finish(image)).output_urls[0];
    const db = openSqlite(file);
    db.exec(
      "create trigger full before update of outcome on tasks begin select raise(abort, 'disk is full'); end",
    );
    const { task_id } = (await first.generate({ model: "atelier-upscale", image_url: made })).body;
    await first.sandbox.settled();
    expect(causes).toEqual([expect.stringContaining("disk is full")]);
    db.exec("drop trigger full");
    db.close();
    await first.sandbox.close();
    const second = await Caller.start({ file }, first.clock);
    await second.sandbox.settled();
    second.clock.advance(60_000);
    expect((await second.task(task_id)).body.status).toBe("completed");
    await second.sandbox.close();
  });
});

describe("a port that is taken", () => {
  it("is reported, and nothing keeps running", async () => {
    const caller = await Caller.start();
    const port = Number(new URL(caller.sandbox.url).port);
    const options = { clock: new ManualClock(), random: new CountingRandom(), file: ":memory:", port };
    await expect(serveSandbox(options)).rejects.toThrow("EADDRINUSE");
    await caller.sandbox.close();
  });
});

/** A sandbox in a process of its own, run from the build. */
async function startChild(file: string) {
  const serve = pathToFileURL("dist/sandbox/serve.js").href;
  const script = `
    import { randomUUID } from "node:crypto";
    import { serveSandbox } from ${JSON.stringify(serve)};
    const clock = { now: () => ${Date.UTC(2026, 10, 20, 12)}, monotonic: () => 0, sleep: async () => {} };
    const random = { next: () => 0.5, uuid: randomUUID };
    const { url, key } = await serveSandbox({ clock, random, file: ${JSON.stringify(file)} });
    console.log(JSON.stringify({ url, key }));`;
  const stdio = ["ignore", "pipe", "inherit"] as ["ignore", "pipe", "inherit"];
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const { url, key } = JSON.parse(line) as { url: string; key: string };
  const kill = async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return { url, key, kill };
}
