import type { PlanName } from "../../api/plans.js";
import type { Category } from "../../api/records.js";
import type { Sqlite } from "../../sqlite.js";
import type { AccountRecord, KeyRecord, SubscriptionStatus, TaskRecord } from "./state.js";

/** Upgrades a state file to the current schema without losing data. */
export function prepareTables(db: Sqlite): void {
  db.exec(schema);
  const columns = db.pragma("table_info(tasks)") as { name: string }[];
  if (!columns.some((column) => column.name === "gone_at")) {
    db.exec("alter table tasks add column gone_at integer");
  }
}

/** The sandbox's tables: everything in it is `if not exists`. */
const schema = `
create table if not exists settings (
  name text primary key, value text not null
) strict, without rowid;

create table if not exists accounts (
  id text primary key, email text not null, name text,
  balance_micro integer not null check (balance_micro >= 0),
  subscription_status text check (subscription_status in ('active', 'canceled', 'past_due')),
  plan text not null, credits_per_month integer not null,
  billing_interval text not null check (billing_interval in ('month', 'year')),
  period_end integer not null, cancel_at_period_end integer not null,
  admitted integer not null default 0
) strict, without rowid;

create table if not exists keys (
  id text primary key, account_id text not null references accounts(id), hash text not null unique,
  name text not null, created_at integer not null, revoked_at integer,
  requests_count integer not null default 0, used_micro integer not null default 0
) strict, without rowid;

create table if not exists admissions (
  account_id text not null, n integer not null, at integer not null, primary key (account_id, n)
) strict, without rowid;

create table if not exists buckets (
  account_id text not null, window text not null, tokens real not null, at integer not null,
  primary key (account_id, window)
) strict, without rowid;

create table if not exists tasks (
  id text primary key, external_id text not null,
  account_id text not null references accounts(id), key_id text not null references keys(id),
  model text not null, category text not null, input text not null, cost_micro integer not null,
  created_at integer not null, due_at integer not null,
  outcome text check (outcome in ('completed', 'failed')), error text,
  seen_final integer not null default 0, refunded integer not null default 0, outputs text not null,
  gone_at integer
) strict;

create index if not exists tasks_to_refund on tasks (account_id, due_at) where outcome = 'failed' and refunded = 0;
create index if not exists tasks_undecided on tasks (created_at) where outcome is null;

create table if not exists blobs (
  sha256 text primary key, bytes blob not null
) strict;

create table if not exists task_inputs (
  task_id text not null references tasks(id), field text not null, sha256 text not null references blobs(sha256),
  primary key (task_id, field)
) strict, without rowid;
`;

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
