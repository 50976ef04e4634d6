/**
 * What can go wrong inside the service itself, as opposed to on the way there and back. The world obeys such a fault
 * as it obeys a request, so a simulation needs no socket to have it.
 */
export type WorldFault =
  /** 429 although the plan's limit is not reached. */
  | { kind: "spurious-429" }
  /** 500 INTERNAL_ERROR, before anything is looked at. */
  | { kind: "internal-error" }
  /** 500 GENERATION_ERROR to a generate that was in order; charged or not as the switches say. */
  | { kind: "generation-error" }
  /** The task will fail with this error. */
  | { kind: "task-fails"; error: string }
  /** The task stays `processing` for good. */
  | { kind: "task-never-finishes" }
  /** The task answers 404 from so long after its creation. */
  | { kind: "task-vanishes"; afterMs: number };
