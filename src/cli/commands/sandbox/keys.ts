import type { Command } from "commander";
import type { KeyListing } from "../../../sandbox/admin/keys.js";
import { terminalStyle } from "../../../text/table.js";
import { administer, type StateFlags, withState } from "./state.js";

interface Flags extends StateFlags {
  user?: string;
  json?: boolean;
}

/** Adds `sandbox keys create|list|revoke`. */
export function defineSandboxKeys(sandbox: Command): void {
  const keys = sandbox
    .command("keys")
    .description("create, list or revoke API keys of a sandbox")
    .helpCommand(false);
  withFlags(keys.command("create"))
    .description("make a key; its value is printed this once, on stdout")
    .argument("<name>", "what the key is called")
    .action((name: string, _: Flags, command: Command) => create(name, command.optsWithGlobals<Flags>()));
  withFlags(keys.command("list"))
    .description("list the keys and their usage")
    .action((_: Flags, command: Command) => list(command.optsWithGlobals<Flags>()));
  withFlags(keys.command("revoke"))
    .description("revoke a key: from then on it is refused as one that does not exist")
    .argument("<key>", "its name or id")
    .action((key: string, _: Flags, command: Command) => revoke(key, command.optsWithGlobals<Flags>()));
}

function withFlags(command: Command): Command {
  return withState(command)
    .option("--user <email>", "whose keys (default: the sandbox's own user)")
    .option("--json", "one JSON document on stdout");
}

async function create(name: string, flags: Flags): Promise<void> {
  const [{ createKey }, { findAccount }] = await rooms();
  const { made, email } = await administer(flags, true, (desk) => {
    const { id, email } = findAccount(desk, flags.user);
    return { made: createKey(desk, id, name), email };
  });
  const { id, value } = made;
  if (flags.json)
    process.stdout.write(`${JSON.stringify({ id, name: made.name, key: value, user: email })}\n`);
  else {
    process.stderr.write(`key ${JSON.stringify(made.name)} of ${email}; it is shown this once only:\n`);
    process.stdout.write(`${value}\n`);
  }
}

async function list(flags: Flags): Promise<void> {
  const [{ listKeys }, { findAccount }] = await rooms();
  const keys = await administer(flags, false, (desk) => listKeys(desk, findAccount(desk, flags.user).id));
  process.stdout.write(flags.json ? `${JSON.stringify(keys.map(listed))}\n` : `${await keysText(keys)}\n`);
}

async function revoke(key: string, flags: Flags): Promise<void> {
  const [{ revokeKey }, { findAccount }] = await rooms();
  const revoked = await administer(flags, false, (desk) =>
    revokeKey(desk, findAccount(desk, flags.user).id, key),
  );
  process.stdout.write(
    flags.json
      ? `${JSON.stringify(listed(revoked))}\n`
      : `revoked ${JSON.stringify(revoked.name)} (${revoked.id})\n`,
  );
}

function rooms() {
  return Promise.all([
    import("../../../sandbox/admin/keys.js"),
    import("../../../sandbox/admin/accounts.js"),
  ]);
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

async function keysText(keys: readonly KeyListing[]): Promise<string> {
  const { table } = await import("../../../text/table.js");
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
  return table(columns, rows, terminalStyle(process.stdout, process.env));
}
