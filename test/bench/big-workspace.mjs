/**
 * Makes a workspace of many items for benches that need its tables, receipts and index to be large: the command runs a
 * sheet of two rows, and what it wrote for the first (item, attempt, output, events, spend log, receipts, index line) is
 * written again under other names, by SQL on the real tables, for every archived item. Planned items are the same without
 * the rest. Only the archived files themselves are missing.
 */
import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { ended, start, writeSheet } from "./setup.mjs";

const Sqlite = createRequire(import.meta.url)("better-sqlite3");

/**
 * `archived` and `planned` items of one run that was interrupted, and `submitting` items whose answers were never read
 * because the process ended.
 */
export async function makeBigWorkspace({ folder, url, archived, planned = 0, submitting = 0 }) {
  const rows = [`first,plain-image,${promptOf(1)}`, "second,plain-image,b"];
  writeSheet(join(folder, "sheet.csv"), "id,model,prompt", rows.length, (n) => rows[n]);
  await ended(start(folder, url, ["run", "sheet.csv", "--yes", "--quiet"]));
  fillState(join(folder, ".bulkgen/state.db"), { archived, planned, submitting });
  fillSpendLog(join(folder, "state/bulkgen/accounts.db"), join(folder, ".bulkgen/state.db"));
  repeatLines(join(folder, "outputs/sheet/index.jsonl"), [archived], (line, n) => ({
    ...line,
    ...{ item: `n-${n}`, key: keyOf(n), task: taskOf(n), file: `n-${n}.png`, prompt: promptOf(n) },
  }));
  repeatLines(join(folder, ".bulkgen/receipts.jsonl"), [archived + submitting, archived], (line, n) =>
    line.type === "intent"
      ? {
          ...line,
          key: keyOf(n),
          row: `n-${n}`,
          name: `n-${n}`,
          request: { ...line.request, prompt: promptOf(n) },
        }
      : { ...line, key: keyOf(n), taskId: taskOf(n) },
  );
}

const promptOf = (n) => `A studio photograph of product number ${n} on a plain background`;
const hex = (n, digits) => n.toString(16).padStart(digits, "0");
/** Spread as hashes are. */
const keyOf = (n) => `k1:${hex((n * 2_654_435_761) % 4_294_967_296, 8)}${hex(n, 56)}`;
const taskOf = (n) => `${hex((n * 2_654_435_761) % 4_294_967_296, 8)}-0000-4000-8000-${hex(n, 12)}`;

