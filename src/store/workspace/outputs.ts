import type { Credits } from "../../core/money.js";
import type { Attempt } from "../../core/ports/attempt.js";
import type { ArchivedOutput, MadeItem, ModelSize } from "../../core/ports/store.js";
import { selectAttempts } from "./attempts/attempts.js";
import { absolutePath } from "./own-paths.js";
import { asItem, type ItemRow, itemColumns, type RootedDatabase } from "./transition.js";

/** How many outputs are read at a time. */
const pageOutputs = 1_000;

/** The workspace's archived outputs. */
const select = `
  SELECT ${itemColumns}, 1 AS attempted, o.number, o.file, o.bucket, o.bytes, o.sha256, o.mime, o.checked AS "check",
    o.saved_at AS savedAt, coalesce(a.task_id, '') AS taskId, a.external_task_id AS externalTaskId, a.charged,
    a.created_at AS createdAt, a.completed_at AS completedAt, j.name AS jobName, o.out_folder AS outFolder, r.id AS paidIn
  FROM outputs o JOIN items ON items.id = o.item_id JOIN jobs j ON j.id = items.job_id
  -- What was made elsewhere has no task of its own.
  LEFT JOIN attempts a ON a.item_id = items.id AND o.url <> '' AND a.task_id IS NOT NULL
    AND a.number = (SELECT max(number) FROM attempts WHERE item_id = items.id AND task_id IS NOT NULL)
  JOIN runs r ON r.id = coalesce(a.run_id, items.run_id, (SELECT max(id) FROM runs WHERE job_id = items.job_id))
  WHERE o.file IS NOT NULL AND (CAST(@job AS INTEGER) IS NULL OR items.job_id = @job)
    AND (o.item_id, o.number) > (CAST(@item AS INTEGER), CAST(@number AS INTEGER))
  ORDER BY o.item_id, o.number LIMIT ${pageOutputs}`;

type ArchivedRow = ItemRow & Omit<ArchivedOutput, "item">;

const sizes = `
  SELECT i.model, i.category, count(DISTINCT i.id) AS items, count(*) AS files, sum(o.bytes) AS bytes
  FROM outputs o JOIN items i ON i.id = o.item_id WHERE o.file IS NOT NULL GROUP BY i.model, i.category`;

const itemsOfKeys = `
  SELECT ${itemColumns}, EXISTS (SELECT 1 FROM attempts WHERE item_id = items.id) AS attempted
  FROM items WHERE job_id = @jobId AND key IN (SELECT value FROM json_each(@keys))`;
const areNamed = "item_id IN (SELECT CAST(value AS INTEGER) FROM json_each(@ids))";
const filesOfItems = `
  SELECT item_id AS itemId, number, file, bytes, sha256, mime, bucket, out_folder AS outFolder FROM outputs WHERE ${areNamed} AND file IS NOT NULL
  ORDER BY item_id, number`;
const attemptsOfItems = `${selectAttempts} WHERE ${areNamed} ORDER BY item_id, number`;

/** An export lists what an item's newest attempt was charged. */
const chargedOfEdition = `
  SELECT coalesce(sum(attempts.charged), 0) FROM attempts JOIN items ON items.id = attempts.item_id
  WHERE items.job_id = @jobId AND items.edition = @edition
    AND attempts.number = (SELECT max(number) FROM attempts newest WHERE newest.item_id = items.id)`;

type FileRow = MadeItem["files"][number] & { itemId: number };

export function archivedMethods({ sql, read, root }: RootedDatabase) {
  return {
    /** The job's items with these keys, if they exist, with their outputs; in no order. */
    // Read in one transaction, so that the state of an item agrees with its files and attempts.
    made: (jobId: number, keys: readonly string[]): Promise<MadeItem[]> =>
      read(function* () {
        const rows = (yield* sql(itemsOfKeys).all({ jobId, keys: JSON.stringify(keys) })) as ItemRow[];
        const ids = JSON.stringify(rows.map(({ id }) => id));
        const fileRows = (yield* sql(filesOfItems).all({ ids })) as FileRow[];
        const files = byItem(
          fileRows.map((file) => ({ ...file, outFolder: absolutePath(root, file.outFolder) })),
        );
        const attempts = byItem((yield* sql(attemptsOfItems).all({ ids })) as Attempt[]);
        return rows.map((row) => ({
          item: asItem(row),
          files: row.state === "archived" ? (files.get(row.id) ?? []) : [],
          attempts: attempts.get(row.id) ?? [],
        }));
      }),

    /** What the newest attempts of all items that an edition of a job ever had were charged. */
    chargedOf: (jobId: number, edition: string): Promise<Credits> =>
      read(function* () {
        return (yield* sql(chargedOfEdition).value({ jobId, edition })) as Credits;
      }),

    /** The highest number of a variant in the job; 1 if nothing was redone. */
    variantsMax: (jobId: number): Promise<number> =>
      read(function* () {
        const sum = "SELECT coalesce(max(variant), 1) FROM items WHERE job_id = ?";
        return (yield* sql(sum).value(jobId)) as number;
      }),

    /** The files in the archive summed up by model. */
    archivedSizes: (): Promise<ModelSize[]> =>
      read(function* () {
        return (yield* sql(sizes).all()) as ModelSize[];
      }),

    /** Every archived output, of one job or of all, from the oldest item to the newest and page by page. */
    async *archived(jobId?: number): AsyncIterable<readonly ArchivedOutput[]> {
      let last = { item: 0, number: 0 };
      for (;;) {
        const after = { job: jobId ?? null, ...last };
        const page = await read(function* () {
          return ((yield* sql(select).all(after)) as ArchivedRow[]).map((row) => asOutput(row, root));
        });
        const end = page.at(-1);
        if (end === undefined) return;
        yield page;
        last = { item: end.item.id, number: end.number };
      }
    },
  };
}

function byItem<Row extends { itemId: number }>(rows: readonly Row[]): Map<number, Row[]> {
  const found = new Map<number, Row[]>();
  for (const row of rows) {
    const others = found.get(row.itemId);
    if (others) others.push(row);
    else found.set(row.itemId, [row]);
  }
  return found;
}

function asOutput(row: ArchivedRow, root: string): ArchivedOutput {
  const { number, file, bucket, bytes, sha256, mime, check, savedAt, taskId, externalTaskId, ...rest } = row;
  const { charged, createdAt, completedAt, jobName, outFolder, paidIn, ...item } = rest;
  const output = {
    number,
    file,
    bucket: bucket ?? null,
    bytes,
    sha256,
    mime,
    check,
    savedAt,
    taskId,
    externalTaskId,
    charged,
  };
  const task = { createdAt, completedAt, jobName, outFolder: absolutePath(root, outFolder), paidIn };
  return { item: asItem(item), ...output, ...task };
}
