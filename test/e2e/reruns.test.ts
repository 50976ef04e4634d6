import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { indexOf } from "./archive.js";
import { newPlace, type Place, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { cheapModel, ids, sheet } from "./sheet.js";

const slow = { timeout: 120_000 };

function rows(...lines: string[]): string {
  return ["id,model,prompt,output", ...lines.map((line) => line.replace("~", cheapModel))].join("\n");
}

/** A place whose commands reach a service that runs already and has no limits. */
async function placeWithService(): Promise<Place> {
  const place = newPlace();
  const { env } = await startSandbox();
  return { ...place, env: { ...place.env, ...env } };
}

async function pays(place: Place, ...flags: string[]): Promise<number> {
  const end = await run(place, ["run", "s.csv", "--yes", "--json", ...flags]);
  expect(end.code, end.stderr).toBe(0);
  return JSON.parse(end.stdout).credits.spent as number;
}

function folder(place: Place): string {
  return join(place.folder, "outputs", "s");
}

/** The files of the archive with what each holds, and the index held to the same. */
function files(place: Place): Record<string, string> {
  const found = readdirSync(folder(place), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== "index.jsonl")
    .map((entry) => join(entry.parentPath, entry.name).slice(folder(place).length + 1));
  const latest = new Map(indexOf(folder(place)).map((line) => [`${line.task} ${line.output}`, line.file]));
  expect([...latest.values()].toSorted()).toEqual(found.toSorted());
  return Object.fromEntries(
    found.toSorted().map((file) => [file, readFileSync(join(folder(place), file)).toString("base64")]),
  );
}

describe.concurrent("a sheet that is run again", () => {
  test(
    "with 12 changed rows of 40 pays 12, and the files made before are put away, not lost",
    slow,
    async () => {
      const place = await placeWithService();
      place.write("s.csv", sheet(40));
      expect(await pays(place)).toBe(40);
      const before = files(place);
      const changed = sheet(40).replace(/a picture of (a0\d|a1[0-2])$/gm, "another picture of $1");
      place.write("s.csv", changed);
      const plan = await run(place, ["plan", "s.csv"]);
      expect(plan.stdout).toContain("12 needed");
      expect(plan.stdout).toContain("row 2 (a01): prompt; the old file will move to _superseded/");
      expect(await pays(place)).toBe(12);
      const after = files(place);
      for (const id of ids(12)) {
        expect(after[`_superseded/${id}.png`]).toBe(before[`${id}.png`]);
        expect(after[`${id}.png`]).toBeDefined();
        expect(after[`${id}.png`]).not.toBe(before[`${id}.png`]);
      }
      expect(Object.keys(after)).toHaveLength(52);
      // The earlier pictures are put away: no later plan calls them changed or missing.
      expect((await run(place, ["plan", "s.csv"])).stdout).not.toMatch(/Changed:|no longer in the manifest/);

      place.write("s.csv", sheet(40));
      const back = await run(place, ["plan", "s.csv"]);
      expect(back.stdout).toContain("0 needed");
      expect(back.stdout).toContain("row 2 (a01): made before; its file is restored at no cost");
      expect(await pays(place)).toBe(0);
      const restored = files(place);
      for (const id of ids(40)) expect(restored[`${id}.png`]).toBe(before[`${id}.png`]);
      expect(Object.keys(restored).filter((name) => name.startsWith("_superseded/"))).toHaveLength(12);
    },
  );

  test("with rows, ids and outputs in other places pays nothing, and files are renamed", slow, async () => {
    const place = await placeWithService();
    place.write("s.csv", rows("a,~,first,", "b,~,second,", "c,~,third,", "d,~,fourth,old/name"));
    expect(await pays(place)).toBe(4);
    const before = files(place);
    // A ring, a chain onto a name that is left, and a name in another folder.
    place.write("s.csv", rows("e,~,third,", "c,~,fourth,new/name", "b,~,first,", "a,~,second,"));
    const plan = await run(place, ["plan", "s.csv"]);
    expect(plan.stdout).toContain("0 needed");
    expect(plan.stdout).toContain("row 3: old/name becomes new/name; its file is renamed at no cost");
    expect(await pays(place)).toBe(0);
    expect(files(place)).toEqual({
      "a.png": before["b.png"],
      "b.png": before["a.png"],
      "e.png": before["c.png"],
      "new/name.png": before["old/name.png"],
    });
    expect(await pays(place)).toBe(0);
    const found = await run(place, ["export", "--format", "json"]);
    expect(JSON.parse(found.stdout).map((line: { file: string }) => line.file)).toEqual([
      "e.png",
      "new/name.png",
      "b.png",
      "a.png",
    ]);
  });

  test("keeps the old file in its place while the new one fails", slow, async () => {
    const place = await placeWithService();
    place.write("s.csv", rows("a,~,fine,"));
    await pays(place);
    const before = files(place);
    place.write("s.csv", rows("a,~,[[moderation]],"));
    expect((await run(place, ["run", "s.csv", "--yes"])).code).toBe(5);
    expect(files(place)).toEqual(before);
    place.write("s.csv", rows("a,~,mended,"));
    expect(await pays(place)).toBe(1);
    expect(Object.keys(files(place))).toEqual(["_superseded/a.png", "a.png"]);
    expect((await run(place, ["plan", "s.csv"])).stdout).not.toMatch(/Changed:|no longer in the manifest/);
  });

  test("gives a row the name of one that is gone, whose file makes way", slow, async () => {
    const place = await placeWithService();
    place.write("s.csv", rows("a,~,first,", "b,~,second,"));
    await pays(place);
    const before = files(place);
    place.write("s.csv", rows("a,~,second,"));
    expect(await pays(place)).toBe(0);
    expect(files(place)).toEqual({ "_superseded/a.png": before["a.png"], "a.png": before["b.png"] });
  });
});

describe.concurrent("archived files that are gone", () => {
  test(
    "are reported with both ways out, fetched again at no cost, or made again for their price",
    slow,
    async () => {
      const place = await placeWithService();
      place.write("s.csv", sheet(3));
      await pays(place);
      const before = files(place);
      const lose = (...names: string[]) => {
        for (const name of names) rmSync(join(folder(place), name));
      };
      lose("a01.png", "a02.png");
      for (const output of ["--quiet", "--json"]) {
        const nightly = await run(place, ["run", "s.csv", "--yes", output]);
        expect(nightly.stderr, output).toContain(
          "2 archived items have lost files (a01, a02): --missing fetch",
        );
      }
      const told = await run(place, ["plan", "s.csv"]);
      expect(told.stdout).toContain(
        "2 archived items have lost files (a01, a02): --missing fetch downloads them again at no cost",
      );
      expect(told.stdout).toContain("--missing pay makes them again for 2 credits");
      expect(await pays(place)).toBe(0);
      expect(readdirSync(folder(place)).toSorted()).toEqual(["a03.png", "index.jsonl"]);

      expect(await pays(place, "--missing", "fetch")).toBe(0);
      expect(files(place)).toEqual(before);

      lose("a03.png");
      const priced = await run(place, ["plan", "s.csv", "--missing", "pay"]);
      expect(priced.stdout).toContain("1 needed");
      const unasked = await run(place, ["run", "s.csv", "--missing", "pay"]);
      expect(unasked).toMatchObject({ code: 2, stderr: expect.stringContaining("Add --yes") });
      expect(await pays(place, "--missing", "pay", "--first", "2")).toBe(0);
      expect(await pays(place, "--missing", "pay")).toBe(1);
      expect(readdirSync(folder(place)).toSorted()).toEqual(["a01.png", "a02.png", "a03.png", "index.jsonl"]);
      expect(await pays(place)).toBe(0);
    },
  );
});
