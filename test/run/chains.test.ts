import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { variantKey } from "../../src/core/identity.js";
import type { Reply } from "../../src/core/ports/send.js";
import type { NewItem, Run } from "../../src/core/ports/store.js";
import type { SandboxOptions } from "../../src/sandbox/sandbox.js";
import { blockedIn } from "../../src/workspace/blocked.js";
import { carryOn, openWorld, picture, start, states, type World } from "./harness.js";

let world: World;
afterEach(() => world.close());

async function open(options: Partial<SandboxOptions> = {}): Promise<World> {
  world = await openWorld({ credits: 500, ...options });
  return world;
}

/** A picture with a vignette made of another item's picture: quicker than a clip. */
const clip = (id: string, of: string, position: number, output = 1): NewItem =>
  picture(id, position, {
    model: "atelier-vignette",
    prompt: null,
    inputs: { image_url: `@${of}` },
    parents: [{ field: "image_url", key: `k1:${of}`, output }],
  });
const chain = [picture("cup", 0), clip("clip", "cup", 1)];
const posts = () => world.sent.filter((request) => request.startsWith("POST")).length;
const reasons = async (run: Run) =>
  Object.fromEntries((await blockedIn(world.store, run.id)).map(({ rowId, reason }) => [rowId, reason]));
const intents = () =>
  readFileSync(join(world.folder, "receipts.jsonl"), "utf8")
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [JSON.parse(line)]))
    .filter(({ type }) => type === "intent");
const hours = (count: number) => world.clock.advance(count * 3_600_000);
const notFound: Reply = {
  kind: "answer",
  status: 404,
  headers: {},
  body: '{"error":{"code":"TASK_NOT_FOUND","message":"no such task"}}',
};

describe("a chain", () => {
  test("is made from the first item to the last, each with its parent's signed URL", async () => {
    await open();
    const run = await start(world, [clip("clip", "cup", 0), picture("cup", 1)]);
    expect(await states(world, run)).toEqual({ clip: "blocked", cup: "planned" });
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ clip: "archived", cup: "archived" });
    expect(posts()).toBe(2);
    const [first, second] = intents();
    expect(first).toMatchObject({ row: "cup" });
    expect(first.parents).toBeUndefined();
    expect(second.request.image_url).toMatch(/^http:.*\/files\/.*1\.png\?expires=\d+&signature=/);
    expect(second.parents).toEqual([{ field: "image_url", key: "k1:cup", output: 1, written: "@cup" }]);
  });

  test("waits for the variant of a rejected item, and for no row whose id only looks like one", async () => {
    await open();
    const cup = picture("cup", 0, { approve: true });
    const run = await start(world, [cup, picture("cup-v2", 1, { approve: true }), clip("clip", "cup", 2)]);
    await carryOn(world, run);
    const [made] = await world.store.find("cup");
    await world.store.approve([made!.id], "rejected");
    expect(await reasons(run)).toEqual({ clip: "waits for cup, which was rejected" });
    const variant = { key: variantKey(cup.key, 3), variant: 3, rowId: "cup-v3", name: "cup-v3" };
    await world.store.add(run.id, [{ ...cup, ...variant }]);
    await carryOn(world, run);
    expect(await reasons(run)).toEqual({ clip: "waits for cup-v3, which you have not approved" });
  });

  test("goes before other items once its next item can be made, so that the URL is still good", async () => {
    await open();
    const others = Array.from({ length: 8 }, (_, index) => picture(`p${index}`, index + 2));
    const run = await start(world, [...chain, ...others]);
    await carryOn(world, run, { lanes: 1, perMinute: 5 });
    const order = intents().map(({ row }) => row);
    expect(order.indexOf("clip")).toBeLessThan(order.indexOf("p7"));
    const [, , item] = await world.store.items(run.id);
    expect((await world.store.items(run.id)).map(({ priority }) => priority)).toEqual(Array(10).fill(0));
    expect(item?.rowId).toBe("p0");
  });

  test("several items take one output, and one item takes several", async () => {
    await open();
    const voice = picture("voice", 1, { model: "voice-clear", category: "audio" });
    const both: NewItem = {
      ...clip("both", "cup", 3),
      model: "reel-perform",
      category: "video",
      inputs: { image_url: "@cup", audio_url: "@voice" },
      parents: [
        { field: "image_url", key: "k1:cup", output: 1 },
        { field: "audio_url", key: "k1:voice", output: 1 },
      ],
    };
    const run = await start(world, [picture("cup", 0), voice, clip("clip", "cup", 2), both]);
    await carryOn(world, run);
    expect(new Set(Object.values(await states(world, run)))).toEqual(new Set(["archived"]));
    expect(posts()).toBe(4);
  });
});

