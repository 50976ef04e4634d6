import { describe, expect, test } from "vitest";
import type { Standing } from "../../src/documents/page.js";
import { openDashboard } from "../dashboard/place.js";
import { startHook } from "../notify/receivers.js";
import { newPlace, run, started } from "./command.js";
import { type Script, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** Each keeps a run waiting; there are credits for one of its three rows. */
const waits: { kind: string; words: string[]; sentence: RegExp; until: RegExp; script: Script }[] = [
  {
    kind: "credits",
    words: ["--on-insufficient", "wait"],
    sentence: /out of credits, waiting for more, next check in [\dms ]+/,
    until: /^20/,
    script: ({ what, before }) =>
      what === "POST generate" && before > 0
        ? { status: 402, json: { error: { code: "INSUFFICIENT_CREDITS", message: "balance too low" } } }
        : "serve",
  },
  {
    kind: "service",
    words: ["--on-daily-limit", "wait", "--on-insufficient", "wait"],
    sentence: /the service asked us to wait, next request (in [\dms ]+|at 20[\d: -]+ UTC)/,
    until: /^20/,
    script: ({ what }) =>
      what === "GET task" ? { status: 429, headers: { "retry-after": "2400" } } : "serve",
  },
  {
    kind: "settling",
    words: ["--max-unsettled", "1", "--lanes", "1", "--on-insufficient", "wait"],
    sentence: /submitting is paused until 1 lost answer is settled, next check in [\dms ]+/,
    until: /^20/,
    script: ({ what, before }) => {
      if (what === "POST generate") return before === 0 ? "serve" : "cut";
      return what === "GET me" && before > 2 ? { status: 503, text: "later" } : "serve";
    },
  },
];

describe("why a run waits is one sentence, the same wherever it is asked for", () => {
  test.each(waits)("$kind", async ({ kind, words, sentence, until, script }) => {
    const { place, service, get } = await openDashboard({ balance: 3 });
    const hook = await startHook(200);
    place.write("set.csv", sheet(3, "plain-image"));
    service.script(script);
    const going = started(place, ["run", "set.csv", "--yes", "--notify", hook.url, ...words], service);
    await going.prints(sentence);
    const told = await run(place, ["status"], service);
    expect(told.stdout).toMatch(new RegExp(`^now +${sentence.source}$`, "m"));
    const json = JSON.parse((await run(place, ["status", "--json"], service)).stdout);
    expect(json.reason).toEqual({ kind, text: expect.any(String), until: expect.stringMatching(until) });
    expect((await run(place, ["report"], service)).stdout).toMatch(sentence);
    expect((await get<Standing>("/api/standing")).running?.reason?.text).toMatch(sentence);
    going.interrupt();
    await going.ended;
    const notes = hook.received.map(({ body }) => JSON.parse(body));
    if (kind !== "settling")
      expect(notes[0]).toMatchObject({ event: "trouble", summary: expect.stringMatching(sentence) });
  });
});

test("resume --on-daily-limit wait waits from its first request on, where the run itself was to stop", async () => {
  const service = await startService({ balance: 100 });
  const place = newPlace();
  place.write("set.csv", sheet(9, "plain-image"));
  expect((await run(place, ["run", "set.csv", "--yes", "--rpd", "4"], service)).code).toBe(8);
  const resume = ["resume", "--yes"];
  while (!(await run(place, resume, service)).stderr.includes("the day's requests are used up until"));
  const made = service.made.length;
  const going = started(place, [...resume, "--on-daily-limit", "wait"], service);
  await going.prints(/next request (in|at) /);
  going.interrupt();
  expect((await going.ended).code).toBe(130);
  expect(service.made).toHaveLength(made);
});
