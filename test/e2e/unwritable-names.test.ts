import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, type Place, run } from "./command.js";

/** A sheet with one row for each output name. */
function sheetOf(...names: string[]): string {
  const rows = names.map((name, index) => `r${index + 1},aurora-image-mini,picture ${index + 1},${name}`);
  return ["id,model,prompt,output", ...rows, ""].join("\n");
}

const call = (place: Place, ...words: string[]) => run(place, [...words, "--sandbox"]);
const files = (place: Place) =>
  readdirSync(join(place.folder, "sandbox-outputs/j"), { recursive: true }).map(String);

describe("a name that cannot be written is refused before anything is paid", () => {
  test.each<[string, string, (folder: string, elsewhere: string) => void, RegExp]>([
    [
      "below a linked folder",
      "x/two",
      (job, other) => symlinkSync(other, join(job, "x")),
      /is a symbolic link/,
    ],
    [
      "deep below a linked folder",
      "y/x/z/two",
      (job, other) => {
        mkdirSync(join(job, "y"));
        symlinkSync(other, join(job, "y/x"));
      },
      /y\/x is a symbolic link/,
    ],
    [
      "below a file",
      "cup.png/two",
      (job) => writeFileSync(join(job, "cup.png"), "mine"),
      /cup\.png is a file/,
    ],
    ["below the index", "index.jsonl/two", () => {}, /index\.jsonl is a file of bulkgen's own/],
    ["below the index, in capitals", "INDEX.JSONL/two", () => {}, /INDEX\.JSONL is a file of bulkgen's own/],
  ])("%s", async (_, name, prepare, message) => {
    const place = newPlace();
    const job = join(place.folder, "sandbox-outputs/j");
    const elsewhere = join(place.folder, "elsewhere");
    mkdirSync(job, { recursive: true });
    mkdirSync(elsewhere);
    prepare(job, elsewhere);
    place.write("j.csv", sheetOf("one", name));
    const plan = await call(place, "plan", "j.csv", "--json");
    expect(plan.code, plan.stderr).toBe(2);
    expect(JSON.parse(plan.stdout).problems).toMatchObject([
      { place: { row: 3, column: "output" }, message: expect.stringMatching(message) },
    ]);
    expect((await call(place, "run", "j.csv", "--yes")).code).toBe(2);
    const rest = await call(place, "run", "j.csv", "--yes", "--skip-invalid");
    expect(rest.code, rest.stderr).toBe(0);
    expect(files(place)).toContain("one.png");
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  test("a file in the place of the job's folder", async () => {
    const place = newPlace();
    mkdirSync(join(place.folder, "sandbox-outputs"));
    writeFileSync(join(place.folder, "sandbox-outputs/j"), "mine");
    place.write("j.csv", sheetOf("one"));
    const end = await call(place, "run", "j.csv", "--yes");
    expect(end).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no output can be saved: .*j is a file/),
    });
  });
});

test("a folder that was linked away later keeps what is paid, and the other rows are named and made", async () => {
  const place = newPlace();
  place.write("j.csv", sheetOf("x/one", "x/two"));
  expect((await call(place, "run", "j.csv", "--yes")).code).toBe(0);
  const job = join(place.folder, "sandbox-outputs/j");
  renameSync(join(job, "x"), join(place.folder, "elsewhere"));
  symlinkSync(join(place.folder, "elsewhere"), join(job, "x"));
  const changed = sheetOf("y/one", "x/two", "three");
  place.write("j.csv", changed);
  const end = await call(place, "run", "j.csv", "--yes");
  expect(end.code, end.stderr).toBe(0);
  expect(files(place)).toContain("three.png");
});

test("two rows of which one needs the other's file as a folder are both saved", async () => {
  const place = newPlace();
  place.write("j.csv", sheetOf("cup", "cup.png/two"));
  const end = await call(place, "run", "j.csv", "--yes", "--lanes", "1");
  expect(end.code, end.stderr).toBe(0);
  expect(
    files(place).filter(
      (file) => file.endsWith(".png") && existsSync(join(place.folder, "sandbox-outputs/j", file)),
    ).length,
  ).toBeGreaterThanOrEqual(2);
});

test("a rename into a folder that is in the way does not stop the other renames", async () => {
  const place = newPlace();
  place.write("j.csv", sheetOf("one", "two"));
  expect((await call(place, "run", "j.csv", "--yes")).code).toBe(0);
  const job = join(place.folder, "sandbox-outputs/j");
  writeFileSync(join(job, "x"), "mine");
  place.write("j.csv", sheetOf("x/one", "deux"));
  const end = await call(place, "run", "j.csv", "--yes");
  expect(end.code, end.stderr).toBe(0);
  expect(files(place).sort()).toEqual(["deux.png", "index.jsonl", "one.png", "x"]);
  expect(end.stderr).toContain("the file keeps its old name");
  rmSync(join(job, "x"));
});
