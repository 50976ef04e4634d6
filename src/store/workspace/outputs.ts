import type { Credits } from "../../core/money.js";
import type { ArchivedOutput, ModelSize, Store } from "../../core/ports/store.js";
import { toldPath } from "./own-paths.js";
import { asItem, type ItemRow, type RootedDatabase } from "./transition.js";

/** The workspace's archived outputs. The folder is that of the run that paid: a later run may have another one. */
const select = `
  SELECT i.*, 1 AS attempted, o.number, o.file, o.bytes, o.sha256, o.mime, o.checked, o.saved_at, coalesce(a.task_id, '') AS task_id,
    a.external_task_id, a.charged, a.created_at, a.completed_at, j.name AS job_name, r.out_folder, r.id AS paid_in
  FROM outputs o JOIN items i ON i.id = o.item_id JOIN jobs j ON j.id = i.job_id
  -- What was made elsewhere has no task of its own.
  LEFT JOIN attempts a ON a.item_id = i.id AND o.url <> '' AND a.task_id IS NOT NULL
    AND a.number = (SELECT max(number) FROM attempts WHERE item_id = i.id AND task_id IS NOT NULL)
  JOIN runs r ON r.id = coalesce(a.run_id, i.run_id, (SELECT max(id) FROM runs WHERE job_id = i.job_id))
  WHERE o.file IS NOT NULL AND (@job IS NULL OR i.job_id = @job) ORDER BY i.job_id, i.position, i.id, o.number`;

interface ArchivedRow extends ItemRow {
  number: number;
  file: string;
  bytes: number;
  sha256: string;
  mime: string;
  checked: string;
  saved_at: number;
  task_id: string;
  external_task_id: string | null;
  charged: number | null;
  created_at: string | null;
  completed_at: string | null;
  job_name: string;
  out_folder: string;
  paid_in: number;
}

const sizes = `
  SELECT i.model, i.category, count(DISTINCT i.id) AS items, count(*) AS files, sum(o.bytes) AS bytes
  FROM outputs o JOIN items i ON i.id = o.item_id WHERE o.file IS NOT NULL GROUP BY i.model, i.category`;

export function archivedMethods({ sql, root }: RootedDatabase): Pick<Store, "archived" | "archivedSizes"> {
  return {
    archivedSizes: async () => sql(sizes).all() as ModelSize[],

    archived: async (jobId) =>
      (sql(select).all({ job: jobId ?? null }) as ArchivedRow[]).map((row) => asOutput(row, root)),
  };
}

function asOutput(row: ArchivedRow, root: string): ArchivedOutput {
  return {
    item: asItem(row),
    number: row.number,
    file: row.file,
    bytes: row.bytes,
    sha256: row.sha256,
    mime: row.mime,
    check: row.checked,
    savedAt: row.saved_at,
    taskId: row.task_id,
    externalTaskId: row.external_task_id,
    charged: row.charged as Credits | null,
    createdAt: row.created_at,
    completedAt: row.completed_at,
    jobName: row.job_name,
    outFolder: toldPath(root, row.out_folder),
    paidIn: row.paid_in,
  };
}
