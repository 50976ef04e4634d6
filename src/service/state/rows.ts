import type { AccountRecord, TaskRecord } from "./state.js";

/** The sandbox's tables: everything in it is `if not exists`. */
export const schema = `
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

create table if not exists repeat_keys (
  account_id text not null, repeat_key text not null, task_id text not null, sha256 text not null, at integer not null,
  primary key (account_id, repeat_key)
) strict, without rowid;
create index if not exists repeat_keys_by_age on repeat_keys (at);

create table if not exists blobs (
  sha256 text primary key, bytes blob not null
) strict;

create table if not exists alike_requests (
  sha256 text primary key, number integer not null
) strict, without rowid;
create table if not exists retakes (
  task_id text primary key references tasks(id), number integer not null
) strict, without rowid;

create table if not exists task_inputs (
  task_id text not null references tasks(id), field text not null, sha256 text not null references blobs(sha256),
  primary key (task_id, field)
) strict, without rowid;
`;

/** The columns under the names of the records; SQLite has no booleans and no objects, which are made below. */

/** A row of these is a KeyRecord. */
export const keyColumns =
  "id, account_id as accountId, name, revoked_at as revokedAt, requests_count as requestsCount, used_micro as usedMicro";

export const accountColumns = `id, email, name, balance_micro as balanceMicro, subscription_status as subscriptionStatus,
  plan, credits_per_month as creditsPerMonth, billing_interval as billingInterval, period_end as periodEnd,
  cancel_at_period_end as cancelAtPeriodEnd, admitted`;

export type ServiceAccountRow = Omit<AccountRecord, "cancelAtPeriodEnd"> & { cancelAtPeriodEnd: number };

export function accountOf(row: ServiceAccountRow): AccountRecord {
  return { ...row, cancelAtPeriodEnd: row.cancelAtPeriodEnd === 1 };
}

export const taskColumns = `id, external_id as externalId, account_id as accountId, key_id as keyId, model, category, input,
  cost_micro as costMicro, created_at as createdAt, due_at as dueAt, outcome, error, seen_final as seenFinal, refunded,
  outputs, gone_at as goneAt`;

export type TaskRow = Omit<TaskRecord, "input" | "seenFinal" | "refunded" | "outputs"> & {
  input: string;
  seenFinal: number;
  refunded: number;
  outputs: string;
};

export function taskOf(row: TaskRow): TaskRecord {
  return {
    ...row,
    input: JSON.parse(row.input) as Record<string, string>,
    seenFinal: row.seenFinal === 1,
    refunded: row.refunded === 1,
    outputs: JSON.parse(row.outputs) as string[],
  };
}
