import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { expectArchived } from "./archive.js";
import { type Ended, newPlace, type Place, run, started } from "./command.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { ids, sheet } from "./sheet.js";

const good = sheet(3, "plain-image");

describe.concurrent("one clear message, the documented exit code, nothing paid", () => {
  test.each<[name: string, bytes: string | Buffer, message: RegExp]>([
    ["of no bytes", "", /set\.csv.*empty|empty.*set\.csv|no rows/],
    ["of a header alone", "id,model,prompt\n", /set\.csv/],
    ["with NUL bytes", `id,model,prompt\na,plain-image,"x\0y"\n`, /set\.csv:2.*NUL|set\.csv.*row 2/],
    [
      "of no encoding",
      Buffer.from("id,model,prompt\na,plain-image,\x81\n", "latin1"),
      /UTF-8, UTF-16 or Windows/,
    ],
    [
      "that is an old workbook",
      Buffer.from("\xd0\xcf\x11\xe0x", "latin1"),
      /saved as \.xlsx: in Excel, File > Save As/,
    ],
    ["with an open quote", `id,model,prompt\na,plain-image,"never closed\n`, /set\.csv.*quote/],
  ])("a manifest %s costs not one request", async (_, bytes, message) => {
    const { end, service } = await tried({ "set.csv": bytes }, ["run", "set.csv", "--yes"]);
    expectRefusal(end, 2, message);
    expect(service.asked).toEqual([]);
  });

  test.each<[name: string, manifest: string, message: RegExp]>([
    ["an unknown model", "id,model,prompt\na,plain-imag,x", /row 2.*plain-imag.*did you mean "plain-image"/],
    ["a missing prompt", "id,model,prompt\na,plain-image,", /row 2.*needs prompt/],
    [
      "a misspelt column",
      "id,modell,prompt\na,plain-image,x",
      /column "modell" is not used; did you mean "model"/,
    ],
    [
      "an unknown parameter",
      "id,model,prompt,params.aspect_ration\na,plain-image,x,1:1",
      /did you mean "aspect_ratio"/,
    ],
    [
      "a value that is no option",
      "id,model,prompt,params.aspect_ratio\na,plain-image,x,16:10",
      /expected one of: 1:1, 16:9; did you mean/,
    ],
    ["the same id twice", `${good}\na02,plain-image,again`, /row 5.*a02/],
  ])("%s is told with its row, and nothing is submitted", async (_, manifest, message) => {
    const { end, service } = await tried({ "set.csv": manifest }, ["run", "set.csv", "--yes"]);
    expectRefusal(end, 2, message);
    expect(service.count("POST generate")).toBe(0);
  });

  test("200 wrong rows among 300 are all counted in one plan, and a program gets every one", async () => {
    const rows = Array.from({ length: 300 }, (_, n) => `r${n},${n % 3 === 0 ? "plain-image" : "plane"},x`);
    const { end, service, place } = await tried({ "set.csv": `id,model,prompt\n${rows.join("\n")}` }, [
      "run",
      "set.csv",
      "--yes",
    ]);
    expectRefusal(end, 2, /^bulkgen: 200 problems in the manifest; nothing was submitted/m);
    const planned = await run(place, ["plan", "set.csv", "--json"], service);
    expect((JSON.parse(planned.stdout) as { problems: unknown[] }).problems).toHaveLength(200);
    expect(planned.code).toBe(2);
    expect(service.count("POST generate")).toBe(0);
  });

  test.each<[name: string, manifest: string]>([
    ["a folder for a manifest", "."],
    ["a manifest that is not there", "nowhere.csv"],
    ["a file that is no manifest", "notes.md"],
  ])("%s costs not one request", async (_, manifest) => {
    const { end, service } = await tried({ "notes.md": "hello" }, ["run", manifest, "--yes"]);
    expectRefusal(end, 2, /expected/);
    expect(service.asked).toEqual([]);
  });

  // Every folder below a workspace belongs to it, so a mistyped path must not make one, least of all in a folder above.
  test.each([
    ["run", "."],
    ["run", "../nowhere.csv"],
    ["run", "nowhere.csv", "--sandbox"],
    ["adopt", ".", ".."],
  ])("%s %s makes no workspace", async (...args) => {
    const place = newPlace();
    place.write("below/set.csv", good);
    const end = await run(place, [...args, ...(args[0] === "run" ? ["--yes"] : [])], {
      cwd: join(place.folder, "below"),
    });
    expectRefusal(end, 2, /the manifest (is a folder|does not exist)/);
    expect(place.files()).toEqual(["here/below/set.csv"]);
  });

  test.each<[name: string, env: Record<string, string>, code: number, message: RegExp]>([
    [
      "a key that is too short",
      { BULKGEN_API_KEY: "svc_short" },
      3,
      /expected svc_ and 32 letters.*got 9 char/,
    ],
    ["a key of another service", { BULKGEN_API_KEY: `sk-${"a".repeat(40)}` }, 3, /do not begin with svc_/],
    ["no key", { BULKGEN_API_KEY: "" }, 2, /BULKGEN_API_KEY.*--sandbox/],
    ["no address", { BULKGEN_BASE_URL: "" }, 2, /BULKGEN_BASE_URL.*--sandbox/],
    ["an address that is none", { BULKGEN_BASE_URL: "service" }, 2, /expected an address/],
    [
      "an address without TLS",
      { BULKGEN_BASE_URL: "http://service.example" },
      2,
      /http only for this machine/,
    ],
  ])("%s costs not one request", async (_, env, code, message) => {
    const { end, service } = await tried({ "set.csv": good }, ["run", "set.csv", "--yes"], { env });
    expectRefusal(end, code, message);
    expect(service.asked).toEqual([]);
    expect(end.stderr).not.toContain(env["BULKGEN_API_KEY"] || "svc_nothing");
  });

  test.each<[name: string, args: string[]]>([
    ["an unknown flag", ["run", "set.csv", "--yse"]],
    ["an unknown command", ["rum", "set.csv"]],
    ["a flag with a wrong value", ["run", "set.csv", "--yes", "--max-credits", "many"]],
    ["a daily limit too small to pay for anything", ["run", "set.csv", "--yes", "--rpd", "2"]],
    ["no manifest", ["run", "--yes"]],
  ])("%s ends 2 before anything is asked", async (_, args) => {
    const { end, service } = await tried({ "set.csv": good }, args);
    expect(end).toMatchObject({ code: 2, stdout: "" });
    expect(end.stderr).toContain("--help");
    expect(service.asked).toEqual([]);
  });

  test("without --yes and without a terminal nothing is submitted", async () => {
    const { end, service } = await tried({ "set.csv": good }, ["run", "set.csv"]);
    expectRefusal(end, 2, /Add --yes to agree\. Nothing was submitted/);
    expect(service.count("POST generate")).toBe(0);
  });

  test("too few credits are refused with how far they reach; fit runs that far and ends 7 as well", async () => {
    const { end, service, place } = await tried({ "set.csv": good }, ["run", "set.csv", "--yes"], {
      balance: 5,
    });
    expectRefusal(end, 7, /needs 6 credits and the balance is 5.*2 .*--on-insufficient fit/);
    expect(service.count("POST generate")).toBe(0);
    const fit = await run(place, ["run", "set.csv", "--yes", "--on-insufficient", "fit"], service);
    expect(fit, fit.stderr).toMatchObject({ code: 7 });
    expect(fit.stdout).toMatch(/1 items? (was|were) left out/);
    expect(service.made).toHaveLength(2);
    expectArchived(join(place.folder, "outputs", "set"), ids(2));
  });

  test("credits for a later, cheaper item alone are refused with the order that submits it, and never as covering nothing", async () => {
    const place = newPlace();
    place.write("set.csv", "id,model,prompt\na,aurora-image,a jug\nb,aurora-image-mini,a cup\n");
    place.write("first.csv", "id,model,prompt\nc,aurora-image-mini,a pot\n");
    await run(place, ["run", "first.csv", "--sandbox", "--yes"]);
    const words = ["run", "set.csv", "--sandbox", "--yes"];
    for (const [balance, hint] of [
      ["3", " --order cheapest --on-insufficient fit submits the cheaper items.\n"],
      ["0", ""],
    ] as const) {
      await run(place, ["sandbox", "account", "--credits", balance]);
      for (const more of [[], ["--on-insufficient", "fit"]]) {
        const end = await run(place, [...words, ...more]);
        expect(end, end.stderr).toMatchObject({ code: 7 });
        expect(end.stderr).toContain(`does not cover the first item. Nothing was submitted.${hint}`);
        const plan = await run(place, ["plan", "set.csv", "--sandbox", ...more]);
        expect(plan, plan.stdout).toMatchObject({ code: 7 });
        expect(plan.stdout).toContain(
          `Blocked by:\n- ${/The run needs .* first item\./.exec(end.stderr)?.[0]}`,
        );
      }
    }
    await run(place, ["sandbox", "account", "--credits", "3"]);
    const advised = await run(place, [...words, "--order", "cheapest", "--on-insufficient", "fit"]);
    expect(advised.stdout).toMatch(/^archived +1 of /m);
  });

  test("a file where the output folder should be is reported before any request is sent", async () => {
    const { end, service } = await tried({ "set.csv": good, outputs: "a file" }, ["run", "set.csv", "--yes"]);
    expectRefusal(end, 2, /output folder .*outputs cannot be written.*--out/);
    expect(service.asked).toEqual([]);
  });

  test("P18: a second run in the same workspace exits with 9 and sends nothing; the first continues", async () => {
    const service = await startService();
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    service.script(async ({ what }): Promise<Scripted> => {
      if (what === "GET models") await released;
      return "serve";
    });
    const place = newPlace();
    place.write("set.csv", good);
    const first = started(place, ["run", "set.csv", "--yes"], service);
    await service.wasAsked("GET models", 1);
    const asked = service.asked.length;
    const second = await run(place, ["run", "set.csv", "--yes"], service);
    expectRefusal(second, 9, /another run is using the workspace.*Nothing was sent/);
    expect(service.asked).toHaveLength(asked);
    release();
    expect((await first.ended).code).toBe(0);
    expectArchived(join(place.folder, "outputs", "set"), ids(3));
  });
});

