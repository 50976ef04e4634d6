import { describe, expect, test } from "vitest";
import { type Ended, newPlace, type Place, run } from "./command.js";
import { startService } from "./service.js";
import { cheapModel, ids, sheet } from "./sheet.js";

const slow = { timeout: 120_000 };

async function runs(place: Place, ...flags: string[]): Promise<Ended> {
  return run(place, ["run", "s.csv", "--sandbox", "--yes", ...flags]);
}

async function pays(place: Place, ...flags: string[]): Promise<number> {
  const end = await runs(place, "--json", ...flags);
  expect(end.code, end.stderr).toBe(0);
  return JSON.parse(end.stdout).credits.spent as number;
}

describe.concurrent("a part of a sheet", () => {
  test("is made alone, and what was not selected is made later and never dropped", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(6));
    const plan = await run(place, ["plan", "s.csv", "--sandbox", "--rows", "--first", "2"]);
    expect(plan.code, plan.stderr).toBe(0);
    expect(plan.stdout).toContain("2 of 6 selected (--first 2); the other rows are left unchanged");
    expect(plan.stdout).toContain("2 needed");
    expect(plan.stdout).not.toContain("a03");
    expect(await pays(place, "--first", "2")).toBe(2);
    expect(await pays(place, "--range", "5:6")).toBe(2);
    const after = await run(place, ["plan", "s.csv", "--sandbox", "--json"]);
    const made = JSON.parse(after.stdout);
    expect(made.vanished).toEqual([]);
    expect(made.items.map((item: { state: string }) => item.state)).toEqual([
      "archived",
      "archived",
      "new",
      "archived",
      "archived",
      "new",
    ]);
    expect(await pays(place)).toBe(2);
  });

  test("may be what failed: it is paid again with its price shown, and the rest is left", slow, async () => {
    const place = newPlace();
    const head = "id,model,prompt,set";
    const rows = [
      `a,${cheapModel},fine,x`,
      `b,${cheapModel},[[moderation]],x`,
      `c,${cheapModel},[[moderation]],y`,
    ];
    place.write("s.csv", [head, ...rows].join("\n"));
    expect((await runs(place)).code).toBe(5);
    place.write(
      "s.csv",
      [head, rows[0], `b,${cheapModel},mended,x`, rows[2], `d,${cheapModel},new,y`].join("\n"),
    );
    const asked = await run(place, ["plan", "s.csv", "--sandbox", "--only-failed"]);
    expect(asked.stdout).toContain("2 of 4 selected (--only-failed)");
    const retried = await run(place, ["retry", "--sandbox", "--filter", "set=y", "--yes"]);
    expect(retried.stderr).toContain("1 item to be submitted again, 1 credit");
    expect(retried.stderr).toContain("- c: 1");
    expect((await runs(place, "--only-failed", "--filter", "set=x")).stdout).toContain("1 of 1 item");
    const nothing = await runs(place, "--only-failed", "--filter", "set=x");
    expect(nothing).toMatchObject({ code: 0, stderr: expect.stringContaining("nothing to do") });
    expect((await run(place, ["redo", "--sandbox", "--yes"])).stderr).toContain(
      "name the items to redo, or select",
    );
    const redone = await run(place, ["redo", "--sandbox", "--yes", "--filter", "id=b"]);
    expect(redone.code, redone.stderr).toBe(0);
    expect(redone.stderr).toContain("- b-v2: 1");
  });

  test("that does not exist is reported with the ones that do, and nothing is sent", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(2));
    const says = async (...flags: string[]) => {
      const end = await runs(place, ...flags);
      expect(end.code).toBe(2);
      return end.stderr;
    };
    expect(await says("--filter", "promt=x")).toContain('did you mean "prompt"?');
    expect(await says("--filter", "x")).toContain("expected key=value");
    expect(await says("--range", "9:3")).toContain("expected row numbers such as 2:50");
    expect(await says("--range", ":")).toContain("expected row numbers");
    expect(await says("--range", "50:")).toContain("no row is selected by --range 50:");
    expect(await says("--first", "0")).toContain("expected 1 or more");
    expect(await says("--order", "size")).toContain("expected one of priority, sheet, cheapest");
  });

  test("drawn by lot is the same in the plan and in the run", slow, async () => {
    const place = newPlace();
    place.write("s.csv", sheet(9));
    const flags = ["--sample", "3", "--seed", "autumn"];
    const planned = JSON.parse((await run(place, ["plan", "s.csv", "--sandbox", "--json", ...flags])).stdout);
    expect(planned.items).toHaveLength(3);
    expect(await pays(place, ...flags)).toBe(3);
    const again = JSON.parse((await run(place, ["plan", "s.csv", "--sandbox", "--json"])).stdout);
    const archived = again.items.filter((item: { state: string }) => item.state === "archived");
    expect(archived.map((item: { rowId: string }) => item.rowId)).toEqual(
      planned.items.map((item: { rowId: string }) => item.rowId),
    );
    expect(again.items).toHaveLength(ids(9).length);
  });
});

