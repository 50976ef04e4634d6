import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { EarlyExit } from "../../../src/core/exit.js";
import { KnownAttempts, lineIn } from "../../../src/run/receipts/receipt-lines.js";
import { openSqlite } from "../../../src/sqlite.js";
import { rebuildWorkspace } from "../../../src/upkeep/rebuild/rebuild.js";
import { outdatedHistory } from "../../../src/workspace/history.js";
import { withStore } from "../../../src/workspace/state.js";
import { findWorkspace } from "../../../src/workspace/workspace.js";
import { ManualClock } from "../../manual-clock.js";
import { intentLine } from "../../receipt-line.js";
import type { Outcome, Parser } from "../cases.js";
import { scratch } from "./scratch.js";

/**
 * P4: whatever has become of the receipts and of the archive's index, a database is rebuilt from what can still be read,
 * and all tasks that the receipts tell are in it, or reported. The two files are one case here, with a line between them.
 */
const between = "null";

const answerLine = {
  type: "answer",
  at: intentLine.at,
  job: "set",
  key: "k1:a",
  attempt: 1,
  event: "accepted",
  status: 200,
  taskId: "task-a",
  charged: 4,
};

const indexLine = {
  item: "a",
  key: "k1:a",
  task: "task-a",
  external_task: null,
  model: "picture",
  prompt: "a cup",
  params: {},
  inputs: {},
  credits: 4,
  created: "2026-01-05T09:00:00Z",
  completed: "2026-01-05T09:00:09Z",
  output: 1,
  file: "a.png",
  bytes: 3,
  sha256: createHash("sha256").update("abc").digest("hex"),
  mime: "image/png",
  check: "decoded",
  saved: "2026-01-05T09:00:10.000Z",
  bulkgen: "0.1.0",
};

const caseOf = (receipts: readonly object[], index: readonly object[]) =>
  Buffer.from(`${[...receipts, null, ...index].map((line) => JSON.stringify(line)).join("\n")}\n`);

const ofB = { key: "k1:b", row: "b", rowNumber: 3, name: "b" };

export const rebuildParser: Parser = {
  samples: () => [
    caseOf([intentLine, answerLine, { ...intentLine, ...ofB }], [indexLine]),
    caseOf(
      [
        intentLine,
        { ...answerLine, event: "failed", charged: 0, taskId: null },
        { ...intentLine, attempt: 2 },
      ],
      [
        { ...indexLine, item: "b", key: "k1:b", task: "task-b" },
        { ...indexLine, output: 2, file: "a-2.png" },
      ],
    ),
    caseOf(
      [],
      [indexLine, { ...indexLine, item: null, key: "k1:c", task: "task-c", params: { size: "big" } }],
    ),
  ],
  words: [],
  isJson: true,
  cases: 300,
  read: readBoth,
};

async function readBoth(bytes: Buffer): Promise<Outcome> {
  const root = join(scratch(), "rebuild");
  rmSync(root, { recursive: true, force: true });
  const workspace = findWorkspace({ cwd: root, named: root, sandbox: false, env: { XDG_STATE_HOME: root } });
  const folder = join(workspace.outFolder, "set");
  for (const made of [join(root, ".bulkgen"), folder]) mkdirSync(made, { recursive: true });
  const all = bytes.toString("latin1").split("\n");
  const at = all.indexOf(between);
  const [receipts, index] = at < 0 ? [all, []] : [all.slice(0, at), all.slice(at + 1)];
  writeFileSync(workspace.receiptsFile, receipts.join("\n"), "latin1");
  writeFileSync(join(folder, "index.jsonl"), index.join("\n"), "latin1");
  writeFileSync(join(folder, "a.png"), "abc");
  const clock = new ManualClock();
  let orphans: readonly string[];
  try {
    ({ orphans } = await rebuildWorkspace({ workspace, clock, consent: async () => true }));
  } catch (error) {
    if (!(error instanceof EarlyExit)) throw error;
    return "refused";
  }
  await withStore(workspace, clock, async (store) => {
    expect(await outdatedHistory(workspace, store)).toBeNull();
  });
  const db = openSqlite(workspace.stateFile, { readonly: true });
  try {
    const tasks = db.prepare("SELECT task_id FROM attempts").pluck().all();
    expect([...tasks, ...orphans]).toEqual(expect.arrayContaining(tasksTold(receipts)));
  } finally {
    db.close();
  }
  return "taken";
}

function tasksTold(receipts: readonly string[]): string[] {
  const known = new KnownAttempts();
  for (const row of receipts) {
    const line = lineIn(Buffer.from(row, "latin1").toString("utf8"));
    if (line !== null && line.type !== "decision") known.note(line);
  }
  const tasks = known.all.flatMap(({ answer }) => answer?.conclusion.outcome.taskId ?? []);
  // SQLite keeps no half of a character, and no address can hold one.
  return tasks.filter((task) => !/\p{Surrogate}/u.test(task));
}
