import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { describe, expect, test } from "vitest";
import { galleryData } from "../report/gallery-data.js";
import { newPlace, type Place, run } from "./command.js";
import { startService } from "./service.js";
import { cheapModel, sheet } from "./sheet.js";
import { unzip } from "./unzip.js";

const slow = { timeout: 120_000 };

/** A command that succeeds. */
async function done(place: Place, ...args: string[]): Promise<string> {
  const end = await run(place, [...args, "--sandbox"]);
  expect(end.code, end.stderr).toBe(0);
  return end.stdout;
}

/** Two rows, and a second take of the first. */
async function twoTakes(rows = sheet(2)): Promise<Place> {
  const place = newPlace();
  place.write("s.csv", rows);
  await done(place, "run", "s.csv", "--yes");
  await done(place, "redo", "a01", "--yes");
  return place;
}

/** The cells of an export, by item. */
async function cells(place: Place, ...args: string[]): Promise<Record<string, Record<string, string>>> {
  const lines = parse(await done(place, "export", ...args), { bom: true, columns: true });
  return Object.fromEntries((lines as Record<string, string>[]).map((line) => [line["item"], line]));
}

describe.concurrent("bulkgen pick", () => {
  test("of two takes of a row the better one is picked, listed, exported and shown", slow, async () => {
    const place = await twoTakes();
    expect(await done(place, "pick", "a01", "a02")).toBe("a01 is picked\na02 is picked\n");
    expect(await done(place, "pick", "a01-v2")).toBe("a01-v2 is picked instead of a01\n");
    expect(await done(place, "pick", "sandbox-outputs/s/a01-v2.png")).toBe("a01-v2 was picked already\n");
    const listed = await done(place, "pick");
    expect(listed).toMatch(/a02 +s +sandbox-outputs\/s\/a02\.png +a picture of a02\n/);
    expect(listed).toMatch(/a01-v2 +s +sandbox-outputs\/s\/a01-v2\.png/);
    expect(listed).not.toMatch(/^a01 /m);
    expect(listed).toContain("`bulkgen export --sandbox --picked --zip picked.zip`");
    const all = await cells(place);
    expect(Object.values(all).map(({ item, picked }) => [item, picked])).toEqual([
      ["a01", ""],
      ["a01-v2", "yes"],
      ["a02", "yes"],
    ]);
    for (const only of [["--picked"], ["--filter", "picked=yes"]])
      expect(Object.keys(await cells(place, ...only))).toEqual(["a01-v2", "a02"]);
    await done(place, "export", "--picked", "--zip", "client.zip", "--files-only");
    expect([...unzip(join(place.folder, "client.zip")).keys()]).toEqual(["a01-v2.png", "a02.png"]);
    const json = JSON.parse(await done(place, "export", "--json", "--filter", "item=a01*"));
    expect(json.map(({ picked }: { picked: string | null }) => picked)).toEqual([null, "yes"]);
    expect(Object.keys(await cells(place, "--filter", "file=a02.png"))).toEqual(["a02"]);
  });

  test("the gallery marks what is picked, and --picked shows nothing else", slow, async () => {
    const place = await twoTakes();
    const refused = await run(place, ["gallery", "--sandbox", "--picked"]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("no item of job s is picked") });
    await done(place, "pick", "a01-v2");
    const page = (name: string) => readFileSync(join(place.folder, "sandbox-outputs", "s", name), "utf8");
    await done(place, "gallery");
    expect(galleryData(page("gallery.html")).cards.map(({ isPicked }) => isPicked)).toEqual([
      false,
      true,
      false,
    ]);
    expect(await done(place, "gallery", "--picked")).toContain("picked.html: 1 picked file of job s");
    const client = galleryData(page("picked.html"));
    expect(client).toMatchObject({
      isForClient: true,
      cards: [{ name: "", isPicked: false, rowId: "a01-v2" }],
    });
    expect(client.cards[0]?.file?.price).toBeNull();
    await done(place, "gallery", "--prices");
    expect(galleryData(page("gallery.html")).cards.map(({ file }) => file?.price)).toEqual(
      Array(3).fill(expect.stringMatching(/credit/)),
    );
    expect(await done(place, "verify")).not.toContain("picked.html");
  });

  test("--undo takes the mark away, and --also leaves the row's other picks", slow, async () => {
    const place = await twoTakes();
    await done(place, "pick", "a01");
    expect(await done(place, "pick", "a01-v2", "--also")).toBe("a01-v2 is picked\n");
    expect(JSON.parse(await done(place, "pick", "--json"))).toHaveLength(2);
    expect(await done(place, "pick", "--undo", "a01", "a02")).toBe(
      "a01 is not picked any more\na02 was not picked\n",
    );
    await done(place, "pick", "--undo", "a01-v2");
    expect(await done(place, "pick")).toBe("nothing is picked; pick with `bulkgen pick ITEM --sandbox`\n");
    // Two takes that are named together are both wanted.
    await done(place, "pick", "a01", "a01-v2");
    expect(JSON.parse(await done(place, "pick", "--json"))).toHaveLength(2);
    const nothing = await run(place, ["pick", "--undo", "--sandbox"]);
    expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining("name the items") });
  });

  test("an edited row's new picture replaces the old one's pick", slow, async () => {
    const place = await twoTakes();
    await done(place, "pick", "a01");
    place.write("s.csv", sheet(2).replace("a picture of a01", "a better picture of a01"));
    await done(place, "run", "s.csv", "--yes");
    expect((await cells(place))["a01"]).toMatchObject({ picked: "" });
    expect(await done(place, "pick", "a01")).toBe("a01 is picked instead of its earlier version\n");
    expect(JSON.parse(await done(place, "pick", "--json"))).toMatchObject([
      { rowId: "a01", prompt: "a better picture of a01" },
    ]);
  });

  test("--undo with the name of a row takes the mark of its earlier version away", slow, async () => {
    const place = await twoTakes();
    await done(place, "pick", "a02");
    place.write("s.csv", sheet(2).replace("a picture of a02", "a better picture of a02"));
    await done(place, "run", "s.csv", "--yes");
    expect(await done(place, "pick")).toContain("replaced by a new version");
    expect(await done(place, "pick", "--undo", "a01")).toBe("a01 was not picked\n");
    expect(await done(place, "pick", "--undo", "a02")).toBe("a02 is not picked any more\n");
    expect(await done(place, "pick", "--json")).toBe("[]\n");
  });

  test("a selection from no item at all says so, and blames no column", slow, async () => {
    const place = newPlace();
    place.write("s.csv", `id,model,prompt\na,${cheapModel},[[moderation]] a`);
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    const redone = await run(place, ["redo", "--filter", "id=a", "--sandbox"]);
    expect(redone.stderr).toBe("bulkgen: run 1 has no archived item to select from\n");
  });

  test("only what is archived can be picked, and a wrong name changes nothing", slow, async () => {
    const place = newPlace();
    place.write("s.csv", `id,model,prompt\na,${cheapModel},a mug\nb,${cheapModel},[[moderation]] b`);
    expect((await run(place, ["pick", "a"])).code).toBe(2);
    expect(existsSync(join(place.folder, ".bulkgen"))).toBe(false);
    await run(place, ["run", "s.csv", "--sandbox", "--yes"]);
    for (const [name, message] of [
      ["b", "b is failed, and only archived items can be picked. Nothing was changed."],
      ["c", 'no item "c"'],
    ] as const) {
      const end = await run(place, ["pick", "a", name, "--sandbox"]);
      expect(end).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    }
    expect(await done(place, "pick", "--json")).toBe("[]\n");
  });

  test("a team's own column called picked stays theirs, over any number of exports", slow, async () => {
    const rows = `id,model,prompt,picked\na01,${cheapModel},a mug,by Ann\na02,${cheapModel},a bowl,`;
    const place = await twoTakes(rows);
    await done(place, "pick", "a02");
    for (const name of ["first.csv", "second.csv"]) {
      const filled = await cells(place);
      expect(filled["a01"]).toMatchObject({ picked: "by Ann", bulkgen_picked: "" });
      expect(filled["a02"]).toMatchObject({ picked: "", bulkgen_picked: "yes" });
      expect(Object.keys(await cells(place, "--filter", "picked=by*"))).toEqual(["a01", "a01-v2"]);
      for (const only of [["--picked"], ["--filter", "bulkgen_picked=yes"]])
        expect(Object.keys(await cells(place, ...only))).toEqual(["a02"]);
      // The export, taken for the sheet, asks for the same items: nothing is paid, and its columns need no notes.
      await done(place, "export", "--filter", "item=a0?", "--to", name);
      place.write("s.csv", readFileSync(join(place.folder, name)));
      const plan = JSON.parse(await done(place, "plan", "s.csv", "--json"));
      expect(plan).toMatchObject({ money: { needed: 0 }, notes: [expect.stringContaining('"picked"')] });
      await done(place, "run", "s.csv", "--yes");
    }
  });

  test("a pick in an exported sheet is filled in again, and changes no item", slow, async () => {
    const place = await twoTakes();
    await done(place, "pick", "a01");
    await done(place, "export", "--filter", "item=a0?", "--to", "back.csv");
    place.write("s.csv", readFileSync(join(place.folder, "back.csv")));
    const plan = JSON.parse(await done(place, "plan", "s.csv", "--json"));
    expect(plan).toMatchObject({ money: { needed: 0 }, notes: [] });
    await done(place, "run", "s.csv", "--yes");
    await done(place, "pick", "a01-v2");
    const filled = await cells(place);
    expect(filled["a01"]).toMatchObject({ picked: "" });
    expect(filled["a01-v2"]).toMatchObject({ picked: "yes" });
    expect(Object.keys(await cells(place, "--filter", "picked=yes"))).toEqual(["a01-v2"]);
  });
});