test.each([["account"], ["models"], ["plan", "set.csv"]])(
  "%s says on stderr that the service asked for a pause, and waits for its end",
  async (...args) => {
    const service = await startService();
    service.script(({ what, before }) =>
      what === (args[0] === "models" ? "GET models" : "GET me") && before === 0
        ? {
            status: 429,
            headers: { "Retry-After": "600" },
            json: { error: { code: "RATE_LIMITED", message: "slow" } },
          }
        : "serve",
    );
    const place = newPlace();
    place.write("set.csv", good);
    const end = await run(place, args, service);
    expect(end, end.stderr).toMatchObject({ code: 0 });
    expect(end.stderr).toMatch(/^bulkgen: the service asked us to wait, next request in (10m|9m)/m);
  },
);

// Not beside each other: the port of a service that is down is free for the next one.
describe("a service that goes away", () => {
  test("before the run: nothing is submitted and the exit code is 4", async () => {
    const service = await startService();
    await service.down();
    const place = newPlace();
    place.write("set.csv", good);
    const end = await run(place, ["run", "set.csv", "--yes"], service);
    expectRefusal(end, 4, /cannot be reached.*Nothing was submitted/);
  });

  test("P2: in the middle of the run ends it with 4; resume brings the rest home, each item paid once", async () => {
    const service = await startService();
    // The last task is polled: no paid request is in flight, whose answer would be lost.
    service.script(async ({ what, path }): Promise<Scripted> => {
      const last = service.made[5]?.task;
      if (what === "GET task" && last !== undefined && path.endsWith(last)) await service.down();
      return "serve";
    });
    const place = newPlace();
    place.write("set.csv", sheet(6, "plain-image"));
    const cutShort = ["run", "set.csv", "--yes", "--unreachable-wait", "1s", "--lanes", "1"];
    const end = await run(place, cutShort, service);
    expect(end, end.stderr).toMatchObject({ code: 4 });
    expect(end.stdout).toMatch(/cannot be reached.*\n.*Next: .*resume/);

    await service.up();
    service.script(() => "serve");
    const second = await run(place, ["resume"], service);
    expect(second, second.stderr).toMatchObject({ code: 0 });
    expectArchived(join(place.folder, "outputs", "set"), ids(6));
    expect(service.made.map(({ prompt }) => prompt).toSorted()).toEqual(
      ids(6).map((id) => `a picture of ${id}`),
    );
  });
});

