import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { ServeFlags, ServeStateFlags } from "../../../options/serve.js";
import type { OwnService } from "../../../serve/own-service.js";
import { servePage } from "../../../serve/page/serve-page.js";
import { isLoopbackHost } from "../../../service/http/http.js";
import { count } from "../../../text/amounts.js";
import { shellWord } from "../../../text/shell.js";
import { table } from "../../../text/table.js";
import { shortText } from "../../../text/terminal.js";
import { sharedFolderOf } from "../../../workspace/workspace.js";
import { agreeToValues } from "../../output/agreement.js";
import { print } from "../../output/print.js";
import { fileTrouble } from "../../settings/file-trouble.js";
import {
  checkedProviders,
  holdService,
  modelsValues,
  readModels,
  waitingText,
} from "../../settings/own-service.js";
import { agreeToState, stateValues } from "../../settings/service-state.js";
import type { Call } from "../call.js";
import { servedFolder } from "./state.js";

/** Serves a models file until Ctrl-C or SIGTERM. */
export async function serve({
  flags,
  args: { models = "models.yaml" },
  machine,
}: Call<ServeFlags, { models?: string }>): Promise<undefined> {
  const file = resolve(machine.cwd, models);
  const publicUrl = checkedReach(flags);
  const tls = tlsOf(flags, machine);
  const read = await readModels(file);
  const folder = servedFolder(flags, machine, models);
  const agreeing = trustCommand(file, flags.state);
  await agreeToModels(file, machine, { states: [folder], command: agreeing });
  const place = { root: folder, sharedFolder: sharedFolderOf(machine.env) };
  await agreeToValues(stateValues(folder, machine), place, machine, agreeing);
  agreeToState(folder, machine, place.sharedFolder);
  const { host, port } = flags;
  const reach = { host, port, ...(publicUrl === undefined ? {} : { publicUrl }), ...tls };
  const running = await holdService(file, machine, { folder, ...reach }).catch((error) => {
    throw startProblem(error, flags);
  });
  if (running === null)
    throw new EarlyExit("locked", `another process serves from ${folder} already. Nothing was started.`);
  try {
    const { clock, random } = machine;
    const { keys } = running.service;
    const isNew = keys.list().length === 0;
    const key = isNew
      ? keys.create({ name: "first", plan: "Pro", credits: null, perMonth: null, perDay: null }, clock.now())
      : undefined;
    const { url, service } = running;
    service.onFailed = sayingFailures(service, machine);
    const page = await servePage({ service, clock, random, url });
    const shown: { url: string; key?: string | undefined; page: string } = { url, key, page: page.link };
    print(flags, machine, "serve", shown, () =>
      [
        `${count(read.models.length, "model")} of ${models} served at ${url}. Press Ctrl-C to stop.`,
        ...(publicUrl === undefined ? [] : [`  it listens at ${running.ownUrl}`]),
        `  page: ${page.link}`,
        ...(key === undefined
          ? ["  keys: bulkgen serve keys create NAME"]
          : [`  export BULKGEN_BASE_URL=${url}`, `  export BULKGEN_API_KEY=${key}   (shown only this once)`]),
      ].join("\n"),
    );
    await new Promise<void>((done) =>
      machine
        .interrupt(() => {
          const { unanswered } = service.works;
          if (unanswered > 0) machine.stderr.write(`bulkgen: ${waitingText(unanswered)}\n`);
        })
        .addEventListener("abort", () => done(), { once: true }),
    );
    await page.close();
  } finally {
    await running.close();
  }
}

/** The most lines about failed jobs in a minute. */
const failuresMax = 20;

/** Says on stderr which jobs fail. Of a model that fails always nobody reads every line. */
function sayingFailures({ keys }: OwnService, { clock, stderr }: Machine): OwnService["onFailed"] {
  let since = clock.now();
  let failed = 0;
  return ({ model, keyId, id }, why) => {
    if (clock.now() - since >= 60_000) [since, failed] = [clock.now(), 0];
    failed++;
    if (failed > failuresMax) return;
    const key = keys.list().find((known) => known.id === keyId)?.name ?? "";
    const line = `a job of ${model} for ${key} failed (task ${id}): ${why.replace(/^The provider failed: /, "")}`;
    stderr.write(`bulkgen: ${shortText(line, 500)}\n`);
    if (failed === failuresMax)
      stderr.write(
        `bulkgen: ${failuresMax} jobs failed within a minute; the others of this minute are counted on the page alone\n`,
      );
  };
}

