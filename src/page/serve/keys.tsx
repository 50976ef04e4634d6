import { useState } from "preact/hooks";
import { plans } from "../../api/plans.js";
import type { NewKeyRequest, NewServedKey, PageKey } from "../../api/served-page.js";
import { number } from "../parts/amounts.js";
import { MadeKey, RevokeKey } from "../parts/service/one-key.js";
import { Stamp } from "../parts/service/stamp.js";
import { visible } from "../parts/visible.js";

interface KeysProps {
  keys: readonly PageKey[];
  now: number;
  /** Resolves with whether there is such a key now. */
  createKey: (newKey: NewKeyRequest) => Promise<boolean>;
  revokeKey: (id: string) => Promise<unknown>;
  /** The key that was just made; nothing shows its value later. */
  made: NewServedKey | null;
  /** Why what was asked for last was refused. */
  refused: string | null;
}

/** The keys with their budgets: what there is, a new one, an old one revoked. */
export function Keys({ keys, now, createKey, revokeKey, made, refused }: KeysProps) {
  const good = keys.filter(({ revokedAt }) => revokedAt === null);
  const revoked = keys.filter(({ revokedAt }) => revokedAt !== null);
  return (
    <section class="panel" aria-labelledby="keys">
      <div class="head">
        <h2 id="keys">Keys</h2>
      </div>
      <NewKeyForm createKey={createKey} />
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
            <th>Plan</th>
            <th>Created</th>
            <th class="number">Requests</th>
            <th class="number">Spent</th>
            <th class="number">Left</th>
            <th class="number">A month</th>
            <th class="number">A day</th>
            <th>
              <span class="unseen">Revoke</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {[...good, ...revoked].map((key) => (
            <KeyRow key={key.id} listed={key} now={now} revokeKey={revokeKey} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

const emptyKey = { name: "", plan: "Pro", credits: "", perMonth: "", perDay: "" };

function NewKeyForm({ createKey }: Pick<KeysProps, "createKey">) {
  const [newKey, setNewKey] = useState(emptyKey);
  const set = (field: keyof typeof emptyKey) => (event: { currentTarget: { value: string } }) => {
    const { value } = event.currentTarget;
    setNewKey((before) => ({ ...before, [field]: value }));
  };
  const create = async (event: Event) => {
    event.preventDefault();
    const { name, plan, credits, perMonth, perDay } = newKey;
    const limit = (text: string) => (text.trim() === "" ? null : Number(text));
    const done = await createKey({
      name,
      plan: plans.find((known) => known === plan) ?? "Pro",
      credits: limit(credits),
      perMonth: limit(perMonth),
      perDay: limit(perDay),
    });
    if (done) setNewKey(emptyKey);
  };
  const budget = (field: "credits" | "perMonth" | "perDay", label: string) => (
    <label>
      {label}
      <input
        type="number"
        min="0"
        max="1000000000"
        step="any"
        placeholder="no limit"
        value={newKey[field]}
        onInput={set(field)}
      />
    </label>
  );
  return (
    <form class="new-key" onSubmit={(event) => void create(event)}>
      <label class="name">
        Name of the new key
        <input
          placeholder="such as anna or nightly"
          maxLength={64}
          required
          autocomplete="off"
          spellcheck={false}
          value={newKey.name}
          onInput={set("name")}
        />
      </label>
      <label>
        Plan
        <select value={newKey.plan} onInput={set("plan")}>
          {plans.map((plan) => (
            <option key={plan}>{plan}</option>
          ))}
        </select>
      </label>
      {budget("credits", "Credits in all")}
      {budget("perMonth", "Credits a month")}
      {budget("perDay", "Credits a day")}
      <button type="submit" class="main">
        Create key
      </button>
    </form>
  );
}

interface RowProps {
  listed: PageKey;
  now: number;
  revokeKey: KeysProps["revokeKey"];
}

function KeyRow({ listed, now, revokeKey }: RowProps) {
  const { id, name, plan, createdAt, revokedAt, requests, used, left, perMonth, perDay } = listed;
  return (
    <tr class={revokedAt === null ? "good" : "revoked"}>
      <th scope="row">{visible(name)}</th>
      <td data-label="Plan">{plan}</td>
      <td data-label="Created">
        <Stamp at={createdAt} now={now} />
      </td>
      <td class="number" data-label="Requests">
        {number(requests)}
      </td>
      <td class="number" data-label="Spent">
        {number(used)}
      </td>
      <Limit label="Left" amount={left.credits} until={left.per && untilWords[left.per]} />
      <Limit label="A month" amount={perMonth} />
      <Limit label="A day" amount={perDay} />
      <td class="action">
        {revokedAt === null ? (
          <RevokeKey name={name} revoke={() => revokeKey(id)} />
        ) : (
          <span class="badge">
            revoked <Stamp at={revokedAt} now={now} />
          </span>
        )}
      </td>
    </tr>
  );
}

const untilWords = { day: "today (UTC)", month: "this month (UTC)" };

interface LimitProps {
  label: string;
  amount: number | null;
  until?: string | null;
}

function Limit({ label, amount, until = null }: LimitProps) {
  return (
    <td class="number" data-label={label}>
      {amount === null ? <span class="quiet">no limit</span> : number(amount)}
      {until !== null && <span class="quiet"> {until}</span>}
    </td>
  );
}
