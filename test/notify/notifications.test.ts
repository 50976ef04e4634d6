import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { beforeEach, describe, expect, test } from "vitest";
import { deliver } from "../../src/notify/deliver.js";
import { endNotification, newsNotification } from "../../src/notify/facts.js";
import { targetsOf } from "../../src/notify/target.js";
import { afterThisFile } from "../after-file.js";
import { ManualClock } from "../manual-clock.js";
import { origin, runFacts } from "../report/facts.js";
import { startHook, startHookWith, startMailServer } from "./receivers.js";

let clock: ManualClock;
let warnings: string[];
beforeEach(() => {
  clock = new ManualClock();
  warnings = [];
});

const facts = endNotification("credits", runFacts, { message: "", origin });
const summary =
  "demo, run 3: 20 of 26 archived, 4 failed, 1 held, 112.5 credits spent, 8 credits in flight or held (credits)";
const secret = "/services/T0/B0/very-secret";

const send = (notify: string[], settings: object = {}, notification = facts) =>
  deliver(targetsOf({ notify, ...settings }, { HOOK: notify[0] }), notification, {
    environment: {},
    clock,
    warn: (line) => warnings.push(line),
  });

/** Moves the clock on while the work waits for it. */
async function passing(work: Promise<void>): Promise<void> {
  let over = false;
  void work.then(() => {
    over = true;
  });
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    if (!over) clock.advance(50);
  }
}

