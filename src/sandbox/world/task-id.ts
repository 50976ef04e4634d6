import type { Random } from "../../clock.js";

/**
 * The id of a new task: a version 7 UUID (RFC 9562), which begins with the instant. Ids that grow with time go to the
 * end of the index of tasks; purely random ones would each dirty a page of their own.
 */
export function newTaskId(random: Random, now: number): string {
  const time = Math.max(0, now).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.uuid().slice(15)}`;
}
