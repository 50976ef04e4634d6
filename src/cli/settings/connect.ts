import { dirname, resolve } from "node:path";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import { type OpenAccount, openAccount, type ServiceConnection } from "../../job/workspace/account.js";
import { forLooking, type Workspace } from "../../job/workspace/workspace.js";
import { systemClock, systemRandom } from "../../system.js";
import type { SharedFlags } from "../flags/shared.js";
import { openLog } from "../output/log.js";
import { workspaceOf } from "../output/session.js";
import { interruption } from "../output/signals.js";
import { envFile, foreignAddress, inheritedEnvironment, type Setting, serviceSettings } from "./env.js";

export interface Connected {
  connection: ServiceConnection;
  close(): Promise<void>;
}

/**
 * The service that the flags and the environment name; starts the sandbox when it is asked for. What a person should
 * know of the settings is told before anything is sent. Throws EarlyExit.
 */
export async function connect(
  flags: SharedFlags,
  workspace: Workspace,
  { manifest, warn = onStderr }: { manifest?: string; warn?: (line: string) => void } = {},
): Promise<Connected> {
  return flags.sandbox
    ? connectSandbox(workspace, manifest)
    : { connection: remote(flags, workspace, warn), close: async () => {} };
}

function onStderr(line: string): void {
  process.stderr.write(`bulkgen: ${line}\n`);
}

async function connectSandbox(workspace: Workspace, manifest: string | undefined): Promise<Connected> {
  const { serveSandbox } = await import("../../sandbox/serve.js");
  const sandbox = await serveSandbox({
    clock: systemClock,
    random: systemRandom,
    file: workspace.serviceFile,
    // Local inputs are named from the manifest's folder.
    inputRoot: manifest === undefined ? workspace.root : dirname(resolve(manifest)),
  });
  return {
    connection: { origin: "sandbox", baseUrl: sandbox.url, key: sandbox.key, sandbox: true },
    close: () => sandbox.close(),
  };
}

function remote(flags: SharedFlags, workspace: Workspace, warn: (line: string) => void): ServiceConnection {
  const { baseUrl, key, warning } = serviceSettings(flags, workspace.root, inheritedEnvironment());
  if (warning) warn(warning);
  const missing = [
    ...(baseUrl?.value ? [] : ["the service's address (--base-url or BULKGEN_BASE_URL)"]),
    ...(key?.value ? [] : ["an API key (BULKGEN_API_KEY or --api-key-file)"]),
  ];
  if (!baseUrl?.value || !key?.value) {
    throw new EarlyExit(
      "usage",
      `missing: ${missing.join(" and ")}. Set it, in the environment or in ${envFile(workspace.root)}, or add --sandbox to rehearse without a key.`,
    );
  }
  const connection = { ...address(baseUrl.value), key: checkedKey(key), sandbox: false };
  const foreign = foreignAddress({ baseUrl, key }, connection.baseUrl, workspace.root);
  if (foreign) warn(foreign);
  return connection;
}

/** The key, when it has the form of one. Throws EarlyExit. */
export function checkedKey({ value, from }: Setting): string {
  if (isKeyForm(value)) return value;
  throw new EarlyExit(
    "key",
    `the API key from ${from} has the wrong form: expected svc_ and 32 letters or digits, got ${shapeOf(value)}. Nothing was sent.`,
  );
}

/** What can be said of a bad key without showing it. */
export function shapeOf(key: string): string {
  return `${key.length} characters ${key.startsWith("svc_") ? "beginning with svc_" : "that do not begin with svc_"}`;
}

/** A base URL that requests may go to, cleaned. Throws EarlyExit. */
export function address(baseUrl: string): { origin: string; baseUrl: string } {
  const expected = "expected an address such as https://service.example";
  if (!URL.canParse(baseUrl))
    throw new EarlyExit("usage", `base URL: ${expected}, got ${JSON.stringify(baseUrl)}`);
  const url = new URL(baseUrl);
  if (url.username || url.password || url.search || url.hash) {
    throw new EarlyExit("usage", `base URL: ${expected} without user, query or fragment`);
  }
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && local)) {
    throw new EarlyExit(
      "usage",
      `base URL: ${expected}, got ${url.protocol}//${url.host} (http only for this machine)`,
    );
  }
  const clean = url.origin + url.pathname.replace(/\/+$/, "");
  return { origin: clean, baseUrl: clean };
}

/** Opens the account for a command that only reads, and closes it after. */
export async function withAccount<Result>(
  flags: SharedFlags,
  use: (account: OpenAccount) => Promise<Result>,
): Promise<Result> {
  const workspace = forLooking(workspaceOf(flags), flags.sandbox ?? false);
  const log = await openLog(flags.logLevel);
  const { connection, close } = await connect(flags, workspace);
  try {
    const { accountsFile, stateFile } = workspace;
    const account = await openAccount({
      connection,
      accountsFile,
      stateFile,
      clock: systemClock,
      log,
      signal: interruption(),
      onDailyLimit: "stop",
    });
    try {
      return await use(account);
    } finally {
      await account.close();
    }
  } finally {
    await close();
  }
}
