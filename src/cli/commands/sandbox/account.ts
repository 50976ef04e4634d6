import { type Command, InvalidArgumentError } from "commander";
import { type PlanName, plans, subscriptionStatuses } from "../../../api/plans.js";
import type { AccountChange } from "../../../sandbox/admin/accounts.js";
import { fromMicro } from "../../../sandbox/state/credits.js";
import type { AccountRecord } from "../../../sandbox/state/state.js";
import { terminalStyle } from "../../../text/table.js";
import { amount, oneOf } from "../../flags/values.js";
import { administer, type StateFlags, withState } from "./state.js";

interface Flags extends StateFlags {
  user?: string;
  create?: string;
  all?: boolean;
  json?: boolean;
  name?: string;
  plan?: PlanName;
  credits?: number;
  subscription?: NonNullable<AccountChange["subscription"]>;
  cancelAtPeriodEnd?: boolean;
  periodEnd?: number;
}

/** Adds `sandbox account`. */
export function defineSandboxAccount(sandbox: Command): void {
  const subscriptions = [...subscriptionStatuses, "none"] as const;
  withState(sandbox.command("account"))
    .description("show or change an account of a sandbox, also while it is being served")
    .option("--user <email>", "whose account (default: the sandbox's own user)")
    .option("--create <email>", "make an account for another user")
    .option("--name <name>", "the user's full name")
    .option("--plan <plan>", plans.join(", "), oneOf(...plans))
    .option("--credits <n>", "the new balance", amount)
    .option("--subscription <status>", subscriptions.join(", "), oneOf(...subscriptions))
    .option("--cancel-at-period-end", "the subscription ends with its period")
    .option("--no-cancel-at-period-end", "the subscription goes on")
    .option("--period-end <date>", "when the present period ends, such as 2026-12-31", instant)
    .option("--all", "show the accounts of all users")
    .option("--json", "one JSON document on stdout")
    .action((_: Flags, command: Command) => account(command.optsWithGlobals<Flags>()));
}

async function account(flags: Flags): Promise<void> {
  const { changeAccount, createAccount, findAccount, listAccounts } = await import(
    "../../../sandbox/admin/accounts.js"
  );
  const change = changeOf(flags);
  const accounts = await administer(flags, flags.create !== undefined, (desk) => {
    if (flags.create !== undefined) return [createAccount(desk, flags.create, change)];
    if (flags.all) return listAccounts(desk);
    return [changeAccount(desk, findAccount(desk, flags.user).id, change)];
  });
  if (flags.json) {
    const shown = accounts.map(view);
    process.stdout.write(`${JSON.stringify(flags.all ? shown : shown[0])}\n`);
    return;
  }
  const texts = await Promise.all(accounts.map(accountText));
  process.stdout.write(`${texts.join("\n\n")}\n`);
}

function changeOf(flags: Flags): AccountChange {
  const { name, plan, credits, subscription, cancelAtPeriodEnd, periodEnd } = flags;
  const named = Object.entries({ name, plan, credits, subscription, cancelAtPeriodEnd, periodEnd });
  return Object.fromEntries(named.filter(([, value]) => value !== undefined));
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

async function accountText(account: AccountRecord): Promise<string> {
  const { labelled } = await import("../../../text/table.js");
  const { user, credits, subscription } = view(account);
  const end = subscription?.current_period_end.slice(0, 10);
  const ends = subscription?.cancel_at_period_end || subscription?.status === "canceled";
  return labelled(
    [
      ["user", [user.name ?? "", `<${user.email}>`].filter(Boolean).join(" ")],
      ["credits", credits.balance],
      ["plan", account.plan],
      ["subscription", subscription ? `${subscription.status}, ${ends ? "ends" : "renews"} ${end}` : "none"],
    ],
    terminalStyle(process.stdout, process.env),
  );
}

function instant(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) {
    throw new InvalidArgumentError(`expected a date such as 2026-12-31, got ${JSON.stringify(text)}.`);
  }
  return ms;
}
