import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { pages } from "../../scripts/readme-sections.mjs";
import { Journal } from "../../src/serve/works/journal.js";
import { SqliteState } from "../../src/service/state/sqlite-state.js";
import type { TaskRecord } from "../../src/service/state/state.js";
import { media } from "../archive/media.js";
import { newPlace, type Place, run, started } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { failedTask, type ScriptedService, startService } from "./service.js";
import { cheapModel } from "./sheet.js";
import { wordsOf } from "./shown.js";

/**
 * The command lines of README.md and docs/ that show no output: each is run as it is written, in a place where it has
 * something to do, and must end well. Those with their output are run by the tests of README, tutorial and recipes.
 */
const lines = pages()
  .filter((page) => page !== "docs/tutorial.md" && page !== "docs/recipes.md")
  .flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) =>
      [...block.matchAll(/^(bulkgen [a-z].*?)(?: +# .*)?$/gm)].map(([, line = ""]) => line.trim()),
    ),
  );

/** Lines that need more than a folder and a service, and where the same is run. */
const elsewhere: Readonly<Record<string, string>> = {
  "bulkgen dashboard": "test/browser/dashboard.test.ts",
  "bulkgen worker": "test/fleet/fleet.test.ts",
  "bulkgen worker --only archive --downloads 8 --out /mnt/outputs": "test/fleet/fleet.test.ts",
  "bulkgen worker --only archive --downloads 8 --out /scratch": "test/fleet/archive-only.test.ts",
  "bulkgen worker --only submit,poll": "test/fleet/fleet.test.ts",
  "bulkgen run sheet.csv --no-work --archive s3://team/autumn --archive-only":
    "test/fleet/archive-only.test.ts",
  "bulkgen run sheet.csv --archive s3://team/autumn --archive-only": "test/e2e/archive-only.test.ts",
  "bulkgen resolve ITEM --accept": "test/e2e/resolve.test.ts",
  "bulkgen sandbox --port 4010 --plan Pro --credits 500": "test/sandbox/admin-commands.test.ts",
  "bulkgen init banners --provider template": "test/cli/init-models.test.ts",
  "bulkgen init portraits --provider comfyui --workflow portrait_api.json": "test/cli/init-models.test.ts",
  "bulkgen init studio --provider openai": "test/cli/init-models.test.ts",
  "bulkgen serve --port 4700": "test/e2e/served-page.test.ts",
  "bulkgen serve --port 4700 --behind-proxy https://models.example.com": "test/serve/works.test.ts",
  "bulkgen serve --host 0.0.0.0 --port 443 --tls-cert cert.pem --tls-key key.pem --behind-proxy https://models.example.com":
    "test/e2e/serve-tls.test.ts",
};

interface Stage {
  place: Place;
  env?: Record<string, string>;
  /** Below the place's folder. */
  cwd?: string;
  /** What stands for a name in capitals. */
  names?: Readonly<Record<string, string>>;
  /** 0 if absent. */
  exit?: number;
}

const played = new Set<string>();

/** Runs lines of the pages. A question about a price is answered with yes. */
async function play(stage: Stage, ...wanted: readonly string[]): Promise<void> {
  const { place, env = {}, cwd = "", names = {}, exit = 0 } = stage;
  for (const line of wanted) {
    expect(lines).toContain(line);
    played.add(line);
    const words = wordsOf(line).map((word) => names[word] ?? word);
    const command = started(place, words.slice(1), {
      cwd: join(place.folder, cwd),
      env: { ...env, NO_COLOR: "1" },
      keyboard: words[1] !== "init",
    });
    void command.prints(/\[y\/N\]/).then(
      () => command.type("y\n"),
      () => {},
    );
    const { code, stdout, stderr } = await command.ended;
    expect(code, `${line}\n${stdout}${stderr}`).toBe(exit);
  }
}

function sheetOf(...ids: readonly string[]): string {
  return ["id,model,prompt", ...ids.map((id) => `${id},${cheapModel},a picture of ${id}`)].join("\n");
}

/** A place where these rows of a sheet have been made. */
async function made(
  name: string,
  ...ids: readonly string[]
): Promise<Required<Pick<Stage, "place" | "env">>> {
  const { env } = await startSandbox();
  const place = newPlace();
  place.write(name, sheetOf(...ids));
  const end = await run(place, ["run", name, "--yes"], { env });
  expect(end, end.stderr).toMatchObject({ code: 0 });
  return { place, env };
}

describe("the commands of the pages work:", () => {
  test("a first run with an account", { timeout: 60_000 }, async () => {
    const { env } = await startSandbox();
    const place = newPlace();
    await play({ place, env }, "bulkgen init studio");
    await play(
      { place, env, cwd: "studio" },
      "bulkgen account",
      "bulkgen models",
      "bulkgen plan jobs/first.csv",
      "bulkgen run jobs/first.csv",
      "bulkgen status --watch",
      "bulkgen resume",
    );
  });

  test("a folder of photos", { timeout: 60_000 }, async () => {
    const place = newPlace();
    mkdirSync(join(place.folder, "photos"));
    writeFileSync(join(place.folder, "photos", "hall.jpg"), await media.jpeg());
    await play(
      { place },
      'bulkgen plan "photos/**/*.jpg" --model atelier-upscale --sandbox',
      "bulkgen run photos --model atelier-upscale --sandbox",
    );
  });

  test("choosing", { timeout: 60_000 }, async () => {
    const stage = await made("autumn.csv", "teapot", "cup");
    stage.place.write("review.csv", "id,decision\nteapot,pick\n");
    await play(
      stage,
      "bulkgen redo teapot",
      "bulkgen gallery",
      "bulkgen pick --from review.csv",
      "bulkgen pick teapot-v2 outputs/autumn/cup.png",
      "bulkgen export --picked --zip client.zip --files-only",
      "bulkgen export --final --zip autumn.zip",
    );
  });

  test("choosing by name", { timeout: 60_000 }, async () => {
    const stage = await made("shelf.csv", "t1", "t3");
    const redone = await run(stage.place, ["redo", "t1", "--yes"], stage);
    expect(redone, redone.stderr).toMatchObject({ code: 0 });
    await play(stage, "bulkgen pick t1-v2 t3");
  });

  test("a clip from a better picture", { timeout: 60_000 }, async () => {
    const { env } = await startSandbox();
    const place = newPlace();
    place.write(
      "film.yaml",
      `rows: [{ id: cup }]
steps:
  - { name: picture, model: ${cheapModel}, prompt: a cup, approve: true }
  - { name: clip, model: reel-image, image_url: "@picture" }
`,
    );
    expect((await run(place, ["run", "film.yaml", "--yes"], { env })).code).toBe(10);
    expect((await run(place, ["approve", "cup-picture"], { env })).code).toBe(0);
    expect((await run(place, ["resume"], { env })).code).toBe(0);
    await play({ place, env, exit: 10 }, "bulkgen reject cup-picture --again");
    await play({ place, env }, "bulkgen approve cup-picture-v2", "bulkgen redo cup-clip");
    expect(existsSync(join(place.folder, "outputs", "film", "cup-clip-v2.mp4"))).toBe(true);
  });

  test("a saved plan", { timeout: 60_000 }, async () => {
    const { env } = await startSandbox();
    const place = newPlace();
    place.write("sheet.csv", sheetOf("cup"));
    const names = { SHEET: "sheet.csv" };
    await play({ place, env, names }, "bulkgen plan SHEET -o plan.json", "bulkgen run plan.json");
  });

  test("a database that is lost", { timeout: 60_000 }, async () => {
    const stage = await made("sheet.csv", "cup");
    rmSync(join(stage.place.folder, ".bulkgen", "state.db"));
    await play(stage, "bulkgen doctor --rebuild", "bulkgen run sheet.csv");
  });

  test("deciding about held items", { timeout: 60_000 }, async () => {
    const { place, service } = await held();
    const [lost] = service.made.filter(({ prompt }) => prompt === "one");
    if (lost === undefined) throw new Error("the service made no task for the first item");
    const { task } = lost;
    service.script(({ what, path }) => {
      if (what !== "GET task" || !path.endsWith(task)) return "serve";
      const at = new Date().toISOString();
      const done = { status: "completed", output_urls: [`${service.url}/files/${task}.png`], error: null };
      const times = { created_at: at, completed_at: at };
      return { json: { ...failedTask(lost), ...done, ...times, credits_consumed: 2 } };
    });
    const item = (name: string, exit = 0) => ({
      place,
      env: service.env,
      names: { ITEM: name, TASK: task },
      exit,
    });
    await play(item("four"), "bulkgen resolve ITEM --skip");
    // Others are still held.
    await play(item("three", 10), "bulkgen resolve ITEM --refetch");
    await play(item("two", 10), "bulkgen resolve ITEM --resubmit");
    await play(item("one"), "bulkgen resolve ITEM --adopt TASK");
  });

  test("keys and accounts of the sandbox", { timeout: 60_000 }, async () => {
    const place = newPlace();
    const names = { NAME: "mine", KEY: "mine" };
    await play(
      { place, names },
      "bulkgen sandbox keys create NAME",
      "bulkgen sandbox keys list",
      "bulkgen sandbox keys revoke KEY",
      "bulkgen sandbox account --plan Starter --credits 20 --subscription past_due",
    );
  });

  test("a service with models of one's own, its keys and its jobs", { timeout: 60_000 }, async () => {
    const place = newPlace();
    place.write(
      "models.yaml",
      "models: [{ key: banner, provider: { kind: template }, category: image, template: a.svg, params: { size: [64x64] } }]",
    );
    place.write("a.svg", "<svg xmlns='http://www.w3.org/2000/svg'><text>{{ prompt }}</text></svg>");
    await play(
      { place },
      "bulkgen serve check",
      "bulkgen serve keys create anna --credits-per-month 500 --credits-per-day 50",
      "bulkgen serve keys create nightly --plan Enterprise --credits 10000",
      "bulkgen serve keys list",
      "bulkgen serve keys edit anna --credits-per-day 80",
      "bulkgen serve keys revoke anna",
    );
    const tasks = unknownJobs(place, 3);
    await play({ place }, "bulkgen serve jobs", "bulkgen serve jobs --unknown");
    for (const [index, how] of ["--found ID", "--failed", "--again"].entries())
      await play(
        { place, names: { TASK: tasks[index] ?? "", ID: "its-id" } },
        `bulkgen serve jobs resolve TASK ${how}`,
      );
  });

  test("and none is left out", () => {
    for (const file of Object.values(elsewhere)) expect(existsSync(file), file).toBe(true);
    expect([...played, ...Object.keys(elsewhere)].toSorted()).toEqual([...new Set(lines)].toSorted());
  });
});

/** Four held items: the answers to the first, the second and the last were lost, and the third's file cannot be had. */
async function held(): Promise<{ place: Place; service: ScriptedService }> {
  const service = await startService();
  const place = newPlace();
  const rows = ["one", "two", "three", "four"].map((id) => `${id},plain-image,${id}`);
  place.write("set.csv", ["id,model,prompt", ...rows].join("\n"));
  service.script(({ what, body }) => {
    if (what === "GET file") return { status: 404, text: "" };
    if (what !== "POST generate" || body.includes("three")) return "serve";
    return "serve and cut";
  });
  const end = await run(place, ["run", "set.csv", "--yes", "--lanes", "1"], service);
  expect(end, end.stdout + end.stderr).toMatchObject({ code: 10 });
  return { place, service };
}

/** Jobs in the books of a served models file of which nobody knows whether their provider has them. */
function unknownJobs(place: Place, count: number): string[] {
  const state = new SqliteState(join(place.folder, ".bulkgen", "service", "state.db"));
  const journal = new Journal(state);
  const { id: keyId, accountId } = state.db.prepare("select id, account_id as accountId from keys").get() as {
    id: string;
    accountId: string;
  };
  const ids = Array.from({ length: count }, (_, index) => `00000000-0000-4000-8000-00000000000${index}`);
  for (const id of ids)
    state.transact(() => {
      const task: TaskRecord = {
        id,
        externalId: id,
        accountId,
        keyId,
        model: "banner",
        category: "image",
        input: { prompt: "Boats" },
        costMicro: 0,
        createdAt: 0,
        dueAt: 0,
        outcome: null,
        error: null,
        seenFinal: false,
        refunded: false,
        outputs: [],
        goneAt: null,
      };
      state.commit([{ kind: "task created", task }]);
      const model = { key: "banner", name: "Banner", category: "image", input: "text", details: {} } as const;
      journal.add({ taskId: id, settings: { name: "vendor" } as never, model, queuedAt: 0 });
      journal.update(id, { stage: "unknown", submittedAt: 0 });
    });
  state.close();
  return ids;
}
