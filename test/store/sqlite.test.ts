import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { openSqlite } from "../../src/sqlite.js";
import { openAccounts } from "../../src/store/accounts/accounts.js";
import { openWorkspace } from "../../src/store/workspace/workspace.js";
import { openNews, openSteps } from "../../src/workspace/state.js";
import { amount } from "../fuzz/amount.js";
import { storeSuites } from "./suites/all.js";

let opened: { close(): Promise<void> | void }[] = [];
afterEach(async () => {
  const ended = opened;
  opened = [];
  for (const { close } of ended) await close();
});

storeSuites(
  async (clock) => {
    const root = mkdtempSync(join(tmpdir(), "bulkgen-store-"));
    const stateFile = join(root, "state.db");
    const store = openWorkspace({ stateFile, root }, clock);
    opened.push(store);
    const place = { stateFile, root, database: null };
    return {
      store,
      openSteps: () => openSteps(place, clock),
      newsOf: (runId) => openNews(place, runId, clock),
      accounts: openAccounts(":memory:", clock),
      async ask(sql) {
        const statement = openSqlite(stateFile).prepare(sql);
        return statement.reader ? statement.all() : [statement.run()];
      },
    };
  },
  amount(500, 10_000),
);