describe("a picked file that a run has replaced by a new version", () => {
  async function replaced() {
    const service = await startService();
    const place = newPlace();
    const rows = (prompt: string) => `id,model,prompt\ntea,plain-image,${prompt}\nmug,plain-image,a mug\n`;
    place.write("set.csv", rows("a tea pot"));
    const command = (...words: string[]) => run(place, words, service);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    expect((await command("pick", "tea", "mug")).code).toBe(0);
    place.write("set.csv", rows("a red tea pot"));
    return { place, command, rows };
  }
  const told = "tea: the picked file was replaced by a new version; pick again";

  test("is told of by plan, run, pick, gallery and export, until it is picked again", async () => {
    const { place, command } = await replaced();
    expect((await command("plan", "set.csv")).stdout.replace(/\s+/g, " ")).toContain(
      "tea: the picked file will be replaced by a new version; pick again then",
    );
    const made = await command("run", "set.csv", "--yes");
    expect(made, made.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(told) });
    expect((await command("plan", "set.csv")).stdout.replace(/\s+/g, " ")).toContain(told);
    const listed = await command("pick");
    expect(listed.stdout).not.toContain("_superseded");
    expect(listed.stdout.replace(/\s+/g, " ")).toMatch(/tea set was replaced by a new version; pick again/);
    expect(JSON.parse((await command("pick", "--json")).stdout)).toMatchObject([
      { rowId: "tea", lost: "replaced" },
      { rowId: "mug", lost: null },
    ]);
    const packed = await command("export", "--picked", "--zip", "picked.zip");
    expect(packed, packed.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(told) });
    const page = await command("gallery", "--picked");
    expect(page).toMatchObject({ code: 0, stderr: expect.stringContaining(told) });
    expect(page.stdout).toContain("1 picked file of job set");

    expect((await command("pick", "tea")).stdout).toContain("tea is picked instead of its earlier version");
    for (const words of [
      ["plan", "set.csv"],
      ["export", "--picked", "--zip", "again.zip"],
      ["gallery", "--picked"],
    ]) {
      const { stdout, stderr } = await command(...words);
      expect(stdout + stderr).not.toContain("pick again");
    }
    expect(place.files().some((name) => name.endsWith("again.zip"))).toBe(true);
  });

  test("is told of if it was another take of the row", async () => {
    const { place, command, rows } = await replaced();
    place.write("set.csv", rows("a tea pot"));
    expect((await command("redo", "tea", "--yes")).code).toBe(0);
    expect((await command("pick", "tea-v2")).code).toBe(0);
    place.write("set.csv", rows("a red tea pot"));
    expect((await command("plan", "set.csv")).stdout.replace(/\s+/g, " ")).toContain(
      "tea: the picked file will be",
    );
    const made = await command("run", "set.csv", "--yes");
    expect(made, made.stderr).toMatchObject({ code: 0, stderr: expect.stringContaining(told) });
    expect(JSON.parse((await command("pick", "--json")).stdout)).toMatchObject([
      { rowId: "mug", lost: null },
      { rowId: "tea-v2", lost: "replaced" },
    ]);
    expect((await command("export", "--picked", "--zip", "p.zip")).stderr).toContain(told);
  });

  test("is told of where nothing else is picked, and where its row is gone", async () => {
    const { place, command, rows } = await replaced();
    expect((await command("pick", "mug", "--undo")).code).toBe(0);
    expect((await command("run", "set.csv", "--yes")).code).toBe(0);
    for (const words of [
      ["export", "--picked"],
      ["gallery", "--picked"],
    ])
      expect(await command(...words)).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(new RegExp(`no item of .* is picked\\. ${told}\\.`)),
      });
    expect((await command("pick", "mug")).code).toBe(0);
    place.write("set.csv", rows("a red tea pot").replace(/mug,.*\n/, ""));
    const end = await command("run", "set.csv", "--yes");
    expect(end.stderr).toContain("mug: picked, but no row of the sheet asks for it any more");
  });
});
