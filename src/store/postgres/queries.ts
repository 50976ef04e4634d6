import type { PendingQuery, Queries, Query } from "../script.js";
import { bound, type Translation, translated } from "./dialect.js";

/** Queries by their text: each is translated once. */
export function postgresQueries(): Queries {
  const queries = new Map<string, PostgresQuery>();
  return (text) => {
    let query = queries.get(text);
    if (!query) {
      query = new PostgresQuery(translated(text));
      queries.set(text, query);
    }
    return query;
  };
}

class PostgresQuery implements Query {
  constructor(private readonly translation: Translation) {}

  *get(...values: unknown[]) {
    const { rows } = yield this.ask(values);
    return rows[0];
  }

  *all(...values: unknown[]) {
    const { rows } = yield this.ask(values);
    return rows;
  }

  *value(...values: unknown[]) {
    const { rows } = yield this.ask(values);
    return rows[0] === undefined ? undefined : Object.values(rows[0])[0];
  }

  *run(...values: unknown[]) {
    yield { ...this.ask(values), isTold: true };
  }

  *changes(...values: unknown[]) {
    const { changes } = yield this.ask(values);
    return changes;
  }

  *insert(...values: unknown[]) {
    const { text, values: ordered } = this.ask(values);
    const { rows } = yield { text: `${text} RETURNING id`, values: ordered };
    return rows[0]?.["id"] as number;
  }

  private ask(values: unknown[]): PendingQuery {
    return bound(this.translation, values);
  }
}
