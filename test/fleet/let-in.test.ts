import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { newPlace, type Place, start } from "../e2e/command.js";
import { startPostgres, type TestPostgres } from "./postgres.js";

describe("a server that lets nobody in without", () => {
  let postgres: TestPostgres;
  let at: Place;
  const told = async (url: string, ...command: string[]) => {
    const { code, stderr } = await start(at, command.length > 0 ? command : ["status"], {
      env: { BULKGEN_DATABASE_URL: url },
    }).ended;
    return [code, stderr];
  };
  const role = async (name: string, way = "") => {
    const url = postgres.newWorkspace();
    const ask = (sql: string) => postgres.query(url, sql);
    await ask(`DROP ROLE IF EXISTS ${name}`);
    await ask(`CREATE ROLE ${name} LOGIN PASSWORD 'right'`);
    return url.replace("bulkgen@", `${name}${way}@`);
  };

  beforeAll(async () => {
    // Its rules are those of scripts/postgres.mjs, which a given server has not.
    postgres = await startPostgres({ mustStop: true });
  });
  afterAll(() => postgres.close());
  beforeEach(() => {
    at = newPlace();
  });

  test("a password is named with what to do, and the command ends", async () => {
    const url = await role("with_password");
    const missing = expect.stringMatching(
      /it asks for a password; put the password into its address: postgres:\/\/USER:PASSWORD@HOST\/DATABASE/,
    );
    expect(await told(url)).toEqual([4, missing]);
    expect(await told(url, "worker", "--only", "archive")).toEqual([4, missing]);
    await postgres.query(url, "GRANT CREATE ON DATABASE postgres TO with_password");
    expect(await told(url.replace("with_password@", "with_password:right@"), "fleet")).toEqual([0, ""]);
    await postgres.query(url, "REVOKE CREATE ON DATABASE postgres FROM with_password");
    await postgres.query(url, "DROP OWNED BY with_password CASCADE");
    expect(await told(await role("with_password", ":wrong"))).toEqual([
      4,
      expect.stringContaining("check the user and the password of its address"),
    ]);
  });

  test("TLS is named with what to do, and so is a server without it", async () => {
    const url = await role("with_tls");
    expect(await told(url)).toEqual([4, expect.stringContaining("add sslmode=verify-full to its address")]);
    expect(await told(`${url}&sslmode=require`)).toEqual([
      4,
      expect.stringMatching(
        /^bulkgen: the database [^\n]*: The server does not support SSL connections; take sslmode out/,
      ),
    ]);
  });
});
