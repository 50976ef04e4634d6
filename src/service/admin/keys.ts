import { createHash } from "node:crypto";
import { keyPrefix, sandboxKey } from "../../api/key.js";
import type { KeyListing, NewKey } from "../../api/service-page.js";
import type { Random } from "../../clock.js";
import { keyColumns } from "../state/rows.js";
import { fromMicro, type KeyRecord, keyHash } from "../state/state.js";
import { AdminProblem, type Desk } from "./accounts.js";

const nameLettersMax = 64;
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** The keys of an account, good ones first, the newest of each first. */
export function listKeys({ state }: Desk, accountId: string): KeyListing[] {
  const rows = state.db
    .prepare<[string]>(
      `select ${keyColumns}, hash, created_at as createdAt from keys
       where account_id = ? order by revoked_at is not null, created_at desc, id desc`,
    )
    .all(accountId) as (KeyRecord & { hash: string; createdAt: number })[];
  const publicHash = keyHash(sandboxKey);
  return rows.map(({ accountId: _, usedMicro, hash, ...row }) => ({
    ...row,
    used: fromMicro(usedMicro),
    isPublic: hash === publicHash,
  }));
}

/** Makes a key under a name that no other good key of the account has. Throws AdminProblem. */
export function createKey(desk: Desk, accountId: string, askedFor: string): NewKey {
  const name = checkedName(askedFor);
  const { state, clock, random } = desk;
  return state.transact(() => {
    if (listKeys(desk, accountId).some((key) => key.revokedAt === null && key.name === name)) {
      throw new AdminProblem(`there is a key named ${JSON.stringify(name)} already; choose another name`);
    }
    const value = newKeyValue(random);
    const id = random.uuid();
    state.saveKey({ id, accountId, hash: keyHash(value), name, createdAt: clock.now() });
    return { id, name, value };
  });
}

/** Revokes the good key with this id or name; from now on it is refused like one that does not exist. Throws AdminProblem. */
export function revokeKey(desk: Desk, accountId: string, idOrName: string): KeyListing {
  const { state, clock } = desk;
  return state.transact(() => {
    const named = listKeys(desk, accountId).filter((key) => key.id === idOrName || key.name === idOrName);
    const key = named.find((candidate) => candidate.revokedAt === null);
    if (!key) {
      const why = named.length > 0 ? "is revoked already" : "does not exist";
      throw new AdminProblem(`the key ${JSON.stringify(idOrName)} ${why}`);
    }
    if (key.isPublic) {
      throw new AdminProblem(
        "this key is public and the same in every sandbox, and --sandbox needs it; to rehearse a revoked key, create one",
      );
    }
    const revokedAt = clock.now();
    state.db.prepare<[number, string]>("update keys set revoked_at = ? where id = ?").run(revokedAt, key.id);
    return { ...key, revokedAt };
  });
}

/** The name without spaces around it. Throws AdminProblem if no key may be called that. */
export function checkedName(askedFor: string): string {
  const name = askedFor.trim();
  if (name === "") throw new AdminProblem("a key needs a name, such as nightly");
  if ([...name].length > nameLettersMax) {
    throw new AdminProblem(
      `a key's name has ${nameLettersMax} characters at most, and this has ${[...name].length}`,
    );
  }
  if (unseen.test(name)) throw new AdminProblem("a key's name may have no invisible characters");
  return name;
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 32;
/** Bytes from here on are skipped, so that all characters are equally likely. */
const evenBytes = 256 - (256 % alphabet.length);

/** A new key: the prefix and 32 letters or digits, made of the randomness of several UUIDs. */
export function newKeyValue(random: Random): string {
  let characters = "";
  while (characters.length < length) {
    const digest = createHash("sha512").update(`${random.uuid()}${random.uuid()}${random.uuid()}`).digest();
    for (const byte of digest) if (byte < evenBytes) characters += alphabet[byte % alphabet.length];
  }
  return keyPrefix + characters.slice(0, length);
}
