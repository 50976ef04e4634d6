import { useState } from "preact/hooks";
import type { AccountAnswer, KeyListing, NewKey } from "../../api/service-page.js";
import { number } from "../parts/amounts.js";
import { MadeKey, RevokeKey } from "../parts/service/one-key.js";
import { Stamp } from "../parts/service/stamp.js";

interface KeysProps {
  answer: AccountAnswer;
  /** Resolves with whether there is such a key now. */
  createKey: (name: string) => Promise<boolean>;
  revokeKey: (id: string) => Promise<unknown>;
  /** The key that was just made; nothing shows its value later. */
  made: NewKey | null;
  /** Why what was asked for last was refused. */
  refused: string | null;
}

/** The API keys: what there is, a new one, an old one revoked. */
export function Keys({ answer, createKey, revokeKey, made, refused }: KeysProps) {
  const [name, setName] = useState("");
  const create = async (event: Event) => {
    event.preventDefault();
    if (await createKey(name)) setName("");
  };
  return (
    <section class="panel" aria-labelledby="keys">
      <div class="head">
        <h2 id="keys">API keys</h2>
        <form class="create" onSubmit={(event) => void create(event)}>
          <input
            aria-label="Name of the new key"
            placeholder="Name, such as nightly"
            maxLength={64}
            required
            autocomplete="off"
            spellcheck={false}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
          <button type="submit" class="main">
            Create new key
          </button>
        </form>
      </div>
      {refused !== null && (
        <p class="refused" role="alert">
          {refused}
        </p>
      )}
      {made !== null && <MadeKey {...made} />}
      <table class="keys">
        <thead>
          <tr>
            <th>Name</th>
            <th>Created</th>
            <th class="number">Requests</th>
            <th class="number">Credits used</th>
            <th>
              <span class="unseen">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {answer.keys.map((key) => (
            <KeyRow key={key.id} listing={key} revoke={revokeKey} now={answer.now} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

interface RowProps {
  listing: KeyListing;
  revoke: KeysProps["revokeKey"];
  now: number;
}

function KeyRow({ listing, revoke, now }: RowProps) {
  const { name, isPublic, revokedAt, createdAt, requestsCount, used } = listing;
  return (
    <tr class={revokedAt === null ? "good" : "revoked"}>
      <th scope="row">
        {name} {isPublic && <span class="badge">public</span>}
      </th>
      <td data-label="Created">
        <Stamp at={createdAt} now={now} />
      </td>
      <td class="number" data-label="Requests">
        {number(requestsCount)}
      </td>
      <td class="number" data-label="Credits used">
        {number(used)}
      </td>
      <td class="action">
        <Action listing={listing} revoke={revoke} now={now} />
      </td>
    </tr>
  );
}

function Action({ listing, revoke, now }: RowProps) {
  const { id, name, revokedAt, isPublic } = listing;
  if (revokedAt !== null)
    return (
      <span class="badge">
        revoked <Stamp at={revokedAt} now={now} />
      </span>
    );
  if (isPublic) return <span class="quiet">built in</span>;
  return <RevokeKey name={name} revoke={() => revoke(id)} />;
}
