import type { Me } from "./records.js";
import { asRecord } from "./values.js";

/** What a service can do beyond its page, as its record of GET me announces it. A service that announces nothing has nothing. */
export interface Announced {
  /** For how long a request that is repeated with the same `Idempotency-Key` gets the same task (ms); 0 if it does not. */
  repeatsMs: number;
  /** Whether `PUT /api/v1/inputs` takes files as inputs. */
  inputs: boolean;
  /** Whether `POST /api/v1/task/:id/cancel` stops a task. */
  cancel: boolean;
}

export const nothingAnnounced: Announced = { repeatsMs: 0, inputs: false, cancel: false };

/** What is not understood is not announced. */
export function announcedIn(me: Me): Announced {
  const { idempotency_ms: ms, inputs, cancel } = asRecord(me["service"]);
  return {
    repeatsMs: typeof ms === "number" && Number.isFinite(ms) && ms > 0 ? ms : 0,
    inputs: inputs === true,
    cancel: cancel === true,
  };
}
