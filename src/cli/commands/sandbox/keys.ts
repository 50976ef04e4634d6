import type { Machine } from "../../../machine.js";
import { findAccount } from "../../../sandbox/admin/accounts.js";
import { createKey, type KeyListing, listKeys, revokeKey } from "../../../sandbox/admin/keys.js";
import { table, terminalStyle } from "../../../text/table.js";
import type { SandboxKeyFlags } from "../../flags/sandbox.js";
import type { Call } from "../call.js";
import { administer } from "./state.js";

export async function createSandboxKey({
  flags,
  args,
  machine,
}: Call<SandboxKeyFlags, { name: string }>): Promise<undefined> {
  const { stdout, stderr } = machine;
  const { made, email } = administer(flags, machine, true, (desk) => {
    const { id, email } = findAccount(desk, flags.user);
    return { made: createKey(desk, id, args.name), email };
  });
  const { id, value } = made;
  if (flags.json) stdout.write(`${JSON.stringify({ id, name: made.name, key: value, user: email })}\n`);
  else {
    stderr.write(`key ${JSON.stringify(made.name)} of ${email}; it is shown only this once:\n`);
    stdout.write(`${value}\n`);
  }
}

export async function listSandboxKeys({ flags, machine }: Call<SandboxKeyFlags>): Promise<undefined> {
  const keys = administer(flags, machine, false, (desk) => listKeys(desk, findAccount(desk, flags.user).id));
  machine.stdout.write(flags.json ? `${JSON.stringify(keys.map(listed))}\n` : `${keysText(keys, machine)}\n`);
}

export async function revokeSandboxKey({
  flags,
  args,
  machine,
}: Call<SandboxKeyFlags, { key: string }>): Promise<undefined> {
  const revoked = administer(flags, machine, false, (desk) =>
    revokeKey(desk, findAccount(desk, flags.user).id, args.key),
  );
  machine.stdout.write(
    flags.json
      ? `${JSON.stringify(listed(revoked))}\n`
      : `revoked ${JSON.stringify(revoked.name)} (${revoked.id})\n`,
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

function keysText(keys: readonly KeyListing[], { stdout, env }: Machine): string {
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
    const standing = key.revokedAt === null ? (key.isPublic ? "public" : "") : "revoked";
    return [name, id, created_at.slice(0, 16).replace("T", " "), requests_count, credits_used, standing];
  });
  return table(columns, rows, terminalStyle(stdout, env));
}
