import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { newPlace, type Place, run, startOnTerminal } from "./command.js";
import { startService } from "./service.js";
import { sheet } from "./sheet.js";

const items = 4;

/** A run that ended at its cap with half of its items. */
async function capped() {
  const service = await startService();
  const place = newPlace();
  place.write("set.csv", sheet(items, "plain-image"));
  const ended = await run(place, ["run", "set.csv", "--yes", "--max-credits", "4"], service);
  expect(ended, ended.stderr).toMatchObject({ code: 6 });
  return { service, place, ended };
}

/** As if the folder had been copied from another machine. */
function begunElsewhere(place: Place): void {
  const db = openSqlite(join(place.folder, ".bulkgen", "state.db"));
  try {
    db.exec(
      `UPDATE runs SET options = json_set(options, '$.beganBy', json('{"user":"anna","host":"studio-3"}'))`,
    );
  } finally {
    db.close();
  }
}

describe.concurrent("a run that ended at its cap", () => {
  test("is continued by the command that its last line names", async () => {
    const { service, place, ended } = await capped();
    const [, words = ""] = /^Next: .*`bulkgen (.*)`$/m.exec(ended.stdout) ?? [];
    expect(words).toBe("resume 1 --max-credits 8");
    const resumed = await run(place, words.split(" "), service);
    expect(resumed, resumed.stderr).toMatchObject({ code: 0 });
    expect(resumed.stderr).toMatch(/^resuming +run 1 of set \(set\.csv\)$/m);
    expect(resumed.stderr).toMatch(/^items +2 of 4 archived, 2 to submit$/m);
    expect(resumed.stderr).toMatch(/^credits +4 spent, cap 8$/m);
    expect(service.made).toHaveLength(items);
  });

  test("asks on a terminal before it spends more", async () => {
    const { service, place } = await capped();
    const asked = startOnTerminal(place, 80, ["resume", "1", "--max-credits", "8"], service);
    await asked.prints(/Spend 4 credits on 2 items\? \[y\/N\]/);
    asked.type("\n");
    expect((await asked.ended).code).toBe(2);
    expect(service.made).toHaveLength(2);
  });

  test("is not bought on another machine without a yes", async () => {
    const { service, place } = await capped();
    begunElsewhere(place);
    const words = ["resume", "--max-credits", "8"];
    const refused = await run(place, words, service);
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "run 1 was begun by anna on studio-3, and resuming it here spends up to 4",
      ),
    });
    expect(service.made).toHaveLength(2);
    const agreed = await run(place, [...words, "--yes"], service);
    expect(agreed, agreed.stderr).toMatchObject({ code: 0 });
  });
});
