/** A PostgreSQL database that has the state of a workspace. */
export interface DatabaseAddress {
  /** For the driver: user, password, host and database. */
  url: string;
  /** The schema that is the workspace. */
  schema: string;
  /** The address for people, without its password. */
  shown: string;
}

const defaultSchema = "bulkgen";
/** Rehearsals have a schema of their own, as they have a folder of their own. */
const rehearsalEnd = "_sandbox";
/** Short enough for the names that are made of it: `_sandbox`, and `_queue` of the fleet. */
const schemaPattern = /^[a-z_][a-z0-9_]{0,35}$/;

/** Reads `postgres://user@host/database?schema=NAME`. Throws an error that says what is wrong; it has no password. */
export function databaseAddress(text: string, { sandbox }: { sandbox: boolean }): DatabaseAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  // A password with / # or ? ends the host too early: the text after it would be shown, and is the rest of the
  // password.
  const isCut = url !== null && (url.hash !== "" || `${url.pathname}${url.search}`.includes("@"));
  if (url === null || isCut || !/^postgres(ql)?:$/.test(url.protocol))
    throw new Error(
      "expected postgres://USER:PASSWORD@HOST/DATABASE, with each character of the password that is not a letter or digit encoded (@ as %40, / as %2F, # as %23, ? as %3F)",
    );
  const schema = url.searchParams.get("schema") ?? defaultSchema;
  if (/^(pg_|information_schema$)/.test(schema))
    throw new Error(
      `expected a schema of your own, got ${JSON.stringify(schema)}, which belongs to PostgreSQL itself`,
    );
  if (!schemaPattern.test(schema))
    throw new Error(
      `expected a schema of at most 36 lower-case letters, digits and _, got ${JSON.stringify(schema)}`,
    );
  // They would replace the schema, and the name by which others see who has the lock.
  for (const name of ["options", "application_name"])
    if (url.searchParams.has(name))
      throw new Error(`expected an address without ?${name}=, which bulkgen sets`);
  url.searchParams.delete("schema");
  // The driver treats these as verify-full too, and warns about it in each process.
  if (["prefer", "require", "verify-ca"].includes(url.searchParams.get("sslmode") ?? ""))
    if (!url.searchParams.has("uselibpqcompat")) url.searchParams.set("sslmode", "verify-full");
  const shown = new URL(url);
  shown.password = "";
  shown.search = schema === defaultSchema ? "" : `schema=${schema}`;
  return {
    url: url.href,
    schema: sandbox ? `${schema}${rehearsalEnd}` : schema,
    shown: shown.href,
  };
}
