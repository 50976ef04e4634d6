import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { commandList } from "../../src/cli/command-list.js";
import { allCommands } from "../cli/all-commands.js";
import { newPlace, type Place, run } from "./command.js";
import { testKey, tracesOfKey } from "./leaked-key.js";
import { type Scripted, type ScriptedService, startService } from "./service.js";
import { sheet } from "./sheet.js";

/** An answer that repeats the key wherever an answer has room for it. */
function repeating(status: number): Scripted {
  const statusText = `Refused ${testKey}`;
  const headers = {
    [`x-${testKey}`]: testKey,
    "x-your-key": testKey,
    location: `/login/${testKey}`,
    "content-type": `text/${testKey}`,
    date: `not for ${testKey}`,
  };
  const message = `unknown key ${testKey}, or ${testKey.slice(4)} for short`;
  if (status === 200) return { statusText, headers, text: `<html>${message}</html>` };
  return { status, statusText, headers, json: { error: { code: testKey, message } } };
}

/** A workspace with an archived item whose file is gone, a failed item, a held one, and one that was never sent. */
async function begun(): Promise<{ place: Place; service: ScriptedService; lost: string }> {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(4, "plain-image"));
  service.script(({ what, body }) => {
    if (what !== "POST generate" || body.includes("of a01")) return "serve";
    return body.includes("of a02")
      ? { status: 400, json: { error: { code: "INVALID_REQUEST", message: "no" } } }
      : "serve and cut";
  });
  const first = await run(place, ["run", "set.csv", "--yes", "--lanes", "1", "--max-credits", "4"], service);
  expect(first, first.stderr).toMatchObject({ code: 10 });
  rmSync(join(place.folder, "outputs", "set", "a01.png"));
  mkdirSync(join(place.folder, "stock"));
  place.write("stock/a04.png", "not a picture");
  place.write("key", testKey);
  return { place, service, lost: service.made.at(-1)?.task ?? "" };
}

const commandsThatAsk = [
  ["plan", "set.csv"],
  ["run", "set.csv", "--yes"],
  ["resume"],
  ["retry", "--yes"],
  ["redo", "a01", "--yes"],
  ["resolve", "a03", "--adopt", "LOST"],
  ["resolve", "a03", "--resubmit", "--yes"],
  ["verify", "--repair"],
  ["adopt", "stock", "set.csv"],
  ["models"],
  ["account"],
  ["doctor"],
  ["init", "studio", "--base-url", "SERVICE", "--api-key-file", "key"],
];

/** What could ask the service and is not tried here, with the reason. */
const others: Readonly<Record<string, string>> = {
  approve: "works offline",
  reject: "asks what redo asks, with --again",
  "schedule add": "asks nothing; a scheduled run is a run",
  "schedule edit": "asks nothing either",
  trust: "sends nothing",
  worker: "continues a run as resume does",
};

async function expectUnprinted(
  { place, service, lost }: Awaited<ReturnType<typeof begun>>,
  words: readonly string[],
  status: number,
): Promise<void> {
  service.script(() => repeating(status));
  const asked = service.asked.length;
  const named = words.map((word) => (word === "LOST" ? lost : word === "SERVICE" ? service.url : word));
  const level = words[0] === "init" ? [] : ["--log-level", "debug"];
  const end = await run(place, [...named, ...level], service);
  const context = `${named.join(" ")} at ${status}: ${end.stdout}${end.stderr}`;
  expect(service.asked.length, context).toBeGreaterThan(asked);
  expect(tracesOfKey(end.stdout + end.stderr), context).toBeNull();
}

test("every command that takes an address and a key is tried here, or could not print more than one that is", () => {
  const asking = allCommands(commandList).flatMap(([path, { flags = {} }]) =>
    "apiKeyFile" in flags ? [path.join(" ")] : [],
  );
  const tried = new Set(commandsThatAsk.map(([name = ""]) => name));
  expect(asking.toSorted()).toEqual([...tried, ...Object.keys(others)].toSorted());
});

// The files of each place are searched for the key when this file's tests have ended.
test("P21: no command prints or stores the key that a service repeats in its 401", async () => {
  const stage = await begun();
  for (const words of commandsThatAsk) await expectUnprinted(stage, words, 401);
});

test("P21: nor the key that it repeats in any other answer", async () => {
  const stage = await begun();
  for (const status of [200, 301, 400, 403])
    for (const words of [["account"], ["doctor"]]) await expectUnprinted(stage, words, status);
});

test("P21: nor the key that is in the answers to a paid request and to a poll", async () => {
  const { place, service } = await begun();
  service.script(({ what, before }) => {
    if (what === "POST generate") return before === 4 ? repeating(400) : "serve";
    return what === "GET task" && before < 1 ? repeating(500) : "serve";
  });
  const asked = service.count("POST generate");
  const end = await run(place, ["run", "set.csv", "--yes", "--log-level", "debug"], service);
  expect(service.count("POST generate"), end.stderr).toBeGreaterThan(asked);
  expect(tracesOfKey(end.stdout + end.stderr), end.stdout + end.stderr).toBeNull();
});
