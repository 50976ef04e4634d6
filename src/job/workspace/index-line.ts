import type { IndexLine } from "../../archive/index-file.js";
import { toNumber } from "../../core/money.js";
import type { ArchivedOutput } from "../../core/ports/store.js";
import { ownVersion } from "../../package-file.js";

/** The line of an output in the index of its folder, as the workspace knows it. */
export function lineOf(output: ArchivedOutput): IndexLine {
  const { item, number, file, bucket, bytes, sha256, mime, check, taskId, externalTaskId, charged } = output;
  const { rowId, key, model, prompt, params, inputs } = item;
  return {
    item: rowId,
    key,
    task: taskId,
    external_task: externalTaskId,
    model,
    prompt,
    params,
    inputs,
    credits: charged === null ? null : toNumber(charged),
    created: output.createdAt,
    completed: output.completedAt,
    output: number,
    file,
    ...(bucket == null ? {} : { bucket }),
    bytes,
    sha256,
    mime,
    check,
    saved: new Date(output.savedAt).toISOString(),
    bulkgen: ownVersion(),
  };
}
