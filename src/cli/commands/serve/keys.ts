import { EarlyExit } from "../../../core/exit.js";
import type { ServeKeyEditFlags, ServeKeyFlags, ServeStateFlags } from "../../../options/serve.js";
import type { KeyWithLeft, ListedKey, ServedKeys } from "../../../serve/keys.js";
import { AdminProblem } from "../../../service/admin/accounts.js";
import { table } from "../../../text/table.js";
import type { TerminalStyle } from "../../../text/terminal-style.js";
import { print } from "../../output/print.js";
import type { Call } from "../call.js";
import { withBooks } from "./state.js";

export async function createServedKey({
  flags,
  args: { name: wished },
  machine,
}: Call<ServeKeyFlags, { name: string }>): Promise<undefined> {
  const { plan, credits = null, creditsPerMonth: perMonth = null, creditsPerDay: perDay = null } = flags;
  const { name, key } = withBooks(flags, machine, { make: true }, ({ keys }) => {
    const name = freeName(keys, wished);
    return { name, key: keys.create({ name, plan, credits, perMonth, perDay }, machine.clock.now()) };
  });
  if (!flags.json) machine.stderr.write(`key ${JSON.stringify(name)}; it is shown only this once:\n`);
  print(flags, machine, "serve-new-key", { name, key }, () => key);
}

function freeName(keys: ServedKeys, wished: string): string {
  try {
    return keys.freeName(wished);
  } catch (error) {
    throw error instanceof AdminProblem ? new EarlyExit("usage", error.message) : error;
  }
}

export async function listServedKeys({ flags, machine }: Call<ServeStateFlags>): Promise<undefined> {
  const keys = withBooks(flags, machine, {}, (books) => books.keys.withLeft(machine.clock.now()));
  const shown = keys.map(listed);
  print(flags, machine, "serve-keys", shown, (style) => keysTable(shown, style));
}

function keysTable(keys: readonly ReturnType<typeof listed>[], style: TerminalStyle): string {
  const columns = [
    { title: "name", flexible: true },
    { title: "plan" },
    { title: "created" },
    { title: "requests", align: "right" as const },
    { title: "used", align: "right" as const },
    { title: "left", align: "right" as const },
    { title: "a month", align: "right" as const },
    { title: "a day", align: "right" as const },
    { title: "" },
  ];
  const rows = keys.map((key) => [
    key.name,
    key.plan,
    key.created_at.slice(0, 10),
    key.requests_count,
    key.credits_used,
    leftText(key),
    key.credits_per_month ?? "no limit",
    key.credits_per_day ?? "no limit",
    key.revoked_at === null ? "" : "revoked",
  ]);
  return table(columns, rows, style);
}

function leftText({ credits_left: left, credits_left_per: per }: ReturnType<typeof listed>): string | number {
  if (left === null) return "no limit";
  return per === null ? left : `${left} ${per === "day" ? "today" : "this month"}`;
}

/** Changes what is given, also while the service runs. */
export async function editServedKey({
  flags,
  args: { key },
  machine,
}: Call<ServeKeyEditFlags, { key: string }>): Promise<undefined> {
  const { plan, credits, creditsPerMonth: perMonth, creditsPerDay: perDay } = flags;
  const change = {
    ...(plan === undefined ? {} : { plan }),
    ...(credits === undefined ? {} : { credits }),
    ...(perMonth === undefined ? {} : { perMonth }),
    ...(perDay === undefined ? {} : { perDay }),
  };
  if (Object.keys(change).length === 0)
    throw new EarlyExit("usage", "expected a change, such as --credits-per-day 50, or none for no limit.");
  const edited = withBooks(flags, machine, {}, ({ keys }) => {
    const { id } = validKey(keys, key);
    keys.edit(id, change);
    return keys.withLeft(machine.clock.now()).filter((known) => known.id === id);
  });
  for (const document of edited.map(listed))
    print(flags, machine, "serve-key", document, (style) => keysTable([document], style));
}

/** Throws EarlyExit if there is none of that name or id. */
function validKey(keys: ServedKeys, named: string): ListedKey {
  const found = keys
    .list()
    .find(({ name, id, revokedAt }) => [name, id].includes(named) && revokedAt === null);
  if (found) return found;
  throw new EarlyExit(
    "usage",
    `there is no valid key ${JSON.stringify(named)}. \`bulkgen serve keys list\` lists them.`,
  );
}

export async function revokeServedKey({
  flags,
  args: { key },
  machine,
}: Call<ServeStateFlags, { key: string }>): Promise<undefined> {
  const { clock } = machine;
  const revoked = withBooks(flags, machine, {}, ({ keys }) => {
    const revokedAt = clock.now();
    const { id } = validKey(keys, key);
    keys.revoke(id, revokedAt);
    return keys.withLeft(revokedAt).filter((known) => known.id === id);
  });
  for (const document of revoked)
    print(flags, machine, "serve-key", listed(document), () => `revoked ${key}`);
}

function listed(key: KeyWithLeft) {
  return {
    id: key.id,
    name: key.name,
    plan: key.plan,
    created_at: new Date(key.createdAt).toISOString(),
    revoked_at: key.revokedAt === null ? null : new Date(key.revokedAt).toISOString(),
    requests_count: key.requests,
    credits_used: key.used,
    credits_left: key.left.credits,
    credits_left_per: key.left.per,
    renews_at: key.left.renewsAt === null ? null : new Date(key.left.renewsAt).toISOString(),
    credits_per_month: key.perMonth,
    credits_per_day: key.perDay,
  };
}
