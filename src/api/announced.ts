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
  /** Who does its jobs, if it says so. */
  providers: readonly AnnouncedProvider[];
  /** What the key may still spend in a day or a month, if that is less than its account has; null if it says nothing of it. */
  budget: AnnouncedBudget | null;
}

/** Amounts are credits. */
export interface AnnouncedBudget {
  left: number;
  of: number;
  per: "day" | "month";
  /** When the next day or month begins (UTC ms). */
  renewsAt: number;
}

/** A provider does its jobs in the order in which they come, so many at once; several models may share it. */
export interface AnnouncedProvider {
  atOnce: number;
  /** How long what it has to do already will take (ms); null if nobody knows. */
  aheadMs: number | null;
  /** How long a job of each of its models takes (ms); null before the first has ended. */
  usualMs: ReadonlyMap<string, number | null>;
}

export const nothingAnnounced: Announced = {
  repeatsMs: 0,
  inputs: false,
  cancel: false,
  providers: [],
  budget: null,
};

/** What is not understood is not announced. */
export function announcedIn(me: Me): Announced {
  const { idempotency_ms: ms, inputs, cancel, providers, budget } = asRecord(me["service"]);
  return {
    repeatsMs: positive(ms) ?? 0,
    inputs: inputs === true,
    cancel: cancel === true,
    providers: Array.isArray(providers) ? providers.flatMap(providerIn) : [],
    budget: budgetIn(budget),
  };
}

function budgetIn(told: unknown): AnnouncedBudget | null {
  const { left, of, per, renews_at: renews } = asRecord(told);
  const renewsAt = typeof renews === "string" ? Date.parse(renews) : Number.NaN;
  if (!isAmount(left) || !isAmount(of) || (per !== "day" && per !== "month") || Number.isNaN(renewsAt))
    return null;
  return { left, of, per, renewsAt };
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1e9;
}

function providerIn(told: unknown): AnnouncedProvider[] {
  const { at_once: atOnce, ahead_ms: aheadMs, usual_ms: usualMs } = asRecord(told);
  const models = Object.entries(asRecord(usualMs)).map(([model, usual]) => [model, positive(usual)] as const);
  if (typeof atOnce !== "number" || !Number.isSafeInteger(atOnce) || atOnce < 1 || models.length === 0)
    return [];
  return [{ atOnce, aheadMs: aheadMs === 0 ? 0 : positive(aheadMs), usualMs: new Map(models) }];
}

function positive(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : null;
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
