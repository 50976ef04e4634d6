import { createHash, createHmac } from "node:crypto";
import { existsSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { parseEnv } from "node:util";
import { keyPrefix } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import { ownModelsOrigin } from "../../core/identity.js";
import type { Machine } from "../../machine.js";
import type { ProviderKind } from "../../providers/kind.js";
import type { CheckedProvider } from "../../serve/check.js";
import type { OwnModel } from "../../serve/models/models-file.js";
import type { RunningService, ServedOptions } from "../../serve/serve.js";
import { isLoopbackHost } from "../../service/http/http.js";
import { takeLock } from "../../store/lock.js";
import { count } from "../../text/amounts.js";
import { leavesReally } from "../../text/inside.js";
import { shellWord } from "../../text/shell.js";
import { agree, type FolderValue, notAgreed, shownFolderValue, unagreed } from "../../trust/trust.js";
import { makeFolders, makeWholeNow, writeWholeNow } from "../../whole-file.js";
import type { ServiceConnection } from "../../workspace/account.js";
import { checkedProxies } from "../../workspace/connection.js";
import { sharedFolderOf, type Workspace } from "../../workspace/workspace.js";
import { envFile, isLinkedAway } from "./env.js";
import { fileTrouble } from "./file-trouble.js";

/** The service of a models file: what it may do, where it is, and in which process it runs. */

/** What a models file does on this machine or with this user's keys, each as a value that the user agrees to. */
export async function modelsValues(
  file: string,
  machine: Pick<Machine, "env">,
  /** The folders of the service's state, whose unfinished jobs go on as they were taken. */
  states: readonly string[] = [],
): Promise<FolderValue[]> {
  const [{ models, ...more }, { kinds }, { openJobs }] = await Promise.all([
    readModels(file),
    import("../../serve/kinds.js"),
    import("./service-state.js"),
  ]);
  const all = [...models, ...states.flatMap(openJobs)];
  return valuesOf({ ...more, models: all }, { file, env: machine.env, kinds });
}

/** What the values of a models file depend on. */
interface ValuePlace {
  file: string;
  env: Machine["env"];
  kinds: readonly ProviderKind[];
}

type Reaching = Pick<OwnModel, "settings" | "provider">;

function valuesOf(
  { models, allowedHosts }: { models: readonly Reaching[]; allowedHosts: readonly string[] },
  place: ValuePlace,
): FolderValue[] {
  const fromFolder = isLinkedAway(dirname(place.file)) ? {} : folderEnv(dirname(place.file));
  const values = models.flatMap((model) => valuesOfModel(model, place, fromFolder));
  if (allowedHosts.length > 0)
    values.push({ setting: "inputs.allow", value: allowedHosts.join(", "), from: place.file });
  return [...new Map(values.map((each) => [`${each.setting} ${each.value}`, each])).values()];
}

function valuesOfModel(
  { settings, provider }: Reaching,
  { file: from, env, kinds }: ValuePlace,
  fromFolder: Record<string, string | undefined>,
): FolderValue[] {
  const { name, kind, addresses, keyEnv, keyFile } = provider;
  const reach = kinds.find((each) => each.name === kind)?.reach?.(provider, settings, dirname(from)) ?? {};
  const values = (reach.values ?? []).map((each) => ({ ...each, from }));
  // A key in the folder's own .env came with the folder, and goes where the folder says.
  const isOwnKey = keyEnv !== null && env[keyEnv] === undefined && fromFolder[keyEnv] !== undefined;
  const key =
    keyFile === null ? (keyEnv !== null && !isOwnKey ? `$${keyEnv}` : null) : keyPath(keyFile, from);
  const places = [...new Set([...addresses.map(plainAddress), ...(reach.addresses ?? [])])];
  if (places.length === 0) return values;
  const value = `${kind} at ${places.join(" and ")}${key === null ? "" : ` with the key in ${key}`}`;
  return [...values, { setting: `provider ${name}`, value, from }];
}

/** The address as requests are sent to it, in ASCII: letters of other alphabets could look like those of a known host. */
function plainAddress(address: string): string {
  const { origin, pathname } = new URL(address);
  return origin + (pathname === "/" ? "" : pathname);
}

/** Where a key file really is, if that is not in the folder of the models file. */
function keyPath(keyFile: string, file: string): string {
  const path = resolve(dirname(file), keyFile);
  return leavesReally(dirname(file), path) && existsSync(path) ? realpathSync(path) : keyFile;
}

/** Why models may not be used yet, with the command that helps; null if the user has agreed to all that they do. */
function refusalOf(place: ValuePlace, sharedFolder: string): NonNullable<ServedOptions["refusal"]> {
  return (models) => {
    const { file } = place;
    const asked = notAgreed(sharedFolder, dirname(file), valuesOf(models, place));
    if (asked.length === 0) return null;
    const values = asked.map(shownFolderValue).join("; ");
    return `you have not agreed to this on this machine: ${values}. Run \`bulkgen trust --models ${shellWord(file)}\` to look and agree.`;
  };
}

/** The models of a file. Throws EarlyExit with every mistake. */
export async function readModels(file: string) {
  const [{ readModelsFile, ModelsFileError }, { kinds }] = await Promise.all([
    import("../../serve/models/models-file.js"),
    import("../../serve/kinds.js"),
  ]);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new EarlyExit("usage", `--models: ${fileTrouble(error, file)}`);
  }
  try {
    return await readModelsFile(text, { file, folder: dirname(file), kinds });
  } catch (error) {
    if (error instanceof ModelsFileError) throw new EarlyExit("usage", `${error.message}\nNothing was sent.`);
    throw error;
  }
}