describe("a URL that is too old", () => {
  /** The picture is archived, and its clip is asked for later. */
  async function archived(options: Partial<SandboxOptions> = {}): Promise<Run> {
    await open(options);
    const first = await start(world, [picture("cup", 0)]);
    await carryOn(world, first);
    await world.store.setRun(first.id, { state: "finished" });
    world.sent.length = 0;
    hours(5);
    return start(world, chain);
  }

  test("is renewed by one poll of the parent's task, and the parent is not paid again", async () => {
    const run = await archived();
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "archived" });
    expect(posts()).toBe(1);
    expect(world.sent.filter((request) => request.startsWith("GET /api/v1/task"))).toHaveLength(2);
  });

  test("P15: of two seconds is handed on while it is good, and nothing is paid twice", async () => {
    const run = await archived({ switches: { urlMs: 2_000 } });
    const more = [clip("still", "clip", 2), clip("last", "still", 3)];
    await world.store.enroll(run.id, [...chain, ...more]);
    await carryOn(world, run, { lanes: 1, perMinute: 5 });
    const made = { cup: "archived", clip: "archived", still: "archived", last: "archived" };
    expect(await states(world, run)).toEqual(made);
    const children = intents().filter(({ row }) => row !== "cup");
    expect(children.map(({ row }) => row)).toEqual(["clip", "still", "last"]);
    for (const { at, request } of children) {
      const expires = Number(new URL(request.image_url).searchParams.get("expires"));
      const left = (expires < 1e11 ? expires * 1_000 : expires) - Date.parse(at);
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(3_000);
    }
  });

  test("is renewed again where the item could not be sent in time", async () => {
    await open();
    const run = await start(world, chain);
    const interrupt = new AbortController();
    world.onProgress = ({ counts }) => {
      if (counts.archived === 1) interrupt.abort();
    };
    world.tamper = async (request, pass) => {
      if (request.startsWith("POST") && posts() > 1) interrupt.abort();
      return pass();
    };
    await carryOn(world, run, { interrupt: interrupt.signal, lanes: 1 });
    world.onProgress = null;
    world.tamper = null;
    hours(5);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "archived" });
    expect(posts()).toBe(2);
  });

  test("of a task that the service no longer has leaves the item blocked, unpaid, with what to do", async () => {
    const run = await archived();
    world.tamper = async (request, pass) => (request.startsWith("GET /api/v1/task") ? notFound : pass());
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "blocked" });
    expect(posts()).toBe(0);
    // One poll is an answer.
    expect(world.sent.filter((request) => request.startsWith("GET /api/v1/task"))).toHaveLength(1);
    expect((await reasons(run))["clip"]).toMatch(
      /^the output of cup cannot be handed on \(the service does not know the task any more.*put its file where the service can read it/,
    );
    world.tamper = null;
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "archived" });
  });

  test("is asked for again where something in between answers 404 in the service's place", async () => {
    const run = await archived();
    let polls = 0;
    world.tamper = async (request, pass) =>
      request.startsWith("GET /api/v1/task") && ++polls < 3
        ? { ...notFound, body: "<h1>Not Found</h1>" }
        : pass();
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "archived" });
    expect(posts()).toBe(1);
  });

  test.each<[string, Reply]>([
    ["there is no connection", { kind: "not_sent", reason: "getaddrinfo ENOTFOUND" }],
    ["a gateway answers 502", { kind: "answer", status: 502, headers: {}, body: "" }],
    [
      "the service asks for a pause",
      { kind: "answer", status: 429, headers: { "retry-after": "1" }, body: "{}" },
    ],
  ])("is renewed although %s for half a minute", async (_, reply) => {
    const run = await archived();
    const until = world.clock.now() + 30_000;
    world.tamper = async (_request, pass) => (world.clock.now() < until ? reply : pass());
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "archived" });
    expect(posts()).toBe(1);
  });

  test("is not renewed for ever where every new one is too old as well", async () => {
    const run = await archived();
    world.tamper = async (_, pass) => {
      const reply = await pass();
      if (reply.kind !== "answer") return reply;
      return { ...reply, body: reply.body.replaceAll(/expires=\d+/g, `expires=${world.clock.now() - 1}`) };
    };
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "blocked" });
    expect(posts()).toBe(0);
    expect(world.sent.length).toBeLessThan(10);
  });

  test("is not renewed once nothing more may be bought", async () => {
    const run = await archived();
    await carryOn(world, run, { deadline: world.clock.now() });
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "blocked" });
    expect(world.sent).toEqual([]);
  });
});

