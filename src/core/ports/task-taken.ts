/**
 * A task is of one request. An answer that names the task of an earlier one is not its own: something between here and
 * the service has repeated what it answered before.
 */
export class TaskTaken extends Error {
  override readonly name = "TaskTaken";
  constructor(
    readonly taskId: string,
    /** The row id of the item whose request led to it. */
    readonly owner: string,
  ) {
    super(`expected a task of its own, got ${taskId}, which is that of an earlier request (${owner})`);
  }
}
