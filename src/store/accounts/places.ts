import type { LoggedWorkspace } from "../../core/ports/accounts.js";
import type { Database, Queries, Script } from "../script.js";

/** Where workspaces and services are now: both may move, and what was paid for stays paid for. */
export function placeMethods({ sql, atomic, read }: Database) {
  return {
    /** A workspace is used in this place, from which other workspaces can name it. */
    async usedIn(workspace: LoggedWorkspace): Promise<void> {
      const isKnown = await read(() => isUsedIn(sql, workspace));
      // Most commands find it where it was, and a write costs a sync.
      if (!isKnown) await atomic(() => useIn(sql, workspace));
    },

    /** The name of the service at an address: the address, unless a person has said that it is the same as an earlier one. */
    serviceAt: (address: string): Promise<string> =>
      read(function* () {
        const row = yield* sql("SELECT origin FROM same_services WHERE address = ?").get(address);
        return (row as { origin: string } | undefined)?.origin ?? address;
      }),

    /**
     * The service at `address` is the one that this user knows by `origin`, and has moved. Returns how many paid requests
     * were sent to the new address as to another service; null, and nothing is changed, if the user is not known there.
     */
    sameService: async (move: ServiceMove): Promise<number | null> => atomic(() => join(sql, move)),
  };
}

/** A service that is found at another address than the one by which this user knows it. */
export interface ServiceMove {
  address: string;
  origin: string;
  user: string;
}

function* placeOf(sql: Queries, name: string): Script<Pick<LoggedWorkspace, "state" | "root"> | undefined> {
  return (yield* sql("SELECT state, root FROM workspaces WHERE name = ?").get(name)) as
    | LoggedWorkspace
    | undefined;
}

function* isUsedIn(sql: Queries, { name, state, root }: LoggedWorkspace): Script<boolean> {
  const known = yield* placeOf(sql, name);
  return known !== undefined && known.state === state && known.root === root;
}

function* useIn(sql: Queries, { name, state, root }: LoggedWorkspace): Script<void> {
  // Before a folder is a workspace, and before version 3, its requests had the name of its state file.
  if (name !== state && (yield* placeOf(sql, name)) === undefined) {
    yield* sql("UPDATE spend_log SET workspace = ? WHERE workspace = ?").run(name, state);
    yield* sql("UPDATE foreign_known SET workspace = ? WHERE workspace = ?").run(name, state);
    yield* sql("DELETE FROM workspaces WHERE name = ?").run(state);
  }
  yield* sql(
    `INSERT INTO workspaces (name, state, root) VALUES (?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET state = excluded.state, root = excluded.root`,
  ).run(name, state, root);
}

/** Requests made at the new address so far count for the service: it counts them for the same key. */
function* join(sql: Queries, { address, origin, user }: ServiceMove): Script<number | null> {
  const isKnown = yield* sql("SELECT 1 FROM accounts WHERE origin = ? AND user_id = ?").get(origin, user);
  if (isKnown === undefined) return null;
  const keys = (yield* sql("SELECT fingerprint, account_id AS id, sent FROM keys WHERE origin = ?").all(
    address,
  )) as { fingerprint: string; id: number; sent: number }[];
  for (const { fingerprint, id, sent } of keys) {
    const known = (yield* sql("SELECT account_id AS id FROM keys WHERE origin = ? AND fingerprint = ?").get(
      origin,
      fingerprint,
    )) as { id: number } | undefined;
    if (known === undefined) continue;
    yield* sql("UPDATE keys SET sent = sent + ? WHERE origin = ? AND fingerprint = ?").run(
      sent,
      origin,
      fingerprint,
    );
    yield* sql("UPDATE keys SET sent = 0 WHERE origin = ? AND fingerprint = ?").run(address, fingerprint);
    yield* sql("UPDATE requests SET account_id = ? WHERE account_id = ? AND fingerprint = ?").run(
      known.id,
      id,
      fingerprint,
    );
  }
  yield* sql(
    `INSERT INTO same_services (address, origin) VALUES (?, ?)
     ON CONFLICT (address) DO UPDATE SET origin = excluded.origin`,
  ).run(address, origin);
  return Number(
    (yield* sql(
      "SELECT count(*) FROM spend_log WHERE origin = ? AND outcome IN ('accepted', 'unknown')",
    ).value(address)) ?? 0,
  );
}
