import diagnostics from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import files from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";
import { isMainThread } from "node:worker_threads";
import { openSqlite, type Sqlite } from "../../src/sqlite.js";
import { lastWords, type Point, pointVariable } from "./points.js";

/**
 * Loaded before the built command (`node --import …/failpoints.js dist/bin/bulkgen.js …`): has the process kill itself
 * with SIGKILL the n-th time it comes to a named point. The points are put around what the product calls (files,
 * SQLite, undici's announcements), so the product itself knows nothing of them.
 */
const [wanted = "", nth = "1"] = (process.env[pointVariable] ?? "").split(":");
let left = Number(nth);

function reach(point: Point): void {
  if (point !== wanted || --left > 0) return;
  writeSync(2, `${lastWords} ${point}\n`);
  process.kill(process.pid, "SIGKILL");
}

if (isMainThread && wanted !== "") {
  watchFiles();
  watchDatabases();
  watchRequests();
}

function watchFiles(): void {
  const { open, link, unlink } = files;
  Object.assign(files, {
    async open(...args: Parameters<typeof open>) {
      const handle = await open(...args);
      watchHandle(handle, String(args[0]));
      return handle;
    },
    async link(...args: Parameters<typeof link>) {
      await link(...args);
      if (isTemporary(args[0].toString())) reach("file-linked");
    },
    async unlink(...args: Parameters<typeof unlink>) {
      await unlink(...args);
      if (isTemporary(args[0].toString())) reach("temporary-removed");
    },
  });
  syncBuiltinESMExports();
}

/** A file on its way into the archive. */
function isTemporary(path: string): boolean {
  return /^\.bulkgen-.*\.part$/.test(basename(path));
}

function watchHandle(handle: FileHandle, path: string): void {
  const name = basename(path);
  const isReceipts = name === "receipts.jsonl";
  if (!isReceipts && name !== "index.jsonl" && !isTemporary(name)) return;
  let what: "intent-line" | "answer-line" | "index-line" | "file" = isTemporary(name) ? "file" : "index-line";
  const write = handle.write.bind(handle) as (...args: unknown[]) => Promise<unknown>;
  const sync = handle.sync.bind(handle);
  Object.assign(handle, {
    write(bytes: Uint8Array, ...rest: unknown[]) {
      const isIntent = isReceipts && Buffer.from(bytes).includes('"type":"intent"');
      if (isReceipts) what = isIntent ? "intent-line" : "answer-line";
      return write(bytes, ...rest);
    },
    async sync() {
      reach(`${what}-written`);
      await sync();
      reach(`${what}-synced`);
    },
  });
}

type Commit = "place" | "entry" | "booked" | "verdict" | "intent" | "answer" | "end" | "row";

/** What a commit is about: the database, a statement that only this transaction holds, and the point's name. */
const commits: readonly [file: string, statement: RegExp, name: Commit][] = [
  ["accounts.db", /^\s*INSERT INTO requests/, "place"],
  ["accounts.db", /^\s*INSERT INTO spend_log/, "entry"],
  ["accounts.db", /^\s*UPDATE spend_log SET outcome/, "booked"],
  ["accounts.db", /^\s*UPDATE spend_log SET verdict/, "verdict"],
  ["state.db", /^\s*INSERT INTO attempts/, "intent"],
  ["state.db", /^\s*UPDATE attempts SET outcome/, "answer"],
  ["state.db", /^\s*INSERT INTO outputs/, "end"],
  ["state.db", /^\s*UPDATE outputs SET file = \?/, "row"],
];

function watchDatabases(): void {
  const sample = openSqlite(":memory:");
  // That of the package: the command has a class of its own upon it, as this process has.
  let prototype: Pick<Sqlite, "prepare" | "transaction"> = sample;
  while (!Object.hasOwn(prototype, "transaction")) prototype = Object.getPrototypeOf(prototype);
  sample.close();
  const { prepare, transaction } = prototype;
  const ran = new WeakMap<object, Set<string>>();
  Object.assign(prototype, {
    prepare(this: Sqlite, text: string) {
      const statement = prepare.call(this, text);
      // An insert that returns its row is asked as a query is.
      for (const how of ["run", "get"] as const) {
        const act = statement[how].bind(statement) as (...values: unknown[]) => never;
        statement[how] = (...values: unknown[]) => {
          ran.get(this)?.add(text);
          return act(...values);
        };
      }
      return statement;
    },
    transaction(this: Sqlite, work: (...args: unknown[]) => unknown) {
      const tell = (when: "before-commit" | "committed") => {
        if (basename(this.name) === "accounts.db") reach(`accounts-${when}`);
        for (const text of ran.get(this) ?? [])
          for (const [file, statement, name] of commits)
            if (basename(this.name) === file && statement.test(text)) reach(`${name}-${when}`);
      };
      const watched = transaction.call(this, (...args: unknown[]) => {
        const result = work(...args);
        tell("before-commit");
        return result;
      });
      // The transactions of many lanes are savepoints of one that they share: they are committed with it.
      const committed =
        (run: (...args: unknown[]) => unknown) =>
        (...args: unknown[]) => {
          if (this.inTransaction) return run(...args);
          ran.set(this, new Set());
          const result = run(...args);
          tell("committed");
          return result;
        };
      return Object.assign(committed(watched), {
        deferred: committed(watched.deferred),
        immediate: committed(watched.immediate),
        exclusive: committed(watched.exclusive),
      });
    },
  });
}

function watchRequests(): void {
  const on = (channel: string, point: Point, method: string, path: RegExp) =>
    diagnostics.subscribe(channel, (message) => {
      const { request } = message as { request: { method: string; path: string } };
      if (request.method === method && path.test(request.path)) reach(point);
    });
  const generate = /\/generate$/;
  on("undici:request:create", "request-made", "POST", generate);
  // Announced when the headers have been put together, before they are written to the socket.
  on("undici:client:sendHeaders", "request-about-to-leave", "POST", generate);
  on("undici:request:bodySent", "request-sent", "POST", generate);
  on("undici:request:headers", "answer-begun", "POST", generate);
  on("undici:request:trailers", "answer-read", "POST", generate);
  on("undici:request:headers", "look-answered", "GET", /\/task\//);
}
