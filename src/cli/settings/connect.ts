import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { EarlyExit } from "../../core/exit.js";
import type { Log } from "../../core/ports/send.js";
import type { Machine } from "../../machine.js";
import { manifestFolder } from "../../manifest/folder.js";
import type { SharedFlags } from "../../options/shared.js";
import type { SandboxModel } from "../../sandbox/catalogue/model.js";
import { terminalText } from "../../text/terminal.js";
import { agree, notAgreed } from "../../trust/trust.js";
import { type OpenAccount, openAccount, type ServiceConnection } from "../../workspace/account.js";
import { checkedAddress, checkedKey, checkedProxies } from "../../workspace/connection.js";
import { forReading, type Workspace } from "../../workspace/workspace.js";
import { envFile, foreignAddress, serviceSettings } from "./env.js";
import { waitPrinter } from "./wait-printer.js";
import { workspaceOf } from "./workspace.js";

export interface Connected {
  connection: ServiceConnection;
  close(): Promise<void>;
}

interface ConnectOptions {
  manifest?: string;
  warn?: (line: string) => void;
  /** The command only reads, and ends soon. */
  isBrief?: boolean;
}

/**
 * The service that the flags and the environment name; starts the sandbox if that is asked for. Warnings about the
 * settings are printed before anything is sent. Throws EarlyExit.
 */
export async function connect(
  flags: SharedFlags,
  machine: Machine,
  workspace: Workspace,
  { manifest, warn, isBrief = false }: ConnectOptions = {},
): Promise<Connected> {
  if (flags.sandbox) return connectSandbox(machine, workspace, { manifest, models: flags.models });
  if (flags.models !== undefined) {
    const { connectOwnService } = await import("./own-service.js");
    const file = resolve(machine.cwd, flags.models);
    return connectOwnService(file, machine, workspace, { trust: flags.trustAddress ?? false, isBrief });
  }
  const onStderr = (line: string) => machine.stderr.write(`bulkgen: ${line}\n`);
  return { connection: remote(flags, machine, workspace, warn ?? onStderr), close: async () => {} };
}

async function connectSandbox(
  { clock, random, cwd, mediaSide }: Machine,
  workspace: Workspace,
  { manifest, models }: { manifest: string | undefined; models: string | undefined },
): Promise<Connected> {
  const { serveSandbox } = await import("../../sandbox/serve.js");
  const sandbox = await serveSandbox({
    clock,
    random,
    mediaSide,
    ...(models === undefined ? {} : { models: await playedModels(resolve(cwd, models)) }),
    file: workspace.serviceFile,
    // Paths of local inputs start from the manifest's folder.
    inputRoot: manifest === undefined ? workspace.root : manifestFolder(resolve(cwd, manifest)),
  });
  return {
    connection: { origin: "sandbox", baseUrl: sandbox.url, key: sandbox.key, sandbox: true },
    close: () => sandbox.close(),
  };
}

/** The models of a models file, which the sandbox plays: nothing of what the file says is started or asked. */
async function playedModels(file: string): Promise<SandboxModel[]> {
  const [{ readModels }, { played }] = await Promise.all([
    import("./own-service.js"),
    import("../../sandbox/catalogue/model-file.js"),
  ]);
  return played((await readModels(file)).models.map(({ listed }) => listed));
}

function remote(
  flags: SharedFlags,
  machine: Machine,
  workspace: Workspace,
  warn: (line: string) => void,
): ServiceConnection {
  const { baseUrl, key, warning } = serviceSettings(flags, workspace.root, machine);
  if (warning) warn(warning);
  const missing = [
    ...(baseUrl?.value ? [] : ["the service's address (--base-url or BULKGEN_BASE_URL)"]),
    ...(key?.value ? [] : ["an API key (BULKGEN_API_KEY or --api-key-file)"]),
  ];
  if (!baseUrl?.value || !key?.value) {
    const file = envFile(workspace.root);
    const them = missing.length === 1 ? "it" : "them";
    const how = existsSync(file)
      ? `Set ${them}, in ${file} or in the environment`
      : `\`bulkgen init\` asks for ${them} and writes ${file}; a script sets ${them} in the environment`;
    throw new EarlyExit(
      "usage",
      `missing: ${missing.join(" and ")}. ${how}. Or add --models FILE for models of your own, or --sandbox to rehearse without a key.`,
    );
  }
  const proxies = checkedProxies(machine.env);
  const ofKey = { key: checkedKey(key), keyFrom: key.from };
  const connection: ServiceConnection = {
    ...checkedAddress(baseUrl.value),
    ...ofKey,
    addressFrom: baseUrl.from,
    trustAddress: flags.trustAddress ?? false,
    sandbox: false,
    proxies,
  };
  const foreign = foreignAddress({ baseUrl, key }, workspace);
  const { sharedFolder, root } = workspace;
  if (foreign === null || notAgreed(sharedFolder, root, [foreign]).length === 0) return connection;
  if (!flags.trustAddress)
    throw new EarlyExit(
      "usage",
      `the key from ${key.from} would be sent to ${terminalText(foreign.value)}, the address set in ${foreign.from}, and the folder may come from somebody else. Nothing was sent. If that address is your service, run \`bulkgen trust\` or add --trust-address once; otherwise set BULKGEN_BASE_URL to your own.`,
    );
  agree(sharedFolder, root, [foreign], machine.clock.now());
  return connection;
}

/** Opens the account for a command that only reads, and closes it afterwards. */
export async function withAccount<Result>(
  { flags, machine, log }: { flags: SharedFlags; machine: Machine; log: Log },
  use: (account: OpenAccount) => Promise<Result>,
): Promise<Result> {
  const workspace = forReading(workspaceOf(flags, machine), flags.sandbox ?? false);
  const { connection, close } = await connect(flags, machine, workspace, { isBrief: true });
  try {
    const account = await openAccount({
      connection,
      place: workspace,
      clock: machine.clock,
      log,
      signal: machine.interrupt(),
      onDailyLimit: "stop",
      onWait: waitPrinter(machine),
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
