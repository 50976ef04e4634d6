import type { RecordReading } from "./reading.js";
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

/** Where a service that announces it takes files as inputs. */
export const inputsPath = "/api/v1/inputs";

/** The address of an input that was put there; null if the answer has none. */
export function readInput(body: unknown): RecordReading<{ url: string; until: number | null }> | null {
  const { url, expires_at: expires } = asRecord(body);
  if (typeof url !== "string" || !URL.canParse(url)) return null;
  const until = typeof expires === "string" ? Date.parse(expires) : Number.NaN;
  return { record: { url, until: Number.isNaN(until) ? null : until }, odd: [] };
}