/** The address for clients, if it is not the one that is listened on. Keys cross no network in the clear. Throws EarlyExit. */
function checkedReach({ host, tlsCert, tlsKey, behindProxy }: ServeFlags): string | undefined {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new EarlyExit("usage", "--tls-cert and --tls-key belong together");
  if (behindProxy !== undefined) {
    const url = URL.canParse(behindProxy) ? new URL(behindProxy) : null;
    // The addresses of outputs are below it, and the service finds its own among inputs by their origin.
    if (url?.protocol !== "https:" || url.pathname !== "/" || url.search !== "" || url.hash !== "")
      throw new EarlyExit(
        "usage",
        `--behind-proxy: expected the address of the proxy without a path, such as https://models.example.com, got ${behindProxy}`,
      );
    return url.origin;
  }
  if (!isLoopbackHost(host) && tlsCert === undefined)
    throw new EarlyExit(
      "usage",
      `on ${host} others can reach it, and keys would cross the network in the clear. Add --tls-cert and --tls-key, or --behind-proxy https://… if a proxy in front of it speaks https. Nothing was started.`,
    );
  return undefined;
}

/** Certificate and key, which clients will find in order. Throws EarlyExit. */
function tlsOf({ tlsCert, tlsKey }: ServeFlags, { cwd }: Machine): { tls?: { cert: string; key: string } } {
  if (tlsCert === undefined || tlsKey === undefined) return {};
  const [certFile, keyFile] = [resolve(cwd, tlsCert), resolve(cwd, tlsKey)];
  const [cert, key] = [pemFile("--tls-cert", certFile), pemFile("--tls-key", keyFile)];
  const certificate = parsedPem(
    `--tls-cert: ${certFile} has no certificate in PEM form`,
    () => new X509Certificate(cert),
  );
  const isEncrypted = key.includes("ENCRYPTED");
  const problem = isEncrypted
    ? "needs a passphrase; write one without it, as with `openssl pkey -in KEY -out PLAIN`"
    : "has no private key in PEM form";
  const privateKey = parsedPem(`--tls-key: ${keyFile} ${problem}`, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey))
    throw new EarlyExit("usage", `--tls-key: ${keyFile} is not the key of the certificate in ${certFile}`);
  return { tls: { cert, key } };
}

function pemFile(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new EarlyExit("usage", `${name}: ${fileTrouble(error, path)}`);
  }
}

function parsedPem<Parsed>(problem: string, parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch {
    throw new EarlyExit("usage", problem);
  }
}

function startProblem(error: NodeJS.ErrnoException, { host, port }: ServeFlags): Error {
  if (error.code === "EADDRINUSE")
    return new EarlyExit(
      "usage",
      `port ${port} of ${host} is in use by another program. Choose another with --port.`,
    );
  if (error.code === "EACCES" && error.syscall === "listen")
    return new EarlyExit(
      "usage",
      `port ${port} needs more rights than you have. Choose another with --port.`,
    );
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
    return new EarlyExit("usage", `--host: this machine has no address ${host}`);
  return error;
}

/** Checks each provider with its models. */
export async function checkModels({
  flags,
  args: { models = "models.yaml" },
  machine,
}: Call<ServeStateFlags, { models?: string }>): Promise<undefined> {
  const file = resolve(machine.cwd, models);
  await agreeToModels(file, machine);
  const shown = await checkedProviders(file, machine);
  print(flags, machine, "serve-check", shown, (style) =>
    table(
      [
        { title: "provider" },
        { title: "kind" },
        { title: "models", flexible: true },
        { title: "", flexible: true },
      ],
      shown.map((each) => [each.provider, each.kind, each.models.join(", "), each.problem ?? "good"]),
      style,
    ),
  );
  if (shown.some(({ problem }) => problem !== null))
    throw new EarlyExit("usage", "not every model can be used; see above");
}

/** Asks for what the file does with keys and programs, once. Throws EarlyExit for a no, and if nobody can be asked. */
async function agreeToModels(
  file: string,
  machine: Machine,
  { states = [], command = trustCommand(file) }: { states?: string[]; command?: string } = {},
): Promise<void> {
  const root = dirname(file);
  const place = { root, sharedFolder: sharedFolderOf(machine.env) };
  await agreeToValues(await modelsValues(file, machine, states), place, machine, command);
}

function trustCommand(file: string, state?: string): string {
  return `bulkgen trust --models ${shellWord(file)}${state === undefined ? "" : ` --state ${shellWord(state)}`}`;
}