describe("a parent that does not end well", () => {
  test("leaves what follows it blocked and unpaid, with the reason", async () => {
    await open();
    const bad = picture("cup", 0, { prompt: "[[moderation]] a cup" });
    const last: NewItem = {
      ...clip("longer", "clip", 2),
      model: "reel-extend",
      inputs: { video_url: "@clip" },
      parents: [{ field: "video_url", key: "k1:clip", output: 1 }],
    };
    const run = await start(world, [bad, clip("clip", "cup", 1), last]);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "failed", clip: "blocked", longer: "blocked" });
    expect(posts()).toBe(1);
    expect(await reasons(run)).toEqual({
      clip: "waits for cup, which failed: The prompt was rejected by content moderation.",
      longer: "waits for clip, which is blocked itself",
    });
  });

  test("releases them when a retry of it ends well", async () => {
    await open();
    world.tamper = async (request, pass) => {
      const reply = await pass();
      if (!request.startsWith("POST") || posts() > 1) return reply;
      return { ...reply, status: 400, body: '{"error":{"code":"BAD","message":"no"}}' } as Reply;
    };
    const run = await start(world, chain);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "failed", clip: "blocked" });
    const [cup] = await world.store.items(run.id, ["failed"]);
    await world.store.apply(cup?.id ?? 0, "retry", { nextAt: 0 });
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "archived" });
  });

  test("P2: of which it is not known whether it was charged blocks them too", async () => {
    await open();
    world.tamper = async (request, pass) => {
      if (request.startsWith("POST")) {
        await pass();
        return { kind: "no_answer", reason: "the connection was reset" };
      }
      return pass();
    };
    const run = await start(world, chain);
    await carryOn(world, run);
    const found = await states(world, run);
    expect(found["clip"]).toBe("blocked");
    expect(["unknown", "held"]).toContain(found["cup"]);
    expect(posts()).toBe(1);
    expect((await reasons(run))["clip"]).toMatch(
      /^waits for cup, (whose charge is not settled yet|which is held)/,
    );
  });

  test("with fewer outputs than are wanted says so", async () => {
    await open();
    const run = await start(world, [picture("cup", 0), clip("clip", "cup", 1, 2)]);
    await carryOn(world, run);
    expect(await states(world, run)).toEqual({ cup: "archived", clip: "blocked" });
    expect(await reasons(run)).toEqual({
      clip: "waits for cup, which has 1 output, and output 2 is wanted",
    });
  });

  test("is named where it was skipped, or is not on record at all", async () => {
    await open();
    const run = await start(world, [picture("cup", 0), clip("clip", "cup", 1), clip("lost", "nobody", 2)]);
    const [cup] = await world.store.items(run.id, ["planned"]);
    await world.store.apply(cup?.id ?? 0, "dropped", {});
    await carryOn(world, run);
    expect(await reasons(run)).toEqual({
      clip: "waits for cup, which was skipped or cancelled",
      lost: "waits for an item, which is not on record: run the manifest again",
    });
    expect(world.sent).toEqual([]);
  });
});

test("P2: a cancelled run drops what is blocked", async () => {
  await open();
  const run = await start(world, chain);
  await world.store.cancelRun(run.id, new Set());
  expect(await states(world, run)).toEqual({ cup: "dropped", clip: "dropped" });
  expect(existsSync(join(world.folder, "receipts.jsonl"))).toBe(false);
});
