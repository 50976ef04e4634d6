import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { me as account, models, startService } from "./service.js";
import { sheet } from "./sheet.js";

describe.concurrent("a saved plan", () => {
  test("is run as it was planned, with the flags it was made with, and pays once", async () => {
    const place = newPlace();
    place.write("set.csv", "id,prompt\na,a cup\nb,a jug\n");
    const flags = ["--sandbox", "--model", "aurora-image-mini", "--fresh", "-o", "plan.json"];
    const planned = await run(place, ["plan", "set.csv", ...flags]);
    expect(planned, planned.stderr).toMatchObject({ code: 0 });
    expect(planned.stdout).toContain("saved: `bulkgen run plan.json` runs it as planned");
    expect((await run(place, ["run", "plan.json"])).stderr).toContain("no terminal to ask on. Add --yes");
    const first = await run(place, ["run", "plan.json", "--yes", "--json"]);
    expect(JSON.parse(first.stdout), first.stderr).toMatchObject({ exit: 0, credits: { spent: 2 } });
    const again = await run(place, ["run", "plan.json", "--yes", "--json"]);
    expect(JSON.parse(again.stdout), again.stderr).toMatchObject({ exit: 0, requests: 3 });
  });

  test("takes the flags of its run, so that the same line can be tried first", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(40));
    const flags = ["--sandbox", "--yes", "--out", "elsewhere", "--rpm", "4", "--max-duration", "1m"];
    const plain = await run(place, ["plan", "set.csv", "--sandbox", "--json"]);
    const planned = await run(place, ["plan", "set.csv", ...flags, "--json", "-o", "plan.json"]);
    expect(planned, planned.stderr).toMatchObject({ code: 0 });
    const made = JSON.parse(planned.stdout);
    expect(made.requests.forecast.ms).toBeGreaterThan(5 * JSON.parse(plain.stdout).requests.forecast.ms);
    expect(made.warnings).toMatchObject([{ kind: "deadline" }]);
    const saved = JSON.parse(place.read("plan.json"));
    expect(saved.flags).toEqual([
      ["--out", join(place.folder, "elsewhere")],
      ["--sandbox"],
      ["--max-duration", "1m"],
      ["--rpm", "4"],
    ]);
  });

  test("is run with the flags that it was made with, save where the line gives another value", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1));
    const flags = [
      "--sandbox",
      "--out",
      "elsewhere",
      "--max-failures",
      "5",
      "--sidecars",
      "--max-price",
      "9",
    ];
    expect((await run(place, ["plan", "set.csv", ...flags, "-o", "plan.json"])).stdout).toContain(
      "saved: `bulkgen run plan.json` runs it as planned. A plan does not keep --max-price: give it again",
    );
    expect(await run(place, ["run", "plan.json"])).toMatchObject({ code: 2 });
    const ended = await run(place, ["run", "plan.json", "--yes", "--max-failures", "2"]);
    expect(ended.code, ended.stderr).toBe(0);
    expect(place.files().filter((file) => file.endsWith("a01.json"))).toEqual([
      "here/elsewhere/set/a01.json",
    ]);
    const { stdout } = await run(place, ["status", "--sandbox"]);
    expect(stdout).toMatch(/^options +.*--max-failures 2/m);
  });

  test("keeps what the settings said of its rows and of the sandbox, and takes the other settings of its workspace", async () => {
    const place = newPlace();
    place.write("set.csv", "id,prompt\na,a cup\n");
    place.write("bulkgen.config.yaml", "sandbox: true\nmodel: aurora-image-mini\nsidecars: true\n");
    const env = { BULKGEN_DUPLICATES: "merge" };
    const planned = await run(place, ["plan", "set.csv", "--first", "1", "-o", "../plan.json"], { env });
    expect(planned, planned.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(readFileSync(join(place.root, "plan.json"), "utf8"))).toMatchObject({
      sandbox: true,
      flags: [["--sandbox"], ["--model", "aurora-image-mini"], ["--duplicates", "merge"], ["--first", "1"]],
    });
    place.write("bulkgen.config.yaml", "model: aurora-image\nsidecars: true\n");
    const ended = await run(place, ["run", "plan.json", "--yes"], { cwd: place.root });
    expect(ended.code, ended.stderr).toBe(0);
    expect(place.files().filter((file) => file.endsWith("a.json"))).toEqual([
      "here/sandbox-outputs/set/a.json",
    ]);
  });

  test("of the real service is never run as a rehearsal, nor with a command that stands in it", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(1, "plain-image"));
    const service = await startService({ balance: 100 });
    const flags = ["--notify-command", "true", "--no-work"];
    const planned = await run(place, ["plan", "set.csv", "-o", "plan.json", ...flags], service);
    expect(planned.stdout).toContain("A plan does not keep --notify-command: give it again");
    const saved = JSON.parse(place.read("plan.json"));
    expect(saved.flags).toEqual([["--no-work"]]);
    const env = { ...service.env, BULKGEN_SANDBOX: "1" };
    expect(await run(place, ["run", "plan.json", "--yes"], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "the saved plan is for the real service, but your settings say sandbox",
      ),
    });
    place.write("plan.json", JSON.stringify({ ...saved, flags: [["--notify-command", "touch owned"]] }));
    expect(await run(place, ["run", "plan.json", "--yes"], service)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("has --notify-command, which a plan cannot set"),
    });
    expect(service.made).toEqual([]);
    expect(place.files()).not.toContain("here/owned");
  });

  test("replaces no manifest, and leaves stdout to a diagram", async () => {
    const place = newPlace();
    const rows = JSON.stringify([{ id: "a", model: "aurora-image-mini", prompt: "a cup" }]);
    place.write("jobs.json", rows);
    expect(await run(place, ["plan", "jobs.json", "--sandbox", "-o", "jobs.json"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("-o: jobs.json is the manifest itself. Choose another file."),
    });
    expect(place.read("jobs.json")).toBe(rows);
    const words = ["plan", "jobs.json", "--sandbox", "--graph", "mermaid", "-o", "my plan.json"];
    const drawn = await run(place, words);
    expect(drawn.stdout).not.toContain("saved:");
    expect(drawn.stderr).toContain("saved: `bulkgen run 'my plan.json'` runs it as planned");
    expect(place.files().filter((file) => file.endsWith(".part"))).toEqual([]);
  });

  test("that the credits do not cover is refused as its run would be: by --on-insufficient", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(4, "plain-image"));
    const { env } = await startService({ balance: 5 });
    const plan = async (...flags: string[]) =>
      (await run(place, ["plan", "set.csv", ...flags], { env })).code;
    expect(await plan()).toBe(7);
    for (const what of ["fit", "stop", "wait"]) expect(await plan("--on-insufficient", what)).toBe(0);
  });

  test("is refused when the sheet changed, saying what, and taken within --tolerance", async () => {
    const place = newPlace();
    const text = sheet(4);
    place.write("set.csv", text);
    await run(place, ["plan", "set.csv", "--sandbox", "-o", "plan.json"]);
    place.write("set.csv", text.replace("a picture of a03", "another"));
    const refused = await run(place, ["run", "plan.json", "--yes"]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /is out of date; the changes exceed --tolerance 0%:\n {2}manifest: row 4 \(a03\): prompt changed\nNothing was submitted/,
    );
    const taken = await run(place, ["run", "plan.json", "--yes", "--tolerance", "25%"]);
    expect(taken.stderr).toContain("within --tolerance: manifest: row 4 (a03): prompt changed");
    expect(taken.code).toBe(0);
  });

  test("of another account, or with a balance that does not cover it any more, submits nothing", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    const service = await startService({ balance: 100 });
    const { env } = service;
    expect((await run(place, ["plan", "set.csv", "-o", "plan.json"], { env })).code).toBe(0);
    service.script(({ what }) => (what === "GET me" ? { json: me(3, "11111111") } : "serve"));
    const poorer = await run(place, ["run", "plan.json", "--yes", "--on-insufficient", "fit"], { env });
    expect(poorer).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("balance: 4 credits needed, now 3"),
    });
    service.script(({ what }) => (what === "GET me" ? { json: me(100, "22222222") } : "serve"));
    const otherKey = { ...env, BULKGEN_API_KEY: `svc_${"b".repeat(32)}` };
    const words = ["run", "plan.json", "--yes", "--tolerance", "50"];
    const other = await run(place, words, { env: otherKey });
    expect(other).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("account: planned for 11111111-"),
    });
    expect(service.count("POST generate")).toBe(0);
    service.script(({ what }) => (what === "GET me" ? { json: me(60, "11111111") } : "serve"));
    const enough = await run(place, ["run", "plan.json", "--yes"], { env });
    expect(enough, enough.stderr).toMatchObject({ code: 0 });
  });

  test("whose prices are worse now submits nothing; its own caps hold when it is run", async () => {
    const place = newPlace();
    place.write("set.csv", sheet(2, "plain-image"));
    const service = await startService({ balance: 100 });
    const cap = ["--max-credits-per-model", "plain-image=3"];
    expect((await run(place, ["plan", "set.csv", "-o", "plan.json", ...cap], service)).code).toBe(0);
    const dearer = { ...models, models: models.models.map((model) => ({ ...model, credits_cost: 3 })) };
    service.script(({ what }) => {
      if (what === "GET models") return { json: dearer };
      return what === "GET me" ? { json: account({ balance: 100, plan: "Starter" }) } : "serve";
    });
    const words = ["run", "plan.json", "--yes"];
    const refused = await run(place, words, service);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("price: plain-image was 2 credits, now 3");
    expect(service.made).toEqual([]);
    service.script(() => "serve");
    const ended = await run(place, words, service);
    expect(ended.code, ended.stderr).toBe(6);
    expect(ended.stdout).toContain("plain-image has reached its cap of 3 credits");
    expect(service.made).toHaveLength(1);
  });

  test("that is spoilt, contradicted by flags, or taken for a manifest is refused", async () => {
    const place = newPlace();
    place.write("plan.json", '{"bulkgen": "plan", "version": 7}');
    const spoilt = await run(place, ["run", "plan.json", "--sandbox", "--yes"]);
    expect(spoilt).toMatchObject({ code: 2, stderr: expect.stringContaining("got version 7. Plan again.") });
    place.write("set.csv", sheet(2));
    await run(place, ["plan", "set.csv", "--sandbox", "-o", "plan.json"]);
    const text = place.read("plan.json");
    for (const [length, what] of [
      [40, "line 1"],
      [text.length - 40, "line 3"],
      [text.length - 4, "end"],
    ] as const) {
      place.write("plan.json", text.slice(0, length));
      const cut = await run(place, ["run", "plan.json", "--yes"]);
      expect(cut).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(
          `expected a saved plan; its ${what} is missing or damaged. Plan again.`,
        ),
      });
    }
    place.write("plan.json", text);
    const twice = await run(place, ["run", "plan.json", "--yes", "--model", "x"]);
    expect(twice).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("the saved plan has set it"),
    });
    const planned = await run(place, ["plan", "plan.json", "--sandbox"]);
    expect(planned).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "the file is a saved plan, which `bulkgen run` takes; expected a manifest",
      ),
    });
    expect(planned.stderr).toContain("1 problem in the manifest");
    const rehearsed = await run(place, ["run", "plan.json", "--sandbox", "--yes"]);
    expect(rehearsed.code, rehearsed.stderr).toBe(0);
    const named = await run(place, ["plan", "set.csv", "--sandbox", "-o", "plan.txt"]);
    expect(named).toMatchObject({ code: 2, stderr: expect.stringContaining("ends in .json") });
  });
});

function me(balance: number, user: string): object {
  return {
    user: { id: `${user}-1111-4111-8111-111111111111`, email: "ada@example.com", name: "Ada" },
    credits: { balance, used_this_key: 0 },
    subscription: {
      status: "active",
      plan: "Enterprise",
      credits_per_month: 20_000,
      billing_interval: "month",
      current_period_end: "2099-01-01T00:00:00.000Z",
      cancel_at_period_end: false,
    },
    api_key: { id: "key-1", name: "tests", requests_count: 0 },
  };
}
