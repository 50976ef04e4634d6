import { createHash } from "node:crypto";
import type { KeptSheet, Sheet, SheetRow } from "../../core/ports/store.js";
import type { Database, Queries, Script } from "../script.js";

const pageOfRows = `
  SELECT position, number, cells, keys, problem FROM sheet_rows WHERE sheet_id = ? AND position > ?
  ORDER BY position LIMIT 1000`;

interface KeptRow {
  position: number;
  number: number;
  cells: string;
  keys: string;
  problem: string | null;
}

/** Sheets as runs read them. An unchanged sheet is stored once for all runs of a job. */
export function sheetMethods({ atomic, read, sql }: Database) {
  return {
    /** Stores the sheet as it was read for this run. A sheet is stored once, however many runs use it. */
    keepSheet: async (runId: number, sheet: Sheet): Promise<void> =>
      atomic(function* () {
        const sha256 = hashOf(sheet);
        const { jobId } = (yield* sql("SELECT job_id AS jobId FROM runs WHERE id = ?").get(runId)) as {
          jobId: number;
        };
        const known = (yield* sql("SELECT id FROM sheets WHERE job_id = ? AND sha256 = ?").get(
          jobId,
          sha256,
        )) as { id: number } | undefined;
        const id = known?.id ?? (yield* put(sql, jobId, sha256, sheet));
        yield* sql("UPDATE runs SET sheet_id = ? WHERE id = ?").run(id, runId);
      }),

    /** The sheet of a run; null if none is stored. */
    async sheetOf(runId: number): Promise<KeptSheet | null> {
      const found = await read(function* () {
        const sheet = (yield* sql(
          "SELECT sheets.id, sheets.columns FROM runs JOIN sheets ON sheets.id = runs.sheet_id WHERE runs.id = ?",
        ).get(runId)) as { id: number; columns: string } | undefined;
        return sheet && { id: sheet.id, columns: JSON.parse(sheet.columns) as KeptSheet["columns"] };
      });
      if (!found) return null;
      const { id, columns } = found;
      return {
        columns,
        async *pages() {
          let last = -1;
          for (;;) {
            const page = await read(function* () {
              const rows = (yield* sql(pageOfRows).all(id, last)) as KeptRow[];
              return { rows: rows.map(asRow), end: rows.at(-1)?.position };
            });
            if (page.end === undefined) return;
            last = page.end;
            yield page.rows;
          }
        },
      };
    },
  };
}

function asRow({ number, cells, keys, problem }: KeptRow): SheetRow {
  return { number, cells: JSON.parse(cells), keys: JSON.parse(keys), problem };
}

function* put(sql: Queries, jobId: number, sha256: string, { columns, rows }: Sheet): Script<number> {
  const id = yield* sql("INSERT INTO sheets (job_id, sha256, columns) VALUES (?, ?, ?)").insert(
    jobId,
    sha256,
    JSON.stringify(columns),
  );
  const insert = sql(
    "INSERT INTO sheet_rows (sheet_id, position, number, cells, keys, problem) VALUES (?, ?, ?, ?, ?, ?)",
  );
  let position = 0;
  for (const { number, cells, keys, problem } of rows)
    yield* insert.run(id, position++, number, JSON.stringify(cells), JSON.stringify(keys), problem);
  return id;
}

function hashOf({ columns, rows }: Sheet): string {
  const hash = createHash("sha256").update(JSON.stringify(columns));
  for (const { number, cells, keys, problem } of rows) {
    hash.update(`\n${JSON.stringify([number, cells, keys, problem])}`);
  }
  return hash.digest("hex");
}