describe("a webhook", () => {
  test("gets the facts as JSON", async () => {
    const hook = await startHook(200);
    await send([hook.url + secret]);
    expect(warnings).toEqual([]);
    expect(hook.received).toHaveLength(1);
    expect(hook.received[0]).toMatchObject({
      path: secret,
      headers: { "content-type": "application/json" },
    });
    expect(JSON.parse(hook.received[0]?.body ?? "")).toEqual({
      event: "credits",
      exit: 7,
      why: "out of credits (balance 0); top up and run `bulkgen resume`",
      failures:
        "3 × moderation: the prompt was refused (cover-1, cover-2, cover-4); " +
        "1 × provider: no capacity (cover-3); 1 × held: the POST was cut off (clip-9)",
      ...origin,
      run: 3,
      job: "demo",
      items: 26,
      archived: 20,
      failed: 4,
      held: 1,
      creditsSpent: 112.5,
      creditsPending: 8,
      creditsLeft: 0.25,
      folder: "outputs/demo",
      next: "bulkgen resolve clip-9 --adopt ID",
      summary,
    });
  });

  test("gets Slack's and Discord's shapes, which cannot call or link anybody", async () => {
    const hook = await startHook(200);
    const odd = endNotification(
      "done",
      { ...runFacts, job: "<!channel> @everyone & co", nextStep: null },
      { message: "", origin },
    );
    for (const kind of ["slack", "discord"]) await send([JSON.stringify({ url: hook.url, kind })], {}, odd);
    const [slack, discord] = hook.received.map(({ body }) => JSON.parse(body));
    expect(slack).toEqual({
      text: expect.stringMatching(/^&lt;!channel&gt; @everyone &amp; co, run 3: 20 of/),
    });
    expect(discord).toEqual({
      content: expect.stringMatching(/^<!channel> @everyone & co, run 3: 20 of/),
      allowed_mentions: { parse: [] },
    });
  });

  test.each([
    ["https://hooks.slack.com/services/T/B/x", "text"],
    ["https://discord.com/api/webhooks/1/x", "content"],
    ["https://ops.example/hook", "summary"],
  ])("at %s is known by its address", (url, field) => {
    const [target] = targetsOf({ notify: [url] }, {});
    if (target?.kind !== "webhook") throw new Error("no webhook");
    expect(Object.keys(JSON.parse(target.shape(facts).body))).toContain(field);
  });

  test("gets a body of one's own, with headers from the environment", async () => {
    const hook = await startHook(200);
    const asked = {
      url: "$HOOK",
      body: '{"msg": {{ summary | json }}, "bad": {{ failed }}}',
      headers: { "X-Token": "$TOKEN" },
    };
    const targets = targetsOf({ notify: [JSON.stringify(asked)] }, { HOOK: hook.url, TOKEN: "t0p" });
    await deliver(targets, facts, { environment: {}, clock, warn: (line) => warnings.push(line) });
    expect(JSON.parse(hook.received[0]?.body ?? "")).toEqual({ msg: summary, bad: 4 });
    expect(hook.received[0]?.headers["x-token"]).toBe("t0p");
  });

  test("says in a message what happened, why, from where, and what to do now", async () => {
    const hook = await startHook(200);
    await send([JSON.stringify({ url: hook.url, kind: "slack" })]);
    expect(JSON.parse(hook.received[0]?.body ?? "").text.split("\n")).toEqual([
      summary,
      "Why: out of credits (balance 0); top up and run `bulkgen resume`",
      expect.stringMatching(/^Failed: 3 × moderation: the prompt was refused/),
      "From: schedule night, due 2026-11-21T02:00:00.000Z, /srv/campaign on studio-2",
      "Next: bulkgen resolve clip-9 --adopt ID",
    ]);
  });

  test("at an http port that is addressed as https gets one plain warning", async () => {
    const hook = await startHook(200);
    await send([hook.url.replace("http:", "https:")]);
    expect(warnings).toEqual([
      `the notification to ${new URL(hook.url).host} was not delivered: the server does not speak HTTPS; use http:// in its address`,
    ]);
  });

  test("gets the user and password of its address as a login", async () => {
    const hook = await startHook(200);
    await send([hook.url.replace("//", "//ada:s3%40cret@")]);
    expect(hook.received[0]?.headers.authorization).toBe(`Basic ${btoa("ada:s3@cret")}`);
  });

  test("gets only the events it asked for", async () => {
    const hook = await startHook(200);
    const target = JSON.stringify({ url: hook.url, on: ["missed"] });
    await send([target]);
    expect(hook.received).toEqual([]);
    await send([target], {}, newsNotification("missed", "nightly: missed", { origin }));
    expect(JSON.parse(hook.received[0]?.body ?? "")).toMatchObject({
      event: "missed",
      due: "2026-11-21T02:00:00.000Z",
    });
  });

  test("that stumbles is tried again; one that refuses is not", async () => {
    const hook = await startHook(503, 429, 204);
    await passing(send([hook.url]));
    expect(hook.received).toHaveLength(3);
    expect(warnings).toEqual([]);
    const refusing = await startHook(404);
    await send([refusing.url + secret]);
    expect(refusing.received).toHaveLength(1);
    expect(warnings).toEqual([
      `the notification to ${new URL(refusing.url).host} was not delivered: HTTP 404`,
    ]);
  });

  test("P11: that asks to be left alone is left alone for that long, or for good if that is too long", async () => {
    const hook = await startHookWith({ "retry-after": "7" }, 503, 204);
    const begun = clock.now();
    await passing(send([hook.url]));
    expect(hook.received).toHaveLength(2);
    expect(clock.now() - begun).toBeGreaterThanOrEqual(7_000);
    const busy = await startHookWith({ "retry-after": "3600" }, 503);
    await passing(send([busy.url]));
    expect(busy.received).toHaveLength(1);
    expect(warnings).toEqual([
      `the notification to ${new URL(busy.url).host} was not delivered: HTTP 503, and it asks to be left alone for 1h`,
    ]);
  });

  test("that hangs is left after half a minute, and nothing secret is said", async () => {
    const hook = await startHook("hang");
    const begun = clock.now();
    await passing(send([hook.url + secret]));
    expect(clock.now() - begun).toBeLessThanOrEqual(31_000);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/was not delivered: no answer in time \(\d tries\)$/);
    expect(warnings[0]).not.toContain("secret");
  });

  test("that nothing listens at is one warning", async () => {
    await passing(send(["http://127.0.0.1:1/x"]));
    expect(warnings).toEqual(["the notification to 127.0.0.1:1 was not delivered: ECONNREFUSED (3 tries)"]);
  });
});

