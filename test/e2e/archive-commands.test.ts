import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import type { GalleryCard } from "../../src/upkeep/archive/gallery.js";
import { ManualClock } from "../manual-clock.js";
import { newPlace, type Place, run, started } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { startProxy, startService } from "./service.js";
import { cheapModel, sheet } from "./sheet.js";

const slow = { timeout: 120_000 };

async function archived(rows: string): Promise<{ place: Place; file: (name: string) => string }> {
  const place = newPlace();
  place.write("s.csv", rows);
  const { code, stderr } = await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
  expect(code, stderr).toBe(0);
  return { place, file: (name) => join(place.folder, "sandbox-outputs", "s", name) };
}

async function spent(place: Place): Promise<number> {
  const { stdout } = await run(place, ["status", "--sandbox", "--json"]);
  return (JSON.parse(stdout) as { credits: { spent: number } }).credits.spent;
}

describe.concurrent("commands that look after an archive", () => {
  test("P16: verify finds what is lost and damaged, and repairs it for no credits", slow, async () => {
    const { place, file } = await archived(sheet(3));
    const before = await spent(place);
    const good = readFileSync(file("a02.png"));
    expect(await run(place, ["verify", "--sandbox", "--read-data"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/3 files in 1 folder, all read .*\nsound +every file is intact/),
    });
    rmSync(file("a01.png"));
    const flipped = Buffer.from(good);
    flipped[100] = (flipped[100] ?? 0) ^ 1;
    writeFileSync(file("a02.png"), flipped);
    const found = await run(place, ["verify", "--sandbox", "--read-data"]);
    expect(found.code).toBe(5);
    expect(found.stdout).toMatch(/missing +1, the file is gone\n.*a01\.png/);
    expect(found.stdout).toMatch(/damaged +1, changed since it was archived\n.*a02\.png: expected sha256/);
    expect(found.stdout).toContain("`bulkgen verify --sandbox --read-data --repair` downloads again");
    const repaired = await run(place, ["verify", "--sandbox", "--read-data", "--repair"]);
    expect(repaired.code, repaired.stdout).toBe(0);
    expect(repaired.stdout).toMatch(/repaired +2 files at no cost/);
    expect(readFileSync(file("a02.png"))).toEqual(good);
    expect(existsSync(file("a01.png"))).toBe(true);
    expect(await spent(place)).toBe(before);
    const { code, stdout } = await run(place, ["verify", "--sandbox", "--clean", "--yes", "--json"]);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, sound: true, removed: 2 });
  });

  test(
    "P16: a repair leaves alone what another process has repaired by the time that it has the workspace",
    slow,
    async () => {
      const sandbox = await startSandbox();
      let mend = () => {};
      const service = await startProxy(sandbox, ({ what }) => {
        if (what === "GET me") mend();
        return "serve";
      });
      const place = newPlace();
      place.write("s.csv", sheet(2));
      expect((await run(place, ["run", "s.csv", "--yes"], service)).code).toBe(0);
      const file = join(place.folder, "outputs", "s", "a01.png");
      const good = readFileSync(file);
      const flipped = Buffer.from(good);
      flipped[100] = (flipped[100] ?? 0) ^ 1;
      writeFileSync(file, flipped);
      mend = () => writeFileSync(file, good);
      const { code, stdout, stderr } = await run(place, ["verify", "--read-data", "--repair"], service);
      expect(code, stdout + stderr).toBe(0);
      expect(readFileSync(file)).toEqual(good);
      expect(existsSync(join(place.folder, "outputs", "s", "_quarantine"))).toBe(false);
    },
  );

  test(
    "a repair that could not ask for all files says so, and advises nobody to pay again",
    slow,
    async () => {
      const service = await startService();
      const place = newPlace();
      place.write("s.csv", sheet(2, "plain-image"));
      expect((await run(place, ["run", "s.csv", "--yes", "--rpd", "8"], service)).code).toBe(0);
      expect(service.asked.filter(({ what }) => what !== "GET file")).toHaveLength(7);
      rmSync(join(place.folder, "outputs", "s", "a01.png"));
      const waits = await run(place, ["verify", "--repair"], service);
      expect(waits.code, waits.stdout).toBe(5);
      expect(waits.stdout.replace(/\s+/g, " ")).toMatch(
        /what is left was not downloaded yet: .*day.s requests.*\. `bulkgen verify --repair` tries it again, at no cost/,
      );
      expect(waits.stdout).not.toContain("pay");
      expect(service.made).toHaveLength(2);
    },
  );

  test("a repair submits nothing that a run left planned", slow, async () => {
    const place = newPlace();
    const file = (name: string) => join(place.folder, "sandbox-outputs", "s", name);
    place.write("s.csv", `${sheet(2)}\nb,${cheapModel},more`);
    const capped = await run(place, ["run", "s.csv", "--sandbox", "--yes", "--max-credits", "2"]);
    expect(capped.code).toBe(6);
    rmSync(file("a01.png"));
    expect((await run(place, ["verify", "--sandbox", "--repair"])).code).toBe(0);
    expect(existsSync(file("a01.png"))).toBe(true);
    const status = JSON.parse((await run(place, ["status", "--sandbox", "--json"])).stdout);
    expect(status).toMatchObject({ counts: { archived: 2, planned: 1 }, credits: { spent: 2 } });
  });

  test("find leads from words to files, and from a file to its row", slow, async () => {
    const { place, file } = await archived(sheet(2));
    const { stdout } = await run(place, ["find", "a02", "PICTURE", "--sandbox"]);
    expect(stdout).toContain(join("sandbox-outputs", "s", "a02.png"));
    expect(stdout).not.toContain("a01");
    place.write("copy.bin", readFileSync(file("a01.png")));
    const back = await run(place, ["find", "copy.bin", "--sandbox", "--json"]);
    expect(JSON.parse(back.stdout)).toMatchObject([
      { rowId: "a01", rowNumber: 2, prompt: "a picture of a01" },
    ]);
    // A whole prompt is longer than any name of a file.
    const prompt = Array.from({ length: 200 }, () => "picture").join(" ");
    expect(await run(place, ["find", prompt, "--sandbox"])).toMatchObject({ code: 0, stderr: "" });
    expect(await run(place, ["find", "nobody", "--sandbox"])).toMatchObject({
      code: 0,
      stdout: "nothing found\n",
    });
    expect(await run(place, ["find", "a02"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^bulkgen: only rehearsals in .* so far; add --sandbox for them\n$/),
    });
    expect(await run(place, ["find", "--since", "2026-02-30", "--sandbox"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("expected a day such as 2026-11-20"),
    });
  });

  test("the gallery names the rows that failed, and shows prices only when asked", slow, async () => {
    const place = newPlace();
    place.write("s.csv", `id,model,prompt\na,${cheapModel},a mug\nb,${cheapModel},[[moderation]] a bowl`);
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    const cards = async (...flags: string[]) => {
      expect((await run(place, ["gallery", "--sandbox", ...flags])).code).toBe(0);
      const page = readFileSync(join(place.folder, "sandbox-outputs", "s", "gallery.html"), "utf8");
      const [, data = ""] = /<script [^>]*application\/json[^>]*>(.*?)<\/script>/s.exec(page) ?? [];
      return (JSON.parse(data) as { cards: GalleryCard[] }).cards;
    };
    expect(await cards()).toMatchObject([
      { rowId: "a", state: "archived", file: { price: null } },
      {
        rowId: "b",
        rowNumber: 3,
        state: "failed",
        file: null,
        trouble: {
          reason: expect.stringContaining("moderation"),
          commands: ["bulkgen retry 1 --sandbox"],
        },
      },
    ]);
    // Later runs of other jobs may have failed items too.
    place.write("t.csv", `id,model,prompt\nb,${cheapModel},[[moderation]] a vase`);
    await run(place, ["run", "t.csv", "--sandbox", "--yes"]);
    expect((await cards("1")).at(-1)?.trouble?.commands).toEqual(["bulkgen retry 1 --sandbox"]);
    expect((await cards("1", "--prices"))[0]?.file?.price).toBe("1 credit");
    const folder = join(place.folder, "sandbox-outputs", "s");
    rmSync(join(folder, "gallery.html"));
    mkdirSync(join(folder, "gallery.html"));
    expect((await run(place, ["gallery", "1", "--sandbox"])).code).toBe(2);
    expect(readdirSync(folder).filter((name) => name.endsWith(".new"))).toEqual([]);
  });

  test("Ctrl-C ends the gallery with 130, and nothing keeps the process", slow, async () => {
    const { place, file } = await archived(sheet(12));
    // So large that several are left to shrink when the first line is drawn.
    const large = sharp({ create: { width: 2_000, height: 2_000, channels: 3, background: "#3366aa" } });
    const bytes = await large.png({ compressionLevel: 0 }).toBuffer();
    for (const name of readdirSync(join(place.folder, "sandbox-outputs", "s")))
      if (name.endsWith(".png")) writeFileSync(file(name), bytes);
    const clock = new ManualClock(Date.now());
    const writing = started(place, ["gallery", "--sandbox"], { columns: 80, clock });
    await writing.prints(/of 12 files/);
    writing.interrupt();
    const { code, stderr } = await writing.ended;
    expect([code, clock.asleep]).toEqual([130, 0]);
    expect(stderr).toContain("bulkgen: interrupted; the gallery was not written\n");
    expect(existsSync(file("gallery.html"))).toBe(false);
  });

  test(
    "P23: a symbolic link in place of a folder takes nothing, and nothing is bought for it",
    slow,
    async () => {
      const { place, file } = await archived(sheet(1));
      symlinkSync(place.root, file("sub"));
      place.write("s.csv", `id,model,prompt,output\nb,${cheapModel},b,sub/b`);
      const refused = await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/sub is a symbolic link/) });
      expect(existsSync(join(place.root, "b.png"))).toBe(false);
      rmSync(file("sub"));
      expect((await run(place, ["run", "s.csv", "--sandbox", "--yes"])).code).toBe(0);
      expect(existsSync(file("sub/b.png"))).toBe(true);
    },
  );

  test.each([
    [["verify", "--subset", "0"], "expected a share such as 10%"],
    [["verify", "--subset", "10%", "--read-data"], "cannot be used with"],
    [["verify"], "`bulkgen init` writes a first sheet"],
  ])("%j: one message, and nothing is touched", slow, async (args, message) => {
    const place = newPlace();
    expect(await run(place, args)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(place.files()).toEqual([]);
  });
});

test("an index that was spoiled by hand is mended, and its torn lines harm nothing", slow, async () => {
  const { place, file } = await archived(sheet(2));
  writeFileSync(
    file("index.jsonl"),
    '{"item":"a01","file":"../../etc/passwd","sha256":"00","bytes":1}\n{"torn',
  );
  appendFileSync(file("index.jsonl"), "\n");
  expect((await run(place, ["verify", "--sandbox"])).stdout).toMatch(/unindexed +2, intact, but/);
  expect((await run(place, ["verify", "--sandbox", "--repair"])).code).toBe(0);
  expect((await run(place, ["verify", "--sandbox", "--read-data"])).code).toBe(0);
});
