import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { models, type Scripted, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** Twelve credits for three pictures of one model, three for three of the other. */
const both = [
  "id,model,prompt",
  ...["a", "b", "c"].map((id) => `${id},aurora-image,a ${id}`),
  ...["d", "e", "f"].map((id) => `${id},aurora-image-mini,a ${id}`),
].join("\n");

describe.concurrent("a cap ends with exit 6 and one clear line", () => {
  test("of one model: its other items wait, other models continue, and a higher cap continues the items", async () => {
    const place = newPlace();
    place.write("set.csv", both);
    const words = ["run", "set.csv", "--sandbox", "--yes", "--max-credits-per-model"];
    const ended = await run(place, [...words, "aurora-image=9"]);
    expect(ended.code, ended.stderr).toBe(6);
    expect(ended.stdout).toMatch(/^archived +5 of 6 items/m);
    expect(ended.stdout).toMatch(/^credits +11 spent/m);
    expect(ended.stdout.match(/^Ended early: .*/gm)).toEqual([
      "Ended early: aurora-image has reached its cap of 9 credits; its other items wait",
    ]);
    const more = await run(place, [...words, "aurora-image=12"]);
    expect(more, more.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/15 spent/) });
  });

  test("of two models: a resume that raises one leaves the other, and refuses a name that no model has", async () => {
    const place = newPlace();
    place.write("set.csv", both);
    const caps = ["aurora-image=4", "aurora-image-mini=1"].flatMap((cap) => ["--max-credits-per-model", cap]);
    const ended = await run(place, ["run", "set.csv", "--sandbox", "--yes", ...caps]);
    expect(ended.stdout, ended.stderr).toMatch(/^credits +5 spent/m);
    const resume = ["resume", "--sandbox", "--max-credits-per-model"];
    const refused = await run(place, [...resume, "aurora-imago=12"]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("did you mean aurora-image?") });
    const more = await run(place, [...resume, "aurora-image=8"]);
    expect(more.stdout, more.stderr).toMatch(/^credits +9 spent/m);
    expect(more.stdout.match(/^Ended early: .*/gm)?.sort()).toEqual([
      "Ended early: aurora-image has reached its cap of 8 credits; its other items wait",
      "Ended early: aurora-image-mini has reached its cap of 1 credit; its other items wait",
    ]);
  });

  test("of a model that the service no longer has stands in the way of no new cap of another", async () => {
    const service = await startService({ balance: 100 });
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    const [plain] = models.models;
    const both = { ...models, models: [plain, { ...plain, model_key: "old-image" }], total: 2 };
    service.script(({ what }) => (what === "GET models" ? { json: both } : "serve"));
    const caps = ["plain-image=2", "old-image=2"].flatMap((cap) => ["--max-credits-per-model", cap]);
    expect((await run(place, ["run", "set.csv", "--yes", ...caps], service)).code).toBe(6);
    service.script(() => "serve");
    const more = await run(place, ["resume", "--max-credits-per-model", "plain-image=4"], service);
    expect(more.code, more.stderr).toBe(0);
  });

  test("of the balance that is to be left, also over a resume", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(3, "aurora-image"));
    const words = ["run", "set.csv", "--sandbox", "--yes", "--keep-credits", "491", "--lanes", "2"];
    const ended = await run(place, words);
    expect(ended.code, ended.stderr).toBe(6);
    expect(ended.stdout).toMatch(/^credits +8 spent, 492 left/m);
    expect(ended.stdout.match(/^Ended early: .*/gm)).toEqual([
      "Ended early: the balance would fall below the 491 credits that --keep-credits leaves",
    ]);
    expect((await run(place, words)).stdout).toMatch(/^credits +8 spent, 492 left/m);
  });

  test("P7: a price above the plan is paid once, over resumes too, and is shown by whatever would pay it again", async () => {
    const service = await startService({ charge: 9 });
    const place = newPlace();
    place.write("set.csv", sheet(4, "plain-image"));
    const words = ["run", "set.csv", "--yes", "--max-credits", "20"];
    const first = await run(place, words, service);
    expect(first.code, first.stderr).toBe(6);
    expect(first.stdout).toContain("Ended early: plain-image was planned at 2 credits and charged 9 (a01)");
    for (let times = 0; times < 2; times++) {
      const again = await run(place, ["resume"], service);
      expect(again.code, again.stderr).toBe(6);
      expect(again.stdout).toContain(
        "Ended early: plain-image is planned at 2 credits and was charged 9 before",
      );
    }
    expect(service.made).toHaveLength(1);
    const offered = await run(place, ["redo", "a01"], service);
    expect(offered.stderr).toContain("1 item to be made again, 9 credits");
    const agreed = await run(place, words, service);
    expect(agreed, agreed.stderr).toMatchObject({ code: 6, stdout: expect.stringMatching(/18 spent/) });
    expect(agreed.stdout.match(/^Ended early: .*/gm)).toEqual(["Ended early: the credit cap is reached"]);
  });

  test("P7: what failed is retried at what its like was charged, within what was agreed to", async () => {
    const service = await startService({ charge: 9 });
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    service.script(({ what, before }): Scripted => {
      if (what !== "POST generate" || before > 0) return "serve";
      return { status: 400, json: { error: { code: "INVALID_REQUEST", message: "no such style" } } };
    });
    expect((await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], service)).code).toBe(5);
    const offered = await run(place, ["retry"], service);
    expect(offered.stderr).toContain("1 item to be submitted again, 9 credits");
    const done = await run(place, ["retry", "--yes"], service);
    expect(done, done.stderr).toMatchObject({ code: 0, stdout: expect.stringMatching(/18 spent/) });
    service.script(() => "serve");
  });

  test("of a day, over all workspaces of the account, also for two runs at the same time", async () => {
    const service = await startService();
    const place = newPlace();
    for (const name of ["one", "two"]) {
      const rows = ["a", "b", "c", "d"].map((id) => `${id},plain-image,${id} of ${name}`);
      place.write(`${name}/set.csv`, ["id,model,prompt", ...rows].join("\n"));
    }
    const daily = ["run", "set.csv", "--yes", "--max-credits-per-day", "7"];
    const within = (name: string) => ({ ...service, cwd: join(place.folder, name) });
    const ends = await Promise.all(["one", "two"].map((name) => run(place, daily, within(name))));
    expect(ends.map(({ code }) => code)).toEqual([6, 6]);
    expect(service.made).toHaveLength(3);
    const early = ends.map(({ stdout }) => stdout.match(/^Ended early: .*/gm));
    const line =
      "Ended early: the day's credits are used up: all runs of the account have spent 6 of the 7 that --max-credits-per-day allows";
    expect(early).toEqual([[line], [line]]);
    expect(ends[0]?.stdout).toContain("`bulkgen resume 1` continues tomorrow");
    const more = await run(place, [...daily.slice(0, -1), "14"], within("one"));
    expect(more, more.stderr).toMatchObject({ code: 0 });
  });

  test("of a day, as it is set when a run is continued: in a file, lower than before, or higher by a flag", async () => {
    const service = await startService();
    const place = newPlace();
    const rows = ["a", "b", "c", "d"].map((id) => `${id},plain-image,${id}`);
    place.write("set.csv", ["id,model,prompt", ...rows].join("\n"));
    const began = await run(place, ["run", "set.csv", "--yes", "--max-credits-per-day", "3"], service);
    expect(began, began.stderr).toMatchObject({
      code: 6,
      stdout: expect.stringMatching(/^credits +2 spent/m),
    });
    expect(began.stdout).toContain(
      "`bulkgen resume 1` continues tomorrow; to continue now, `bulkgen resume 1 --max-credits-per-day N`",
    );
    place.write("bulkgen.config.yaml", "max-credits-per-day: 5");
    const again = await run(place, ["resume"], service);
    expect(again, again.stderr).toMatchObject({
      code: 6,
      stdout: expect.stringContaining("4 of the 5 that"),
    });
    const higher = await run(place, ["resume", "--max-credits-per-day", "6"], service);
    expect(higher, higher.stderr).toMatchObject({
      code: 6,
      stdout: expect.stringContaining("6 of the 6 that"),
    });
    expect(service.made).toHaveLength(3);
    const last = await run(place, ["resume", "--max-credits-per-day", "8"], service);
    expect(last, last.stderr).toMatchObject({ code: 0 });
    expect(service.made).toHaveLength(4);
  });

  test("is planned with what it leaves undone; a cap of an unknown model is refused", async () => {
    const place = newPlace();
    place.write("set.csv", both);
    const words = ["plan", "set.csv", "--sandbox", "--max-credits-per-model"];
    const planned = await run(place, [...words, "aurora-image=9", "--keep-credits", "495"]);
    expect(planned, planned.stderr).toMatchObject({ code: 0 });
    expect(planned.stdout).toContain("15 needed, 4 within the caps, 500 on the account, 496 after");
    expect(planned.stdout).toMatch(
      /^- The run needs 15 credits and --keep-credits leaves 5: it covers 1 item, through row 2 \(a\); 4 items will not be made\.$/m,
    );
    expect(planned.stdout).toMatch(
      /^- aurora-image needs 12 credits .* leaves 9: 1 of its 3 items will not be made/m,
    );
    const wrong = await run(place, [...words, "aurora-imag=9"]);
    expect(wrong).toMatchObject({ code: 2, stdout: "" });
    expect(wrong.stderr).toContain('got "aurora-imag"; did you mean aurora-image?');
  });

  test("is no lack of credits where the balance is to be fitted", async () => {
    const place = newPlace();
    place.write("set.csv", both);
    const words = ["run", "set.csv", "--sandbox", "--yes", "--on-insufficient", "fit", "--max-credits", "9"];
    const ended = await run(place, words);
    expect(ended.code, ended.stderr).toBe(6);
    expect(ended.stdout.match(/^Ended early: .*/gm)).toEqual(["Ended early: the credit cap is reached"]);
  });

  test.each(["aurora-image", "=5", "aurora-image=much"])("a wrong amount is refused: %s", async (text) => {
    const place = newPlace();
    place.write("set.csv", both);
    const words = ["run", "set.csv", "--sandbox", "--yes", "--max-credits-per-model", text];
    expect(await run(place, words)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/expected (a|0 or more)/),
    });
  });
});