test("a sheet with semicolons, a byte order mark and quoted newlines is read as it is meant", async () => {
  const text = `\ufeffid;model;prompt;params.aspect_ratio\r\na;plain-image;"one; two\r\nthree";16:9\r\n`;
  const { end } = await tried({ "set.csv": text }, ["plan", "set.csv", "--json"]);
  expect(end, end.stderr).toMatchObject({ code: 0, stderr: "" });
  const [item] = (JSON.parse(end.stdout) as { items: object[] }).items;
  expect(item).toMatchObject({ rowId: "a", params: { aspect_ratio: "16:9" } });
  expect((item as { prompt: string }).prompt.replace("\r", "")).toBe("one; two\nthree");
});

interface Change {
  env?: Record<string, string>;
  balance?: number;
}

/** Runs the command once in a fresh folder, against a service of its own. */
async function tried(
  files: Record<string, string | Uint8Array>,
  args: readonly string[],
  { env = {}, ...options }: Change = {},
): Promise<{ end: Ended; service: ScriptedService; place: Place }> {
  const service = await startService(options);
  const place = newPlace();
  for (const [name, text] of Object.entries(files)) place.write(name, text);
  const end = await run(place, args, { env: { ...service.env, ...env } });
  return { end, service, place };
}

/** A refusal has its own words: the code, one last line with the name, no stack, nothing on stdout. */
function expectRefusal(end: Ended, code: number, message: RegExp): void {
  expect(end.stderr).toMatch(message);
  expect(end).toMatchObject({ code, signal: null, stdout: "" });
  expect(end.stderr.trimEnd().split("\n").at(-1)).toMatch(/^bulkgen: /);
  expect(end.stderr).not.toMatch(/\bat .*\.c?js:\d+/);
}
