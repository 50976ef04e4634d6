import type { Client, QueryResult as PgResult } from "pg";
import type { Clock } from "../../clock.js";
import { DatabaseTrouble } from "../open.js";
import type { DatabaseAddress } from "./address.js";
import { connected } from "./connection.js";

/**
 * After this many milliseconds without an answer, bulkgen asks the server over another connection whether it is there.
 * A query may take long, or wait for another writer; but on a network that was cut, the system would wait for a quarter
 * of an hour.
 */
const patienceMs = 20_000;
/** Milliseconds between two checks whether answers come. */
const checkMs = 5_000;

/** What is asked over one connection, which answers in the order of the questions. */
export class Line {
  /** How many answers came until now. */
  answers = 0;
  /** Questions without an answer. */
  open = 0;
  private cut: NetworkCut | null = null;
  /** The error of the first failed query for which nobody waited: later queries fail too. */
  private failure: unknown = null;
  private told: Promise<unknown> = Promise.resolve();

  constructor(private readonly client: Pick<Client, "query">) {}

  /** Waits for the answer. If an earlier question failed, rejects with its error. */
  ask(text: string, values?: unknown[]): Promise<PgResult> {
    return this.send(text, values).catch((error: unknown) => {
      throw this.failure ?? error;
    });
  }

  /** Asks without waiting: what is asked next is on its way at the same time. */
  tell(text: string, values?: unknown[], onAnswer?: (answer: PgResult) => void): void {
    this.told = this.send(text, values).then(onAnswer, (error: unknown) => {
      this.failure ??= error;
    });
  }

  /** Resolves when all that was told is answered; rejects if some of it has failed. */
  async allAnswered(): Promise<void> {
    await this.told;
    if (this.failure !== null) throw this.failure;
  }

  /** Rolls back, whatever has failed. Rejects where the connection is lost. */
  async rollBack(): Promise<void> {
    await this.send("ROLLBACK");
  }

  /** Sends no more queries: all callers were told that the connection is lost. */
  end(cut: NetworkCut): void {
    this.cut = cut;
  }

  private async send(text: string, values?: unknown[]): Promise<PgResult> {
    if (this.cut !== null) throw this.cut;
    this.open++;
    try {
      return await this.client.query(
        values === undefined ? { text } : { name: nameOfQuery(text), text, values },
      );
    } finally {
      this.open--;
      this.answers++;
    }
  }
}

/** The server plans a query with a name once for each connection. */
const queryNames = new Map<string, string>();

function nameOfQuery(text: string): string {
  let name = queryNames.get(text);
  if (name === undefined) {
    name = `query_${queryNames.size + 1}`;
    queryNames.set(text, name);
  }
  return name;
}

export class NetworkCut extends DatabaseTrouble {}

function isSaidByServer(error: unknown): boolean {
  return (error as { severity?: string } | undefined)?.severity !== undefined;
}

/** Rejects with NetworkCut if a question stays without an answer, and the server cannot be reached any more. */
export async function unlessCut<Result>(
  line: Line,
  work: Promise<Result>,
  { address, clock }: { address: DatabaseAddress; clock: Clock },
): Promise<Result> {
  const over = new AbortController();
  const done = () => over.abort("done");
  work.then(done, done);
  let seen = line.answers;
  let silentMs = 0;
  for (;;) {
    await Promise.race([work, clock.sleep(checkMs, over.signal)]);
    if (over.signal.aborted) return work;
    silentMs = line.answers === seen ? silentMs + checkMs : 0;
    seen = line.answers;
    if (silentMs < patienceMs) continue;
    silentMs = 0;
    try {
      await (await connected(address, "bulkgen")).end();
    } catch (error) {
      // A server that says why it takes no connection, such as too many of them, is there.
      if (!(error instanceof DatabaseTrouble) || isSaidByServer(error.cause)) continue;
      const cut = new NetworkCut(error.message, error.todo, { cause: error });
      line.end(cut);
      throw cut;
    }
  }
}
