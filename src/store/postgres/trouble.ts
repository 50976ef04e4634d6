import { EarlyExit } from "../../core/exit.js";
import { DatabaseTrouble } from "../open.js";
import type { DatabaseAddress } from "./address.js";

/** How the driver says that the address has no password. */
const noPassword = /password must be a (non-empty )?string/;

/**
 * What messages of PostgreSQL and of the driver mean to a person, if the code does not say it; the first match counts.
 */
const words: readonly (readonly [RegExp, string])[] = [
  [/asks for a password/, "put the password into its address: postgres://USER:PASSWORD@HOST/DATABASE"],
  [/does not support SSL/, "take sslmode out of its address, or set it up for TLS (ssl = on)"],
  [/pg_hba\.conf.*no encryption/, "it may take only TLS: add sslmode=verify-full to its address"],
  [/pg_hba\.conf/, "let that user in from this machine in its pg_hba.conf"],
  // A connection that has ended has no code.
  [
    /connection terminated|not queryable|timeout expired|timeout exceeded when trying to connect|Client was closed/i,
    "see that it runs and that this machine reaches it",
  ],
];
/** What the codes of PostgreSQL and of connections mean; the first match counts. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/^(28P01|28000)$/, "check the user and the password of its address"],
  [/^3D000$/, "create that database, or correct its name in the address"],
  [/^42501$/, "give its user the right to create and use the schema"],
  [/^25006$/, "use the server that takes writes: this one is read-only"],
  [/^53100$/, "free some space on its disk"],
  [/^53300$/, "allow it more connections (max_connections)"],
  [
    /^(08...|57P0.|ECONN.*|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EPIPE)$/,
    "see that it runs and that this machine reaches it",
  ],
  [
    /CERT|_SIGNATURE$/,
    "name the file of its authority in the address (sslmode=verify-full&sslrootcert=FILE), and the host as its certificate does",
  ],
];

/** The error as a DatabaseTrouble, which names the database and, if that is known, says what to do. */
export function explained(error: unknown, { shown }: Pick<DatabaseAddress, "shown">): unknown {
  if (!(error instanceof Error) || error instanceof DatabaseTrouble) return error;
  // Where a name has several addresses, each was tried.
  const cause = error instanceof AggregateError ? (error.errors[0] as Error) : error;
  const { code = "", message: received } = cause as Error & { code?: string };
  const message = noPassword.test(received) ? "it asks for a password" : received;
  const todo = meaningOf(words, message) ?? meaningOf(meanings, code);
  return todo === null ? error : new DatabaseTrouble(`the database ${shown}: ${message}`, todo, { cause });
}

function meaningOf(known: readonly (readonly [RegExp, string])[], text: string): string | null {
  return known.find(([pattern]) => pattern.test(text))?.[1] ?? null;
}

/** The driver is not installed with bulkgen, because most users never need it. */
export async function driver(): Promise<Pick<typeof import("pg"), "Client" | "Pool">> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new EarlyExit(
      "usage",
      "a database URL needs the package pg, which is not installed. Nothing was sent. Install it where bulkgen is: npm install pg",
    );
  }
}

/** Whether a package is not installed. The built command loads packages by `require`, which has a code of its own for it. */
export function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND";
}
