import type { Machine } from "../../../machine.js";
import {
  type AccountChange,
  changeAccount,
  createAccount,
  findAccount,
  listAccounts,
} from "../../../sandbox/admin/accounts.js";
import type { AccountRecord } from "../../../sandbox/state/state.js";
import { fromMicro } from "../../../sandbox/state/state.js";
import { labelled, terminalStyle } from "../../../text/table.js";
import type { SandboxAccountFlags } from "../../flags/sandbox.js";
import type { Call } from "../call.js";
import { administer } from "./state.js";

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
  if (flags.json) {
    const shown = accounts.map(view);
    machine.stdout.write(`${JSON.stringify(flags.all ? shown : shown[0])}\n`);
    return;
  }
  machine.stdout.write(`${accounts.map((each) => accountText(each, machine)).join("\n\n")}\n`);
}

function changeOf(flags: SandboxAccountFlags): AccountChange {
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

function accountText(account: AccountRecord, { stdout, env }: Machine): string {
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
    terminalStyle(stdout, env),
  );
}
