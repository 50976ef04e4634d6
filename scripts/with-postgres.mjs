#!/usr/bin/env node
/** Runs a program of Node with a PostgreSQL of its own, whose address it finds in TEST_DATABASE_URL. */
import { spawn } from "node:child_process";
import { startOwnPostgres } from "./postgres.mjs";

const given = process.env.TEST_DATABASE_URL;
const database = given === undefined ? await startOwnPostgres() : { url: given, stop: async () => {} };
const child = spawn(process.execPath, process.argv.slice(2), {
  env: { ...process.env, TEST_DATABASE_URL: database.url },
  stdio: "inherit",
});
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
child.once("close", async (code) => {
  await database.stop();
  process.exitCode = code ?? 1;
});
