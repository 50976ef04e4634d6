import { expect, test } from "vitest";
import { newPlace, run } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, startProxy } from "./service.js";
import { sheet } from "./sheet.js";

test("P6: export, report and status have the evidence of each lost request, also of those that were decided on", async () => {
  const place = newPlace();
  place.write("set.csv", sheet(2));
  let cuts = 0;
  const service = await startProxy(await startSandbox(), ({ what, body }): Scripted => {
    const isLost = what === "POST generate" && body.includes("of a02") && cuts++ < 3;
    return isLost ? "serve and cut" : "serve";
  });
  const call = (...words: string[]) => run(place, words, service);
  const told = async () => {
    const rows = JSON.parse((await call("export", "--format", "json")).stdout);
    expect(rows[0]).toMatchObject({ state: "archived", evidence: null });
    return [
      rows[1].state,
      (rows[1].evidence ?? "").match(/POST [^|]*, no answer, body [0-9a-f]{64}/g)?.length,
    ];
  };
  const status = async () => {
    const { lost, credits } = JSON.parse((await call("status", "--json")).stdout);
    return { lost: lost.map(({ reason }: { reason: string }) => reason), credits };
  };
  const lost = await call("run", "set.csv", "--yes", "--lanes", "1");
  expect(lost.code, lost.stderr).toBe(10);
  expect(await told()).toEqual(["held", 1]);
  const { credits: first, lost: none } = await status();
  expect(none).toEqual([]);
  expect(first.lost).toBe(0);
  await call("resolve", "a02", "--resubmit", "--yes");
  expect(await told()).toEqual(["held", 2]);
  const again = "its item was submitted again";
  expect(await status()).toEqual({ lost: [again], credits: { ...first, lost: first.pending } });
  await call("resolve", "a02", "--resubmit", "--yes");
  expect(await told()).toEqual(["held", 3]);
  const made = await call("resolve", "a02", "--resubmit", "--yes");
  expect(made.code, made.stderr).toBe(0);
  expect(await told()).toEqual(["archived", 3]);
  const { lost: all, credits } = await status();
  expect(all).toEqual([again, again, again]);
  expect(credits).toMatchObject({ pending: 0, lost: 3 * first.pending });
  expect(made.stdout).toMatch(/^lost +3 requests, possibly charged/m);
  expect(made.stdout).toMatch(/^ +a02: POST .*, no answer, body/m);
});
