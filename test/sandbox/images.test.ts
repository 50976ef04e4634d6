import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shorten } from "../../src/sandbox/studio/lettering.js";
import { Caller } from "./caller.js";

describe("an image", () => {
  let caller: Caller;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "bulkgen-inputs-"));
    const red = sharp({ create: { width: 60, height: 40, channels: 3, background: "#c03020" } });
    writeFileSync(join(folder, "red.png"), await red.png().toBuffer());
    writeFileSync(join(folder, "text.png"), "not a picture");
    symlinkSync("/etc/hostname", join(folder, "link.png"));
    caller = await Caller.start({ plan: "Enterprise", credits: 1_000, inputRoot: folder, urlMs: 60_000 });
  });
  afterAll(async () => {
    await caller.sandbox.close();
    rmSync(folder, { recursive: true });
  });

  it.each([
    ["16:9", "png", 1024, 576],
    ["9:16", "jpeg", 576, 1024],
    ["1:1", "webp", 1024, 1024],
  ])(
    "has the ratio %s and the format %s that were asked for",
    async (aspect_ratio, output_format, width, height) => {
      const task = await caller.finish({
        model: "aurora-image",
        prompt: "Żółć",
        params: { aspect_ratio, output_format },
      });
      const facts = await sharp(await caller.download(task.output_urls[0])).metadata();
      expect(facts).toMatchObject({ width, height, format: output_format });
    },
  );

  it("of a model with a size of its own has that size", async () => {
    const task = await caller.finish({ model: "aurora-image-mini", prompt: "a fox" });
    const facts = await sharp(await caller.download(task.output_urls[0])).metadata();
    expect(facts).toMatchObject({ width: 640, height: 640 });
  });

  it("is another for another request, and for the same one again unless its seed is fixed", async () => {
    const made = async (prompt: string, params = {}) => {
      const task = await caller.finish({ model: "aurora-image", prompt, params });
      const bytes = async () => (await caller.download(task.output_urls[0])).toString("base64");
      const found = await bytes();
      expect(await bytes()).toBe(found);
      return found;
    };
    const [first, again, other] = [await made("a heron"), await made("a heron"), await made("an owl")];
    expect(new Set([first, again, other]).size).toBe(3);
    expect(await made("a heron", { seed: "2" })).toBe(await made("a heron", { seed: "2" }));
  });

  it("may be asked for in part, as long as it is still the same", async () => {
    const task = await caller.finish({ model: "aurora-image-mini", prompt: "parts" });
    const url = task.output_urls[0];
    const whole = await fetch(url);
    const etag = whole.headers.get("etag") ?? "";
    const bytes = Buffer.from(await whole.arrayBuffer());
    const part = await fetch(url, { headers: { range: "bytes=10-", "if-range": etag } });
    expect([part.status, part.headers.get("content-range")]).toEqual([
      206,
      `bytes 10-${bytes.length - 1}/${bytes.length}`,
    ]);
    expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(10))).toBe(true);
    expect((await fetch(url, { headers: { range: "bytes=10-", "if-range": '"other"' } })).status).toBe(200);
  });

  it("can be downloaded until its URL expires, and again with the URL of a later poll", async () => {
    const task = await caller.finish({ model: "aurora-image-mini", prompt: "late" });
    const url = task.output_urls[0];
    expect((await fetch(url)).status).toBe(200);
    expect((await fetch(url.replace("/1.png", "/2.png"))).status).toBe(403);
    caller.clock.advance(60_000);
    const late = await fetch(url);
    expect([late.status, (await late.json()).error.code]).toEqual([403, "URL_EXPIRED"]);
    expect((await fetch((await caller.task(task.task_id)).body.output_urls[0])).status).toBe(200);
  });

  it("can be made from a local file, and from the output of another task", async () => {
    const edit = await caller.finish({ model: "atelier-edit", prompt: "blue", image_url: "red.png" });
    const up = await caller.finish({
      model: "atelier-upscale",
      image_url: edit.output_urls[0],
      params: { scale: "3x" },
    });
    const again = (await caller.task(edit.task_id)).body.output_urls[0];
    const before = await sharp(await caller.download(again)).metadata();
    const after = await sharp(await caller.download(up.output_urls[0])).metadata();
    expect([after.width, after.height]).toEqual([(before.width ?? 0) * 3, (before.height ?? 0) * 3]);
  });

  it("that is edited keeps its size", async () => {
    const task = await caller.finish({ model: "atelier-edit", prompt: "blue", image_url: "red.png" });
    const { width, height } = await sharp(await caller.download(task.output_urls[0])).metadata();
    expect([width, height]).toEqual([60, 40]);
  });

  it("of a prompt that the font cannot show has a label instead of boxes", () => {
    expect(shorten("日本語")).toBe("(text that this font cannot show)");
    expect(shorten("A heron 鷺 at dawn 🐦‍⬛")).toBe("A heron … at dawn …");
    expect(shorten("Żółć, γάτα и кот – “5 €”!")).toBe("Żółć, γάτα и кот – “5 €”!");
  });

  it("upscaled is still the picture that was given", async () => {
    const task = await caller.finish({ model: "atelier-upscale", image_url: "red.png" });
    const { dominant } = await sharp(await caller.download(task.output_urls[0])).stats();
    expect(dominant.r).toBeGreaterThan(150);
    expect(dominant.b).toBeLessThan(80);
  });

  it.each([
    ["text.png", "of no known kind"],
    ["https://127.0.0.1:1/a.png", "cannot be reached"],
  ])("whose input %s cannot be used fails, says why, and costs nothing", async (image_url, why) => {
    const before = (await caller.get("/api/v1/me")).body.credits.balance;
    const task = await caller.finish({ model: "atelier-upscale", image_url });
    expect(task).toMatchObject({ status: "failed", credits_consumed: 0, output_urls: null });
    expect(task.error).toContain(why);
    expect((await caller.get("/api/v1/me")).body.credits.balance).toBe(before);
  });

  it.each([
    ["missing.png", "does not exist"],
    ["not a url", "does not exist"],
    ["//example.com/a.png", "does not exist"],
    ["link.png", "outside the folder"],
    ["../../../../../../etc/hostname", "outside the folder"],
  ])("is refused before anything is charged where no file is at %s", async (image_url, why) => {
    const { status, body } = await caller.generate({ model: "atelier-upscale", image_url });
    expect([status, body.error.code]).toEqual([400, "INVALID_REQUEST"]);
    expect(body.error.message).toMatch(why);
  });
});