describe("a mail", () => {
  test("is taken by a real mail server", async () => {
    const box = await startMailServer("ada", "s3cret");
    await send(["mailto:ops@example.org"], { smtpUrl: box.url, smtpFrom: "nightly@example.org" });
    expect(warnings).toEqual([]);
    expect(box.mails).toHaveLength(1);
    expect(box.mails[0]).toMatchObject({ from: "nightly@example.org", to: ["ops@example.org"], user: "ada" });
    expect(box.mails[0]?.text).toMatch(/^Subject: bulkgen: demo, run 3/m);
    expect(box.mails[0]?.text).toContain("Next: bulkgen resolve clip-9");
  });

  test("that is refused is a warning without the password", async () => {
    const box = await startMailServer("ada", "s3cret");
    await send(["mailto:ops@example.org"], { smtpUrl: box.url.replace("s3cret", "wr0ng") });
    expect(warnings).toEqual(["the notification to ops@example.org was not delivered: SMTP 535"]);
  });
});

test("a mail server that is not there is named with what the system says", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  await passing(send(["mailto:ops@example.org"], { smtpUrl: `smtp://127.0.0.1:${port}` }));
  expect(warnings).toEqual([
    `the notification to ops@example.org was not delivered: connect ECONNREFUSED 127.0.0.1:${port} (3 tries)`,
  ]);
});

test("a mail server that greets and then says nothing is left, and no connection to it stays open", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterThisFile(() => server.close());
  const connected = once(server, "connection");
  const { port } = server.address() as AddressInfo;
  const work = send(["mailto:ops@example.org"], { smtpUrl: `smtp://127.0.0.1:${port}` });
  const [socket] = (await connected) as [Socket];
  socket.resume().write("220 mail.example\r\n");
  const closed = once(socket, "close");
  await passing(work);
  await closed;
  expect(warnings).toEqual([
    expect.stringMatching(/^the notification to ops@example.org was not delivered: no answer in time/),
  ]);
});

describe("an unusable target is reported before anything is spent", () => {
  test.each([
    ["hooks", {}, "expected an address such as https://hooks.example/…"],
    ["ftp://x", {}, "got ftp://…"],
    ["$NOT_SET", {}, "expected NOT_SET in the environment, got nothing under that name"],
    ["{", {}, "got text that is not JSON"],
    ["https://ops%:secret@hooks.example", {}, "got an address with % in its user name or password"],
    ['{"on":["done"]}', {}, "expected an address (url or email), got none"],
    ['{"url":"https://x","on":["dome"]}', {}, /^--notify: expected "on" to have only done, .*, got "dome"\./],
    ['{"url":"https://x","kind":"teams"}', {}, 'expected "kind" to be json, slack or discord, got "teams"'],
    ['{"url":"https://x","colour":1}', {}, "colour"],
    [
      '{"url":"https://x","body":"{% for a in (1..99999) %}{% for b in (1..99999) %}x{% endfor %}{% endfor %}"}',
      {},
      'tag "for" not found',
    ],
    ['{"url":"https://x","body":"{{ sumary }}"}', {}, "undefined variable: sumary"],
    ["mailto:ops@example.org", {}, "expected a mail server"],
    ["mailto:ops@example.org", { smtpUrl: "mail.example" }, "smtp://HOST:PORT"],
  ])("%s", (text, settings, message) => {
    expect(() => targetsOf({ notify: [text], ...settings }, {})).toThrow(message);
  });

  test("and a message never repeats text that may be a secret", () => {
    const text = '{"headers": {"authorization": Bearer s3cret}}';
    const told = () => targetsOf({ notify: [text] }, {});
    expect(told).toThrow("got text that is not JSON");
    expect(told).not.toThrow(/Bearer|s3cret/);
  });
});
