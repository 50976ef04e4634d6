import type { AccountAnswer, ShownTask } from "../../api/service-page.js";
import type { Desk } from "../admin/accounts.js";
import { type TaskRow, taskColumns, taskOf } from "../state/rows.js";
import type { TaskRecord } from "../state/state.js";
import { fromMicro } from "../state/state.js";
import { isFinal } from "../world/present.js";
import { signedPath } from "../world/signing.js";

const tasksOnPage = 12;
/** Preview URLs are valid for one to two hours, and the same until the hour ends: what is playing goes on when the page asks again. */
const previewMs = 60 * 60 * 1_000;

/**
 * A page of an account's tasks, the newest first, from those made before the row `before`. It walks the table from its
 * end, so it costs the same however many tasks there are.
 */
export function recentTasks(
  { state, clock }: Desk,
  accountId: string,
  before: number | null,
): Pick<AccountAnswer, "tasks" | "older"> {
  const now = clock.now();
  const rows = state.db
    .prepare<[string, number, number, number]>(
      `select rowid as number, ${taskColumns} from tasks
       where account_id = ? and rowid < ? and (gone_at is null or gone_at > ?) order by rowid desc limit ?`,
    )
    .all(accountId, before ?? Number.MAX_SAFE_INTEGER, now, tasksOnPage + 1) as (TaskRow & {
    number: number;
  })[];
  const page = rows.slice(0, tasksOnPage);
  const secret = state.setting("signing secret") ?? "";
  return {
    tasks: page.map((row) => shown(taskOf(row), secret, now)),
    older: rows.length > page.length ? (page.at(-1)?.number ?? null) : null,
  };
}

function shown(task: TaskRecord, secret: string, now: number): ShownTask {
  const { id, model, category, createdAt } = task;
  const status = (isFinal(task, now) && task.outcome) || "processing";
  const { prompt = null, ...params } = task.input;
  const expires = (Math.floor(now / previewMs) + 2) * previewMs;
  const path = (extension: string, index: number) =>
    signedPath(secret, { taskId: id, number: index + 1, extension }, expires);
  return {
    id,
    model,
    category,
    createdAt,
    status,
    prompt,
    params: Object.entries(params),
    error: status === "failed" ? task.error : null,
    outputs: status === "completed" ? task.outputs.map(path) : [],
    credits: status === "failed" ? 0 : fromMicro(task.costMicro),
  };
}
