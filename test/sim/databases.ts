import type { Clock } from "../../src/clock.js";
import type { Sqlite } from "../../src/sqlite.js";
import { type Accounts, accountsOn } from "../../src/store/accounts/accounts.js";
import { accountsMigrations } from "../../src/store/accounts/accounts-schema.js";
import { type Defer, type Migration, openDatabase } from "../../src/store/open.js";
import type { Store } from "../../src/store/workspace/workspace.js";
import { workspaceOn } from "../../src/store/workspace/workspace.js";
import { workspaceMigrations } from "../../src/store/workspace/workspace-schema.js";
import { wrongSums } from "../store/wrong-sums.js";

/**
 * Databases in memory for one run after the other. To make one with its schema, and to prepare its statements, takes as
 * long as half a small run; so a run has its databases within a transaction that is taken back at its end. What the
 * program does in transactions of its own are savepoints in there.
 */
interface Database<Port> {
  port: Port;
  db: Sqlite;
  /** The clock of the run that has it. */
  clock: { current: Clock };
}

/** Each process of the simulation shares its own commits (`machine.ts`), so here a work is committed at once. */
const atOnce: Defer = (act) => act();

class Pool<Port> {
  private readonly idle: Database<Port>[] = [];

  constructor(
    private readonly migrations: readonly Migration[],
    private readonly portOn: (db: Sqlite, clock: Clock) => Port,
    /** Throws where a database is not as it must be at the end of a run. */
    private readonly check: (db: Sqlite) => void,
  ) {}

  take(clock: Clock): Database<Port> {
    const database = this.idle.pop() ?? this.make(clock);
    database.clock.current = clock;
    database.db.exec("BEGIN");
    return database;
  }

  giveBack(database: Database<Port>): void {
    this.check(database.db);
    database.db.exec("ROLLBACK");
    this.idle.push(database);
  }

  private make(clock: Clock): Database<Port> {
    const db = openDatabase(":memory:", this.migrations);
    const held = { current: clock };
    const delegating: Clock = {
      now: () => held.current.now(),
      monotonic: () => held.current.monotonic(),
      sleep: (ms, signal) => held.current.sleep(ms, signal),
    };
    return { port: this.portOn(db, delegating), db, clock: held };
  }
}

const workspaces = new Pool<Store>(
  workspaceMigrations,
  (db, clock) => workspaceOn(db, clock, "/", atOnce),
  (db) => {
    const wrong = wrongSums.flatMap((query) => db.prepare(query).all());
    if (wrong.length > 0) throw new Error(`sums that a workspace keeps are wrong: ${JSON.stringify(wrong)}`);
  },
);
const accounts = new Pool<Accounts>(
  accountsMigrations,
  (db, clock) => accountsOn(db, clock, atOnce),
  () => {},
);

/** The databases of one run: of each workspace one, and the account's. */
export class Databases {
  private readonly taken: (() => void)[] = [];

  constructor(private readonly clock: Clock) {}

  workspace(): Store {
    return this.from(workspaces);
  }

  accounts(): Accounts {
    return this.from(accounts);
  }

  /** The run is over, and nobody of it will ask anything any more. */
  close(): void {
    for (const giveBack of this.taken.splice(0)) giveBack();
  }

  private from<Port>(pool: Pool<Port>): Port {
    const database = pool.take(this.clock);
    this.taken.push(() => pool.giveBack(database));
    return database.port;
  }
}
