import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { KeyListing } from "../../../api/service-page.js";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { SandboxAccountFlags, SandboxKeyFlags, StateFlags } from "../../../options/sandbox.js";
import {
  type AccountChange,
  AdminProblem,
  changeAccount,
  createAccount,
  type Desk,
  findAccount,
  listAccounts,
  openDesk,
} from "../../../service/admin/accounts.js";
import { createKey, listKeys, revokeKey } from "../../../service/admin/keys.js";
import type { AccountRecord } from "../../../service/state/state.js";
import { fromMicro } from "../../../service/state/state.js";
import { labelled, table } from "../../../text/table.js";
import type { TerminalStyle } from "../../../text/terminal-style.js";
import { print } from "../../output/print.js";
import { workspaceOf } from "../../settings/workspace.js";
import type { Call } from "../call.js";

/** State that is not saved. */
export const memory = ":memory:";

/** The state file that the flags name. */
export function stateFile({ state, ...place }: StateFlags, machine: Machine): string {
  if (state === memory) return memory;
  if (state !== undefined) return resolve(machine.cwd, state);
  return workspaceOf({ ...place, sandbox: true }, machine).serviceFile;
}

/**
 * Opens the state for administration, whether it is being served or not, and closes it afterwards. Creates it only with
 * `create`. Throws EarlyExit.
 */
export function administer<Result>(
  flags: StateFlags,
  machine: Machine,
  create: boolean,
  use: (desk: Desk) => Result,
): Result {
  const file = stateFile(flags, machine);
  if (file === memory) {
    throw new EarlyExit(
      "usage",
      "--state: state in memory cannot be changed from here. Use the sandbox's dashboard.",
    );
  }
  if (!create && !existsSync(file)) {
    throw new EarlyExit(
      "usage",
      `there is no sandbox state ${file}. Choose another with --state, or create it with bulkgen sandbox.`,
    );
  }
  const { clock, random } = machine;
  const desk = openDesk({ file, clock, random });
  try {
    return use(desk);
  } catch (error) {
    if (error instanceof AdminProblem) throw new EarlyExit("usage", error.message);
    throw error;
  } finally {
    desk.close();
  }
}

export async function changeSandboxAccount({
  flags,
  machine,
}: Call<SandboxAccountFlags>): Promise<undefined> {
  const change = changeOf(flags);
  const accounts = administer(flags, machine, flags.create !== undefined, (desk) => {
    if (flags.create !== undefined) return [createAccount(desk, flags.create, change)];
    if (flags.all) return listAccounts(desk);
    return [changeAccount(desk, findAccount(desk, flags.user).id, change)];
  });
  const shown = accounts.map(view);
  const [first] = shown;
  const text = (style: TerminalStyle) =>
    accounts.map((each) => accountText(each, machine.clock.now(), style)).join("\n\n");
  if (flags.all || first === undefined) print(flags, machine, "sandbox-accounts", shown, text);
  else print(flags, machine, "sandbox-account", first, text);
}

function changeOf(flags: SandboxAccountFlags): AccountChange {
  const { name, plan, credits, subscription, billingInterval, cancelAtPeriodEnd, periodEnd } = flags;
  const change = { name, plan, credits, subscription, billingInterval, cancelAtPeriodEnd, periodEnd };
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}

/** An account in the service's own words. */
function view(account: AccountRecord) {
  return {
    user: { id: account.id, email: account.email, name: account.name },
    credits: { balance: fromMicro(account.balanceMicro) },
    subscription: account.subscriptionStatus && {
      status: account.subscriptionStatus,
      plan: account.plan,
      credits_per_month: account.creditsPerMonth,
      billing_interval: account.billingInterval,
      current_period_end: new Date(account.periodEnd).toISOString(),
      cancel_at_period_end: account.cancelAtPeriodEnd,
    },
  };
}

function periodText(account: AccountRecord, now: number): string {
  const { periodEnd, billingInterval, cancelAtPeriodEnd, subscriptionStatus: status } = account;
  const verb =
    status === "canceled" || cancelAtPeriodEnd
      ? "ends"
      : billingInterval === "year"
        ? "renews yearly, next on"
        : "renews";
  return `${now < periodEnd ? verb : "ended"} ${new Date(periodEnd).toISOString().slice(0, 10)}`;
}

function accountText(account: AccountRecord, now: number, style: TerminalStyle): string {
  const { user, credits, subscription } = view(account);
  return labelled(
    [
      ["user", [user.name ?? "", `<${user.email}>`].filter(Boolean).join(" ")],
      ["credits", credits.balance],
      ["plan", account.plan],
      ["subscription", subscription ? `${subscription.status}, ${periodText(account, now)}` : "none"],
    ],
    style,
  );
}

export async function createSandboxKey({
  flags,
  args,
  machine,
}: Call<SandboxKeyFlags, { name: string }>): Promise<undefined> {
  const { made, email } = administer(flags, machine, true, (desk) => {
    const { id, email } = findAccount(desk, flags.user);
    return { made: createKey(desk, id, args.name), email };
  });
  const { id, value } = made;
  if (!flags.json)
    machine.stderr.write(`key ${JSON.stringify(made.name)} of ${email}; it is shown only this once:\n`);
  print(flags, machine, "sandbox-new-key", { id, name: made.name, key: value, user: email }, () => value);
}

export async function listSandboxKeys({ flags, machine }: Call<SandboxKeyFlags>): Promise<undefined> {
  const keys = administer(flags, machine, false, (desk) => listKeys(desk, findAccount(desk, flags.user).id));
  print(flags, machine, "sandbox-keys", keys.map(listed), (style) => keysText(keys, style));
}

export async function revokeSandboxKey({
  flags,
  args,
  machine,
}: Call<SandboxKeyFlags, { key: string }>): Promise<undefined> {
  const revoked = administer(flags, machine, false, (desk) =>
    revokeKey(desk, findAccount(desk, flags.user).id, args.key),
  );
  print(
    flags,
    machine,
    "sandbox-key",
    listed(revoked),
    () => `revoked ${JSON.stringify(revoked.name)} (${revoked.id})`,
  );
}

/** A key in the service's own words. */
function listed(key: KeyListing) {
  return {
    id: key.id,
    name: key.name,
    created_at: new Date(key.createdAt).toISOString(),
    revoked_at: key.revokedAt === null ? null : new Date(key.revokedAt).toISOString(),
    requests_count: key.requestsCount,
    credits_used: key.used,
    public: key.isPublic,
  };
}

function keysText(keys: readonly KeyListing[], style: TerminalStyle): string {
  const columns = [
    { title: "name", flexible: true },
    { title: "id" },
    { title: "created" },
    { title: "requests", align: "right" as const },
    { title: "credits used", align: "right" as const },
    { title: "" },
  ];
  const rows = keys.map((key) => {
    const { name, id, created_at, requests_count, credits_used } = listed(key);
    const status = key.revokedAt === null ? (key.isPublic ? "public" : "") : "revoked";
    return [name, id, created_at.slice(0, 16).replace("T", " "), requests_count, credits_used, status];
  });
  return table(columns, rows, style);
}