/** Each provider of a models file, with whether its programs or its server are there and its key is good. Costs nothing. */
export async function checkedProviders(file: string, machine: Machine): Promise<CheckedProvider[]> {
  const [{ OwnService }, { checkProviders }, { kinds }] = await Promise.all([
    import("../../serve/own-service.js"),
    import("../../serve/check.js"),
    import("../../serve/kinds.js"),
  ]);
  const { models } = await readModels(file);
  const { clock, random } = machine;
  const env = providerEnv(models, file, machine);
  const proxies = checkedProxies(machine.env);
  const options = {
    clock,
    random,
    folder: ":memory:",
    file,
    kinds,
    env,
    proxies,
    onNote: () => {},
  };
  const service = await OwnService.open(options, () => "");
  try {
    return await checkProviders(service);
  } finally {
    await service.close();
  }
}

/** The variables of the folder's `.env`. */
function folderEnv(root: string): Record<string, string | undefined> {
  const path = envFile(root);
  return existsSync(path) ? parseEnv(readFileSync(path, "utf8")) : {};
}

/**
 * Where the keys of providers are: the environment, else the `.env` beside the models file. Of that, only the variables that the
 * file names.
 */
function providerEnv(
  models: readonly OwnModel[],
  file: string,
  { env }: Pick<Machine, "env">,
): Record<string, string | undefined> {
  const beside = folderEnv(dirname(file));
  const named = models.flatMap(({ provider: { keyEnv } }) =>
    keyEnv === null ? [] : [[keyEnv, env[keyEnv] ?? beside[keyEnv]]],
  );
  return { ...env, ...Object.fromEntries(named) };
}

/** The folder of the service's state in a workspace. */
export function serviceFolder({ serviceFile }: Pick<Workspace, "serviceFile">): string {
  return join(dirname(serviceFile), "service");
}

/**
 * The service of a models file for this workspace: that of another process if one has it already, else one in this process, which
 * ends with it. Throws EarlyExit.
 */
