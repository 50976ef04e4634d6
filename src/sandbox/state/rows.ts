import type { PlanName } from "../../api/plans.js";
import type { Category } from "../../api/records.js";
import type { AccountRecord, KeyRecord, SubscriptionStatus, TaskRecord } from "./state.js";

/** The tables' rows as SQLite gives them, and the records made of them. */

export interface SandboxKeyRow {
  id: string;
  account_id: string;
  name: string;
  revoked_at: number | null;
  requests_count: number;
  used_micro: number;
}

export function keyFromRow(row: SandboxKeyRow): KeyRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    revokedAt: row.revoked_at,
    requestsCount: row.requests_count,
    usedMicro: row.used_micro,
  };
}

export interface SandboxAccountRow {
  id: string;
  email: string;
  name: string | null;
  balance_micro: number;
  subscription_status: SubscriptionStatus | null;
  plan: PlanName;
  credits_per_month: number;
  billing_interval: "month" | "year";
  period_end: number;
  cancel_at_period_end: number;
  admitted: number;
}

export function accountFromRow(row: SandboxAccountRow): AccountRecord {
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    balanceMicro: row.balance_micro,
    subscriptionStatus: row.subscription_status,
    plan: row.plan,
    creditsPerMonth: row.credits_per_month,
    billingInterval: row.billing_interval,
    periodEnd: row.period_end,
    cancelAtPeriodEnd: row.cancel_at_period_end === 1,
    admitted: row.admitted,
  };
}

export interface TaskRow {
  id: string;
  external_id: string;
  account_id: string;
  key_id: string;
  model: string;
  category: Category;
  input: string;
  cost_micro: number;
  created_at: number;
  due_at: number;
  outcome: "completed" | "failed" | null;
  error: string | null;
  seen_final: number;
  refunded: number;
  outputs: string;
  gone_at: number | null;
}

export function taskFromRow(row: TaskRow): TaskRecord {
  return {
    id: row.id,
    externalId: row.external_id,
    accountId: row.account_id,
    keyId: row.key_id,
    model: row.model,
    category: row.category,
    input: JSON.parse(row.input) as Record<string, string>,
    costMicro: row.cost_micro,
    createdAt: row.created_at,
    dueAt: row.due_at,
    outcome: row.outcome,
    error: row.error,
    seenFinal: row.seen_final === 1,
    refunded: row.refunded === 1,
    outputs: JSON.parse(row.outputs) as string[],
    goneAt: row.gone_at,
  };
}
