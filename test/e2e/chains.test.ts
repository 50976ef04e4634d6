import { describe, expect, test } from "vitest";
import { s3Server } from "../bucket/s3-server.js";
import { newPlace, type Place, run } from "./command.js";
import { type ScriptedService, startService } from "./service.js";
import { skippingClock } from "./skipping-clock.js";

const sheet = (cup = "a cup") =>
  `id,model,prompt,image_url\nclip,plain-image,a clip,@cup\ncup,plain-image,${cup},\nlonger,plain-image,more,@clip\n`;

async function made(script?: Parameters<typeof startService>[0]): Promise<[Place, ScriptedService]> {
  const service = await startService({ balance: 100, ...script });
  const place = newPlace();
  place.write("set.csv", sheet());
  return [place, service];
}

const paid = ({ made: tasks }: ScriptedService) => tasks.map(({ prompt }) => prompt);

test("P2: a chain is made in its order, an unchanged one is never paid again, and a changed one from the change on", async () => {
  const [place, service] = await made();
  const first = await run(place, ["run", "set.csv", "--yes"], service);
  expect(first, first.stderr).toMatchObject({ code: 0 });
  expect(paid(service)).toEqual(["a cup", "a clip", "more"]);
  for (const [index, { body }] of service.made.entries()) {
    if (index === 0) expect(body).not.toHaveProperty("image_url");
    else expect(body["image_url"]).toContain(service.made[index - 1]?.task);
  }
  const again = await run(place, ["run", "set.csv", "--yes"], service);
  expect(again, again.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(3);
  place.write("set.csv", sheet("a mug"));
  const plan = await run(place, ["plan", "set.csv"], service);
  expect(plan.stdout).toContain("3 new");
  await run(place, ["run", "set.csv", "--yes"], service);
  expect(paid(service).slice(3)).toEqual(["a mug", "a clip", "more"]);
});

test("a failed item leaves its chain blocked and unpaid, says why, and a retry of it goes on with all", async () => {
  let fails = true;
  const [place, service] = await made({
    script: ({ what, path }) => {
      if (what !== "GET task" || !fails) return "serve";
      const facts = { model: "plain-image", category: "image", input: {}, output_urls: null };
      const times = { created_at: "2026-01-01T00:00:00Z", completed_at: "2026-01-01T00:00:01Z" };
      const task_id = path.split("/").at(-1);
      return {
        json: {
          task_id,
          status: "failed",
          error: "content moderation",
          credits_consumed: 0,
          ...facts,
          ...times,
        },
      };
    },
  });
  const first = await run(place, ["run", "set.csv", "--yes", "--json"], service);
  expect(first, first.stderr).toMatchObject({ code: 5 });
  const summary = JSON.parse(first.stdout);
  expect(summary.counts).toMatchObject({ failed: 1, blocked: 2 });
  expect(summary.blocked).toMatchObject([
    { rowId: "clip", reason: "waits for cup, which failed: content moderation" },
    { rowId: "longer", reason: "waits for clip, which is blocked itself" },
  ]);
  const status = await run(place, ["status"], service);
  expect(status.stdout).toContain("row 2 (clip): waits for cup, which failed: content moderation");
  fails = false;
  const retried = await run(place, ["retry", "--yes"], service);
  expect(retried, retried.stderr).toMatchObject({ code: 0 });
  expect(paid(service)).toEqual(["a cup", "a cup", "a clip", "more"]);
});

test("P2: a lost answer blocks its chain; a person who skips it leaves the chain to decide about, with exit 10", async () => {
  const [place, service] = await made({
    script: ({ what, before }) => (what === "POST generate" && before === 0 ? "serve and cut" : "serve"),
  });
  const first = await run(place, ["run", "set.csv", "--yes", "--settle", "wait"], service);
  expect(first, first.stderr).toMatchObject({ code: 10 });
  const skipped = await run(place, ["resolve", "cup", "--skip"], service);
  expect(skipped, skipped.stderr).toMatchObject({ code: 0 });
  const again = await run(place, ["run", "set.csv", "--yes"], service);
  expect(again, again.stderr).toMatchObject({ code: 10 });
  expect(again.stdout).toContain("2, not submitted, waiting for something");
  expect(again.stdout).toContain("which was skipped or cancelled (clip)");
  expect(service.made).toHaveLength(1);
});

test("P4: a rebuilt workspace knows its chains: nothing is paid again, and what is missing is made", async () => {
  const [place, service] = await made();
  const cut = await run(place, ["run", "set.csv", "--yes", "--max-credits", "2"], service);
  expect(cut, cut.stderr).toMatchObject({ code: 6 });
  const before = service.made.length;
  expect(before).toBeGreaterThan(0);
  const rebuilt = await run(place, ["doctor", "--rebuild", "--yes"], service);
  expect(rebuilt, rebuilt.stderr).toMatchObject({ code: 0 });
  const rest = await run(place, ["run", "set.csv", "--yes"], service);
  expect(rest, rest.stderr).toMatchObject({ code: 0 });
  expect(paid(service)).toEqual(["a cup", "a clip", "more"]);
});

test("in a rehearsal a chain goes on after an end, though the sandbox has another port then", async () => {
  const place = newPlace();
  const rows = ["id,model,prompt,image_url", "cup,aurora-image-mini,a cup,", "clip,reel-image,it turns,@cup"];
  place.write("set.csv", rows.join("\n"));
  const words = ["run", "set.csv", "--sandbox", "--yes", "--json"];
  const capped = await run(place, [...words, "--max-credits", "1"]);
  expect(JSON.parse(capped.stdout).counts, capped.stderr).toMatchObject({ archived: 1 });
  const resumed = await run(place, ["resume", "--sandbox", "--yes", "--json", "--max-credits", "100"]);
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(JSON.parse(resumed.stdout).counts).toMatchObject({ archived: 2, failed: 0 });
});

test("P2: export --failed writes the items that the failed ones take outputs of too; the sheet runs by itself and pays only for what failed", async () => {
  const service = await startService({
    balance: 100,
    script: ({ what, body }) =>
      what === "POST generate" && body.includes("a bad clip")
        ? { status: 400, json: { error: { code: "INVALID_REQUEST", message: "no" } } }
        : "serve",
  });
  const place = newPlace();
  const job = (clip: string) => `name: set
rows: [{ id: cup, thing: a cup }, { id: jug, thing: a jug }]
steps:
  - { name: picture, model: plain-image, prompt: "{{ thing }}", priority: 3 }
  - { name: finer, model: plain-image, prompt: finer, image_url: "@picture" }
  - { name: clip, model: plain-image, prompt: "{% if id == 'cup' %}${clip}{% else %}a clip{% endif %}", image_url: "@finer" }
`;
  place.write("set.yaml", job("a bad clip"));
  const first = await run(place, ["run", "set.yaml", "--yes"], service);
  expect(first, first.stdout + first.stderr).toMatchObject({ code: 5 });
  const exported = await run(place, ["export", "--failed", "--to", "retry.csv"], service);
  expect(exported, exported.stderr).toMatchObject({ code: 0 });
  const sheet = place.read("retry.csv");
  expect(sheet.match(/^cup-\w+/gm)).toEqual(["cup-clip", "cup-finer", "cup-picture"]);
  expect(sheet).toContain("@cup-finer");
  expect(sheet).toContain("archived; another row takes its output");
  const before = service.made.length;
  place.write("retry.csv", sheet.replace("a bad clip", "a good clip"));
  const again = await run(place, ["run", "retry.csv", "--yes"], service);
  expect(again, again.stdout + again.stderr).toMatchObject({ code: 0 });
  expect(paid(service).slice(before)).toEqual(["a good clip"]);
  place.write("set.yaml", job("a good clip"));
  const whole = await run(place, ["run", "set.yaml", "--yes"], service);
  expect(whole, whole.stderr).toMatchObject({ code: 0 });
  expect(service.made).toHaveLength(before + 1);
});

describe("P2: a parent whose task the service has no more", () => {
  const rows = { cup: "cup,plain-image,a cup,", clip: "clip,plain-image,a clip,@cup" };
  const sheetOf = (...names: (keyof typeof rows)[]) =>
    `id,model,prompt,image_url\n${names.map((name) => rows[name]).join("\n")}\n`;

  /** The cup is archived, and its task is gone when its clip is to be made. */
  async function gone(
    flags: string[] = [],
    s3: Record<string, string> = {},
  ): Promise<[Place, ScriptedService]> {
    const service = await startService({ balance: 100 });
    const place = newPlace();
    place.write("set.csv", sheetOf("cup"));
    const env = { ...service.env, ...s3 };
    expect((await run(place, ["run", "set.csv", "--yes", ...flags], { env })).code).toBe(0);
    service.script(({ what, path }) =>
      what === "GET task" && path.endsWith(service.made[0]?.task ?? "?")
        ? { status: 404, json: { error: { code: "TASK_NOT_FOUND", message: "no such task" } } }
        : "serve",
    );
    await skippingClock.during(skippingClock.sleep(5 * 3_600_000));
    place.write("set.csv", sheetOf("cup", "clip"));
    return [place, service];
  }

  const publish = 'echo "$BULKGEN_NAME" >> published.txt; echo "https://x.example/$BULKGEN_SHA256.png"';

  test("hands on its archived file, published as local inputs are, and is not paid again", async () => {
    const [place, service] = await gone();
    const first = await run(place, ["run", "set.csv", "--yes"], service);
    expect(first.code, first.stderr).toBe(10);
    expect(first.stdout + first.stderr).toContain("run it again with --publish s3://bucket/prefix");
    expect(service.made).toHaveLength(1);
    const failing = await run(place, ["run", "set.csv", "--yes", "--publish-command", "exit 3"], service);
    expect(failing.code).toBe(10);
    const status = await run(place, ["status", "--json"], service);
    expect(status.stdout).toContain(
      "nor can its archived file be published: the publish command ended with 3",
    );
    const again = await run(place, ["run", "set.csv", "--yes", "--publish-command", publish], service);
    expect(again, again.stdout + again.stderr).toMatchObject({ code: 0 });
    expect(paid(service)).toEqual(["a cup", "a clip"]);
    expect(service.made[1]?.body["image_url"]).toMatch(/^https:\/\/x\.example\/[0-9a-f]{64}\.png$/);
    expect(place.read("published.txt").trim()).toBe("cup.png");
  });

  test("hands on its file from the bucket that alone has it, by a signed address, with nothing set up", async () => {
    const s3 = await s3Server();
    const flags = ["--archive", "s3://inputs/team", "--archive-only"];
    const [place, service] = await gone(flags, s3);
    const words = ["run", "set.csv", "--yes", ...flags];
    const again = await run(place, words, { env: { ...service.env, ...s3 } });
    expect(again, again.stdout + again.stderr).toMatchObject({ code: 0 });
    expect(paid(service)).toEqual(["a cup", "a clip"]);
    const given = new URL(String(service.made[1]?.body["image_url"]));
    expect([given.origin, given.pathname]).toEqual([s3["AWS_ENDPOINT_URL"], "/inputs/team/set/cup.png"]);
    expect(given.searchParams.get("X-Amz-Expires")).toBe("86400");
    expect((await fetch(given)).headers.get("content-type")).toBe("image/png");
  });

  test("does not hand on a file that was changed since it was archived", async () => {
    const [place, service] = await gone();
    place.write("outputs/set/cup.png", "another picture");
    const words = ["run", "set.csv", "--yes", "--publish-command", publish];
    expect((await run(place, words, service)).code).toBe(10);
    const status = await run(place, ["status", "--json"], service);
    expect(status.stdout).toContain("cup.png has changed since it was archived");
    expect(service.made).toHaveLength(1);
  });

  test("says so where --publish names a folder of addresses, which does not have archived files", async () => {
    const [place, service] = await gone();
    const words = ["run", "set.csv", "--yes", "--publish", "https://cdn.example.com"];
    expect((await run(place, words, service)).code).toBe(10);
    const status = await run(place, ["status", "--json"], service);
    expect(status.stdout).toContain("the folder that --publish names does not have the archived files");
    expect(service.made).toHaveLength(1);
  });
});