export async function connectOwnService(
  file: string,
  machine: Machine,
  workspace: Workspace,
  { trust, isBrief }: { trust: boolean; isBrief: boolean },
): Promise<{ connection: ServiceConnection; close(): Promise<void> }> {
  const { root, sharedFolder } = workspace;
  const folder = serviceFolder(workspace);
  const { agreeToState, refuseLinkedState, stateValues } = await import("./service-state.js");
  refuseLinkedState(root, folder);
  const values = await modelsValues(file, machine, [folder]);
  const home = dirname(file);
  if (trust) agree(sharedFolder, home, values, machine.clock.now());
  const asked = notAgreed(sharedFolder, home, values);
  if (asked.length > 0) throw unagreed(home, asked, `bulkgen trust --models ${shellWord(file)}`);
  const ofState = notAgreed(sharedFolder, folder, stateValues(folder, machine));
  if (ofState.length > 0 && !trust)
    throw unagreed(root, ofState, `bulkgen trust --models ${shellWord(file)}`);
  const { key, userId } = identityOf(sharedFolder, root, machine);
  const connection = (baseUrl: string): ServiceConnection => ({
    origin: ownModelsOrigin,
    baseUrl,
    key,
    keyFrom: file,
    addressFrom: file,
    trustAddress: true,
    sandbox: false,
  });
  const own = { key, userId, name: "this workspace" };
  // A workspace that was never used gets no folder from a command that only reads.
  if (!existsSync(workspace.markerFolder)) {
    const running = await started(file, machine, { folder: ":memory:" });
    await admit(running, own, machine);
    return { connection: connection(running.url), close: () => running.close() };
  }
  agreeToState(folder, machine, sharedFolder);
  const running = await holdInTurn(file, machine, { folder, isBrief });
  if (typeof running === "string") {
    await admitOwnKey(folder, own, machine);
    return { connection: connection(running), close: async () => {} };
  }
  await admit(running, own, machine);
  const close = async () => {
    const { unanswered } = running.service.works;
    if (unanswered > 0) machine.stderr.write(`bulkgen: ${waitingText(unanswered)}\n`);
    await running.close();
  };
  return { connection: connection(running.url), close };
}

/** How long (ms) a command waits for one that will end soon, or has only begun. */
const turnMs = { brief: 60_000, starting: 5_000 };

/**
 * Serves a models file as soon as no other process does; the address of the other process's service if that one lasts, or if this
 * command only reads, too. The service of a command that only reads would end in the middle of a run. Throws EarlyExit.
 */
async function holdInTurn(
  file: string,
  machine: Machine,
  options: HoldOptions & { folder: string },
): Promise<RunningService | string> {
  const { clock, stderr } = machine;
  const { folder, isBrief } = options;
  const signal = machine.interrupt();
  let isSaid = false;
  for (let waited = 0; !signal.aborted; waited += stepMs) {
    const running = await holdService(file, machine, options);
    if (running !== null) return running;
    const noted = readNoted(addressFile(folder, sharedFolderOf(machine.env)));
    if (noted?.isBrief === false) return noted.url;
    if (noted === null && waited >= turnMs.starting)
      throw lockedBy(
        "another process",
        "does not say where it is: it is just starting, or serves others too",
      );
    if (noted !== null && waited >= turnMs.brief) {
      if (isBrief) return noted.url;
      throw lockedBy("a command that only reads", "has not ended for a minute");
    }
    if (waited >= 1_000 && !isSaid) {
      stderr.write("bulkgen: waiting for another command that uses the models of this workspace\n");
      isSaid = true;
    }
    await clock.sleep(stepMs, signal);
  }
  throw new EarlyExit("interrupted", "interrupted. Nothing was sent.");
}

const stepMs = 200;

function lockedBy(who: string, why: string): EarlyExit {
  return new EarlyExit(
    "locked",
    `${who} has the service of this workspace's models, and ${why}. Nothing was sent. Give the command again in a moment, or set BULKGEN_BASE_URL and a key of that service.`,
  );
}

/** What is said while paid requests have no answer yet. */
export function waitingText(unanswered: number): string {
  return `waiting for ${count(unanswered, "answer")} of the providers, which ${unanswered === 1 ? "is" : "are"} paid for (Ctrl-C ends it at once)`;
}

/** Where the address of a service that runs is: not in its folder, which may come from somebody else. */
function addressFile(folder: string, sharedFolder: string): string {
  const name = createHash("sha256").update(realpathSync(folder)).digest("hex").slice(0, 16);
  return join(sharedFolder, "services", `${name}.json`);
}

interface HoldOptions extends Pick<ServedOptions, "folder" | "host" | "port" | "publicUrl" | "tls"> {
  /** The command only reads, and ends soon. */
  isBrief?: boolean;
}

/** A service that runs, as other commands find it. */
interface NotedService {
  url: string;
  isBrief: boolean;
}

/**
 * Serves a models file from a folder until it is closed; null if another process does. Other commands of this user on this machine
 * find its address.
 */
