import { mkdtempSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { credits, noCredits } from "../../src/core/money.js";
import type { Log } from "../../src/core/ports/send.js";
import type { OwnLimits } from "../../src/core/quota/quota.js";
import { type OpenAccount, openAccount } from "../../src/workspace/account.js";
import { openQuota } from "../../src/workspace/state.js";
import { answering, json, me } from "../cli/service.js";
import { testKey } from "../e2e/leaked-key.js";
import { ManualClock } from "../manual-clock.js";

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** A service that counts the key's requests as a real one does, and an account's plan. */
async function service(plan: string | null = "Pro") {
  let requests = 0;
  const found = await answering((_: IncomingMessage, response: ServerResponse) => {
    requests++;
    const subscription = plan === null ? null : { ...me.subscription, plan };
    json(response, 200, { ...me, subscription, api_key: { ...me.api_key, requests_count: requests } });
  });
  opened.push(found);
  return found;
}

/**
 * A machine of its own: nothing of its account's data is shared with another one, unless a file is named. `waits` when a
 * request has no place.
 */
async function machine(url: string, limits: OwnLimits = {}, accountsFile = ":memory:") {
  const warnings: string[] = [];
  const clock = new ManualClock();
  let wait = () => {};
  const waits = new Promise<void>((resolve) => {
    wait = resolve;
  });
  const log: Log = {
    debug() {},
    info() {},
    warn: (facts, text) => void warnings.push(`${text} ${JSON.stringify(facts)}`),
    error() {},
  };
  const account: OpenAccount = await openAccount({
    connection: { origin: "https://service.example", baseUrl: url, key: testKey, sandbox: false },
    place: { accountsFile, stateFile: "state.db", database: null },
    clock,
    log,
    limits,
    signal: new AbortController().signal,
    onDailyLimit: "stop",
    onWait: wait,
  });
  opened.unshift(account);
  return { account, warnings, clock, waits, limits: async () => account.accounts.quota(account.accountId()) };
}

describe("an account", () => {
  test("P9: is used within a command's own limits, also while another command without any reads it", async () => {
    const { url } = await service();
    const accountsFile = join(mkdtempSync(join(tmpdir(), "bulkgen-limits-")), "accounts.db");
    const run = await machine(url, { rpm: 4, share: 50 }, accountsFile);
    await run.account.identify();
    const other = await machine(url, {}, accountsFile);
    await other.account.identify();
    expect(await run.limits()).toMatchObject({ minute: { limit: 4 }, day: { limit: 5_000 } });
    expect(await other.limits()).toMatchObject({ minute: { limit: 60 }, day: { limit: 10_000 } });
    // As a command sees it that watches the run.
    const place = { accountsFile, stateFile: "state.db", database: null };
    const watched = await openQuota(
      place,
      { origin: "https://service.example", accountId: me.user.id },
      run.clock,
    );
    opened.unshift(watched);
    expect(await watched.read(run.clock.now(), { rpm: 4 })).toMatchObject({ minute: { limit: 4 } });
  });

  test("P7: that waited for its balance shows what was charged in the meantime", async () => {
    const { account, clock, waits } = await machine((await service()).url, { rpm: 1 });
    const { accounts, spendLog } = account;
    await account.identify();
    const reading = account.identify();
    await waits;
    const entry = await spendLog.intend({ itemKey: "k", price: credits(4), at: clock.now() });
    await spendLog.answered(entry, { outcome: "accepted", charged: credits(4) });
    clock.advance(60_000);
    const { mark } = await reading;
    const nothing = { since: noCredits, before: noCredits };
    expect(await accounts.takenFrom(account.accountId(), mark)).toEqual(nothing);
  });

  test("that another machine uses with the same key too says so, and counts its requests", async () => {
    const { url } = await service();
    const [here, there] = [await machine(url), await machine(url)];
    await here.account.identify();
    for (let n = 0; n < 5; n++) await there.account.identify();
    expect(here.warnings).toEqual([]);
    await here.account.identify();
    expect(here.warnings).toEqual([expect.stringMatching(/^5 requests with this key .* another machine/)]);
    expect((await here.limits()).minute.used).toBe(7);
  });

  test("that returns no counters of its key is reported once, and works all the same", async () => {
    const { url } = await answering((_: IncomingMessage, response: ServerResponse) =>
      json(response, 200, { ...me, credits: { balance: 1e12, used_this_key: null } }),
    );
    const { account, warnings } = await machine(url);
    for (let times = 0; times < 2; times++) expect((await account.identify()).me.user.id).toBe(me.user.id);
    expect(warnings).toEqual([expect.stringMatching(/does not report the key's counters.* got null/)]);
  });

  test("of an unknown plan keeps the smallest limits, with a warning", async () => {
    const { account, warnings, limits } = await machine((await service("Galactic")).url);
    await account.identify();
    expect(warnings).toEqual(['unknown plan: the smallest limits apply {"plan":"Galactic"}']);
    expect(await limits()).toMatchObject({ minute: { limit: 30 }, day: { limit: 1_000 } });
  });

  test("of an unlimited plan has no limits but the user's own", async () => {
    const { url } = await service("Enterprise");
    const [free, bound] = [await machine(url), await machine(url, { rpm: 12, rpd: 500 })];
    await free.account.identify();
    expect(await free.limits()).toMatchObject({ minute: { limit: null }, day: { limit: null } });
    await bound.account.identify();
    expect(await bound.limits()).toMatchObject({ minute: { limit: 12 }, day: { limit: 500 } });
  });

  test("keeps the user's own limits from its first request on", async () => {
    const { limits } = await machine((await service("Enterprise")).url, { rpm: 4, share: 50 });
    expect(await limits()).toMatchObject({ minute: { limit: 4 }, day: { limit: 1_000 } });
  });

  test("P12: of whose day a share leaves less than 3 requests is refused", async () => {
    const { url } = await service();
    const { account } = await machine(url, { rpd: 100, share: 1 });
    await account.identify();
    const tiny = await machine(url, { rpd: 2 });
    await expect(tiny.account.identify()).rejects.toThrow("expected 3 or more");
  });
});