test("identical rows: each is paid, or one for all, or none before that is settled", slow, async () => {
  const place = newPlace();
  place.write("s.csv", ["id,model,prompt", `a,${cheapModel},x`, `b,${cheapModel},x`].join("\n"));
  const told = await run(place, ["plan", "s.csv", "--sandbox"]);
  expect(told.stdout).toContain("each is made and paid for (1 credit more");
  const refused = await runs(place, "--duplicates", "error");
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("the row is identical to row 2"),
  });
  expect(await pays(place, "--duplicates", "merge")).toBe(1);
  expect(await pays(place)).toBe(1);
});

test(
  "a row is selected by its own cells, also where it shares the item of an identical one",
  slow,
  async () => {
    const place = newPlace();
    const service = await startService();
    const rows = [
      "a,plain-image,a cup,1",
      "b,plain-image,a jar,1",
      "c,plain-image,a cup,2",
      "d,plain-image,a pot,2",
    ];
    place.write("book.csv", ["id,model,prompt,chapter", ...rows].join("\n"));
    expect((await run(place, ["run", "book.csv", "--yes", "--duplicates", "merge"], service)).code).toBe(0);
    expect(service.made).toHaveLength(3);
    const exported = async (...words: string[]) => {
      const { stdout, stderr } = await run(place, ["export", "--columns", "id,chapter,file", ...words]);
      expect(stderr).not.toMatch(/no item/);
      return stdout.trim().split("\r\n").slice(1);
    };
    expect(await exported("--filter", "chapter=1")).toEqual(["a,1,a.png", "b,1,b.png"]);
    expect(await exported("--filter", "chapter=2")).toEqual(["c,2,a.png", "d,2,d.png"]);
    expect(await exported("--filter", "id=c")).toEqual(["c,2,a.png"]);
    expect(await exported("--range", "2:3")).toEqual(["a,1,a.png", "b,1,b.png"]);
    expect(await exported("--range", "4:4")).toEqual(["c,2,a.png"]);
    expect(await exported("--first", "3")).toHaveLength(3);
    const priced = async (...words: string[]) =>
      (await run(place, ["redo", ...words, "--max-price", "0"], service)).stderr;
    expect(await priced("--filter", "chapter=2")).toMatch(/the price is 4 credits/);
    expect(await priced("--filter", "id=c")).toMatch(/the price is 2 credits/);
    expect(await priced("--range", "4:5")).toMatch(/the price is 4 credits/);
    // What it makes anew is the item of both rows.
    expect((await run(place, ["redo", "--filter", "id=c", "--yes"], service)).code).toBe(0);
    expect(await exported("--filter", "id=c")).toEqual(["c,2,a.png", "c,2,a-v2.png"]);
  },
);

test("the cheapest go first where that is asked for", slow, async () => {
  const place = newPlace();
  place.write("s.csv", ["id,model,prompt", "a,aurora-image,x", `b,${cheapModel},y`].join("\n"));
  const end = await runs(place, "--order", "cheapest", "--lanes", "1", "--events");
  const submitted = end.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { event: string; rowId?: string })
    .filter(({ event }) => event === "submitted");
  expect(submitted.map(({ rowId }) => rowId)).toEqual(["b", "a"]);
});