export async function holdService(
  file: string,
  machine: Machine,
  { isBrief = false, ...options }: HoldOptions,
): Promise<RunningService | null> {
  const { folder, host = "127.0.0.1" } = options;
  makeFolders(folder, 0o700);
  const lock = takeLock(join(folder, "service.lock"));
  if (lock === null) return null;
  const noted = addressFile(folder, sharedFolderOf(machine.env));
  let running: RunningService | null = null;
  try {
    // That of a process that was killed.
    rmSync(noted, { force: true });
    running = await started(file, machine, options);
    const { ownUrl: url, close: end } = running;
    // Not the public one: from here, the name of a proxy may lead nowhere.
    if (isLoopbackHost(host)) {
      makeFolders(dirname(noted), 0o700);
      writeWholeNow(noted, JSON.stringify({ url, isBrief } satisfies NotedService));
    }
    const close = async () => {
      rmSync(noted, { force: true });
      await end();
      lock.release();
    };
    return { ...running, close };
  } catch (error) {
    await running?.close();
    lock.release();
    throw error;
  }
}

async function started(
  file: string,
  machine: Machine,
  options: Pick<ServedOptions, "folder" | "host" | "port" | "publicUrl" | "tls">,
): Promise<RunningService> {
  const [{ serveModels }, { kinds }] = await Promise.all([
    import("../../serve/serve.js"),
    import("../../serve/kinds.js"),
  ]);
  const { models } = await readModels(file);
  const { clock, random } = machine;
  const env = providerEnv(models, file, machine);
  const onNote = (note: string) => machine.stderr.write(`bulkgen: ${note}\n`);
  const proxies = checkedProxies(machine.env);
  const refusal = refusalOf({ file, env: machine.env, kinds }, sharedFolderOf(machine.env));
  try {
    return await serveModels({ ...options, clock, random, file, kinds, env, proxies, refusal, onNote });
  } catch (error) {
    const isRefused = (error as Error).name === "ModelsRefused";
    throw isRefused ? new EarlyExit("usage", `${(error as Error).message} Nothing was sent.`) : error;
  }
}

/** Lets a workspace use the service that runs here; if that fails, nothing runs on without its command. */
async function admit(running: RunningService, own: OwnKey, { clock }: Pick<Machine, "clock">): Promise<void> {
  try {
    running.service.keys.own(own, clock.now());
  } catch (error) {
    await running.close();
    throw error;
  }
}

type OwnKey = Parameters<RunningService["service"]["keys"]["own"]>[0];

/** Lets a workspace use the service that another process has, such as `bulkgen serve`. */
async function admitOwnKey(
  folder: string,
  own: OwnKey,
  { clock, random }: Pick<Machine, "clock" | "random">,
): Promise<void> {
  const [{ openState }, { ServedKeys }] = await Promise.all([
    import("./service-state.js"),
    import("../../serve/keys.js"),
  ]);
  const state = openState(folder);
  try {
    new ServedKeys(state, random).own(own, clock.now());
  } finally {
    state.close();
  }
}

/**
 * Key and user of a workspace's own service, from a secret of this user on this machine. The key opens nothing but that service,
 * and is kept nowhere.
 */
function identityOf(
  sharedFolder: string,
  root: string,
  { random }: Pick<Machine, "random">,
): { key: string; userId: string } {
  const path = join(sharedFolder, "own-service.secret");
  if (!existsSync(path)) {
    makeFolders(sharedFolder, 0o700);
    makeWholeNow(path, `${random.uuid()}${random.uuid()}`, 0o600);
  }
  const secret = readFileSync(path, "utf8");
  const made = (what: string) => createHmac("sha256", secret).update(`${what} ${root}`).digest("hex");
  const user = made("user");
  return {
    key: `${keyPrefix}${made("key").slice(0, 32)}`,
    userId: `${user.slice(0, 8)}-${user.slice(8, 12)}-4${user.slice(13, 16)}-8${user.slice(17, 20)}-${user.slice(20, 32)}`,
  };
}

function readNoted(path: string): NotedService | null {
  try {
    const { url, isBrief } = JSON.parse(readFileSync(path, "utf8")) as Partial<NotedService>;
    return URL.canParse(url ?? "") ? { url: url as string, isBrief: isBrief === true } : null;
  } catch {
    return null;
  }
}