function fillState(path, { archived, planned, submitting }) {
  const db = new Sqlite(path);
  db.pragma("synchronous = OFF");
  db.function("key_of", keyOf);
  db.function("task_of", taskOf);
  db.function("prompt_of", promptOf);
  const total = archived + submitting + planned;
  const triggers = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all();
  db.transaction(() => {
    // The triggers would take minutes; what they keep is counted below.
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    const copy = (table, change, from, to) => {
      if (from > to) return;
      const columns = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).pluck().all();
      const values = columns.map((name) => change[name] ?? `t.${name}`);
      const first = table === "items" ? "t.id = 1" : "t.item_id = 1";
      db.exec(`WITH RECURSIVE numbers (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${to})
        INSERT INTO ${table} (${columns}) SELECT ${values} FROM numbers, ${table} t WHERE ${first}`);
    };
    const row = {
      ...{
        id: "n",
        key: "key_of(n)",
        position: "n",
        row_number: "n + 1",
        row_id: "'n-' || n",
        name: "'n-' || n",
      },
      prompt: "prompt_of(n)",
      cells: `json_array(json_array('id', 'n-' || n), json_array('model', 'plain-image'), json_array('prompt', prompt_of(n)))`,
    };
    const unsent = { ...row, accepted_at: "NULL", fetch_by: "0" };
    const [sent, all] = [archived + submitting, total];
    const attempt = {
      id: "n",
      item_id: "n",
      spend_log_id: "t.spend_log_id + 1000000 * n",
      task_id: "task_of(n)",
    };
    const output = {
      item_id: "n",
      file: "'n-' || n || '.png'",
      url: "replace(t.url, '000000000001', task_of(n))",
    };
    copy("items", row, 3, archived);
    copy("attempts", attempt, 3, archived);
    copy("outputs", output, 3, archived);
    copy("events", { id: "1000 + 10 * n + t.id % 10", item_id: "n" }, 3, archived);
    db.exec(`WITH RECURSIVE numbers (n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${Math.max(3, total)})
      INSERT INTO sheet_rows (sheet_id, position, number, cells, keys) SELECT 1, n - 1, n + 1,
        json_object('id', 'n-' || n, 'model', 'plain-image', 'prompt', prompt_of(n)), json_array(key_of(n)) FROM numbers`);
    copy("items", { ...unsent, state: "'submitting'" }, archived + 1, sent);
    const open = { outcome: "NULL", answered_at: "NULL", status: "NULL", charged: "NULL", remaining: "NULL" };
    const never = {
      created_at: "NULL",
      completed_at: "NULL",
      closed: "0",
      external_task_id: "NULL",
      task_id: "NULL",
    };
    copy("attempts", { ...attempt, ...open, ...never }, archived + 1, sent);
    copy("items", { ...unsent, state: "'planned'" }, sent + 1, all);
    for (const { sql } of triggers) db.exec(sql);
    db.exec(`DELETE FROM run_states; DELETE FROM run_groups; DELETE FROM run_spending;
      INSERT INTO run_states SELECT run_id, state, count(*) FROM items GROUP BY run_id, state;
      INSERT INTO run_groups SELECT run_id, price_group, priority, price, model, category, sum(state = 'planned'), price
        FROM items GROUP BY run_id, price_group, priority, price;
      INSERT INTO run_spending SELECT 1, 'plain-image', sum(closed * charged), sum(NOT closed) * price, 0, 0, sum(NOT closed)
        FROM attempts;
      UPDATE runs SET state = 'interrupted', exit = 'interrupted'`);
  })();
  db.pragma("wal_checkpoint(TRUNCATE)");
  db.close();
}

function fillSpendLog(path, state) {
  const db = new Sqlite(path);
  db.pragma("synchronous = OFF");
  db.exec(`ATTACH '${state}' AS state`);
  const columns = db.prepare("SELECT name FROM pragma_table_info('spend_log')").pluck().all();
  const isSent = (value, other) => `CASE WHEN a.outcome IS NULL THEN ${other} ELSE ${value} END`;
  const change = {
    ...{ id: "a.spend_log_id", item_key: "i.key", task_id: "a.task_id", intended_seq: "9 + a.id" },
    ...Object.fromEntries(
      ["ended_seq", "ended_at", "outcome", "charged", "task", "task_ended_at", "polled_at"].map((name) => [
        name,
        isSent(`t.${name}`, "NULL"),
      ]),
    ),
  };
  db.exec(`INSERT INTO spend_log (${columns}) SELECT ${columns.map((name) => change[name] ?? `t.${name}`)}
    FROM state.attempts a JOIN state.items i ON i.id = a.item_id, (SELECT * FROM spend_log ORDER BY id LIMIT 1) t
    WHERE a.id > 2;
    UPDATE sequence SET last = last + (SELECT count(*) FROM spend_log);
    -- What came after the last reading of the counters is judged one by one.
    UPDATE readings SET seq = max(seq, (SELECT last FROM sequence) - 1000) WHERE id = (SELECT max(id) FROM readings)`);
  db.close();
}

/** Writes the lines of the first item of a file again for other numbers: each line to a last number of its own. */
function repeatLines(path, lasts, change) {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const mine = lines.filter(({ key }) => key === lines[0].key);
  const descriptor = openSync(path, "a");
  let text = "";
  for (let n = 3; n <= lasts[0]; n++) {
    for (const [at, line] of mine.entries())
      if (n <= lasts[at]) text += `${JSON.stringify(change(line, n))}\n`;
    if (text.length < 1_000_000 && n < lasts[0]) continue;
    writeSync(descriptor, text);
    text = "";
  }
  closeSync(descriptor);
}
