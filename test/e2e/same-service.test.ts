import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { newPlace, run, started } from "./command.js";
import { startSandbox } from "./sandbox.js";
import { type Scripted, startProxy } from "./service.js";
import { ids, sheet } from "./sheet.js";

const items = 3;

/** A service at two addresses, at the first of which a run was interrupted with its tasks at the service. */
async function moved() {
  const sandbox = await startSandbox();
  const place = newPlace();
  place.write("set.csv", sheet(items));
  const proxy = await startProxy(sandbox, async ({ what, before }): Promise<Scripted> => {
    if (what !== "POST generate" || before < items - 1) return "serve";
    running.interrupt();
    await running.prints(/interrupted: /);
    return "serve";
  });
  const old = proxy.env["BULKGEN_BASE_URL"] ?? "";
  const env = { ...proxy.env, BULKGEN_BASE_URL: old.replace("127.0.0.1", "localhost") };
  const running = started(place, ["run", "set.csv", "--yes", "--lanes", "1"], { env: proxy.env });
  expect((await running.ended).code).toBe(130);
  const command = (...args: string[]) => run(place, args, { env });
  return { sandbox, place, proxy, old, address: env.BULKGEN_BASE_URL, env, command };
}

test("P2: a service that has moved for good goes on under its new address: tasks are collected, items count", async () => {
  const { sandbox, place, old, address, command } = await moved();
  const refused = await command("resume", "1");
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.stderr).toContain(`bulkgen account --same-service ${old}`);
  expect((await command("run", "set.csv", "--yes")).stderr).toContain(`account --same-service ${old}`);

  const said = await command("account", "--same-service", `${old}/`);
  expect(said, said.stderr).toMatchObject({ code: 0 });
  expect(said.stderr).toContain(`the service at ${address} is the one of ${old} from now on`);
  const resumed = await command("resume", "1");
  expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
  expect(resumed.stderr).not.toContain("not made from here");
  place.write("renamed.csv", sheet(items));
  expect((await command("run", "set.csv", "--yes")).code).toBe(0);
  expect((await command("run", "renamed.csv", "--yes")).stderr).toContain("made before for job set");
  expect((await command("doctor", "--rebuild", "--yes")).code).toBe(0);
  expect((await command("run", "set.csv", "--yes")).code).toBe(0);
  expect(sandbox.madeSoFar().map(({ prompt }) => prompt)).toHaveLength(items);
  expect((await command("verify")).code).toBe(0);
  expect(place.files().filter((name) => ids(items).some((id) => name.endsWith(`/${id}.png`)))).toHaveLength(
    items,
  );
});

test("P2: what the archive has of another address is not bought again without a history", async () => {
  const { sandbox, place, proxy, old, command } = await moved();
  expect((await run(place, ["resume"], { env: proxy.env })).code).toBe(0);
  rmSync(join(place.folder, ".bulkgen"), { recursive: true });
  const refused = await command("run", "set.csv", "--yes");
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(/3 of 3 items are in the archive .* they would be paid again/);
  expect((await command("run", "set.csv", "--yes", "--fresh")).code).toBe(0);
  expect(sandbox.madeSoFar()).toHaveLength(2 * items);
  expect(old).toContain("127.0.0.1");
});

test("P2: only an address where this user has worked before is taken for the same service", async () => {
  const { sandbox, place, proxy, old, address, env, command } = await moved();
  for (const [from, why] of [
    [address, "expected the address of before, got the present one"],
    ["https://other.example", "expected an address at which user"],
    ["nonsense", "nonsense"],
  ] as const) {
    const end = await command("account", "--same-service", from);
    expect(end).toMatchObject({ code: 2 });
    expect(end.stderr).toContain(why);
  }
  const ben = await sandbox.keyOf("ben's", "ben@example.com");
  const his = await run(place, ["account", "--same-service", old], {
    env: { ...env, ...ben, BULKGEN_BASE_URL: address },
  });
  expect(his).toMatchObject({ code: 2 });
  expect(his.stderr).toContain("Nothing was changed");
  expect((await command("resume", "1")).code).toBe(2);
  expect((await run(place, ["resume", "1"], { env: proxy.env })).code).toBe(0);
});
