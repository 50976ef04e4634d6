/** A trigger in SQL that both databases understand, except for the statement around it. */
export interface Trigger {
  name: string;
  /** `AFTER UPDATE OF price ON items`. */
  on: string;
  when?: string;
  /** Statements, each with its semicolon; or a refusal of the change, in words for the log. */
  does: string | { refuse: string };
  /**
   * What PostgreSQL does instead, once for all rows of a statement, with `gone` for the old rows and `come` for the new
   * ones: it keeps each version of a row that a transaction changes repeatedly, and reads through all of them.
   */
  inAll?: string;
}

export function sqliteTriggers(triggers: readonly Trigger[]): string {
  const each = ({ name, on, when, does }: Trigger) => {
    const act = typeof does === "string" ? does : `SELECT RAISE(ABORT, '${does.refuse}');`;
    return `CREATE TRIGGER ${name} ${on} ${when === undefined ? "" : `WHEN ${when}`} BEGIN ${act} END;`;
  };
  return triggers.map(each).join("\n");
}

/** The condition is in the function, because PostgreSQL allows no queries in the condition of a trigger. */
export function postgresTriggers(triggers: readonly Trigger[]): string {
  const each = ({ name, on, when = "TRUE", does, inAll }: Trigger) => {
    if (inAll !== undefined) {
      const [, event, table] = /^AFTER (INSERT|UPDATE)\b.* ON (\w+)$/.exec(on) ?? [];
      return `
      CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${inAll} RETURN NULL; END $$;
      CREATE TRIGGER ${name} AFTER ${event} ON ${table}
        REFERENCING ${event === "UPDATE" ? "OLD TABLE AS gone " : ""}NEW TABLE AS come FOR EACH STATEMENT EXECUTE FUNCTION ${name}();`;
    }
    const act = typeof does === "string" ? does : `RAISE EXCEPTION '${does.refuse}';`;
    return `
      CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN IF (${when}) THEN ${act} END IF; RETURN NEW; END $$;
      CREATE TRIGGER ${name} ${on} FOR EACH ROW EXECUTE FUNCTION ${name}();`;
  };
  return triggers.map(each).join("\n");
}