describe("P3: the price that --max-price allows", () => {
  /** Rows that all differ in their params, of which each is charged more than the list says. */
  async function dear(count: number, ...first: string[]) {
    const style = { key: "style", label: "Style", type: "text", options: [], default: "" };
    const [plain] = models.models;
    const listed = { ...models, models: [{ ...plain, parameters: [style] }] };
    const service = await startService({ balance: 10_000, charge: 20, plan: "Starter" });
    service.script(({ what }) => (what === "GET models" ? { json: listed } : "serve"));
    const place = newPlace();
    const rows = Array.from({ length: count }, (_, at) => `r${at},plain-image,p${at},s${at}`);
    place.write("set.csv", `id,model,prompt,params.style\n${rows.join("\n")}\n`);
    const command = (...words: string[]) => run(place, words, service);
    if (first.length > 0) await command(...first);
    const before = service.made.length;
    return { command, spent: () => 20 * (service.made.length - before) };
  }

  test("holds whatever the params of the rows, but for the requests that were out when it was passed", async () => {
    const { command, spent } = await dear(12);
    const end = await command("run", "set.csv", "--max-price", "24");
    expect(end).toMatchObject({ code: 6, stdout: expect.stringContaining("--max-price N") });
    expect(spent()).toBeLessThanOrEqual(24 + 20);
    const more = await command("resume", "--max-price", "400");
    expect(more, more.stderr).toMatchObject({ code: 0 });
    expect(spent()).toBe(12 * 20);
  });

  test.each([
    ["resume", ["resume", "--max-credits", "1000", "--max-price", "24"]],
    ["resume --all", ["resume", "--all", "--max-credits", "1000", "--max-price", "24"]],
  ])("holds for %s too", async (_, words) => {
    const { command, spent } = await dear(12, "run", "set.csv", "--yes", "--max-credits", "4");
    const end = await command(...words);
    expect(end.code, end.stderr).toBe(6);
    expect(spent()).toBeGreaterThan(0);
    expect(spent()).toBeLessThanOrEqual(24 + 20);
  });
});
