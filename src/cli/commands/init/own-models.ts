import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseEnv } from "node:util";
import { EarlyExit } from "../../../core/exit.js";
import type { Machine } from "../../../machine.js";
import type { InitFlags, StarterName } from "../../../options/setup.js";
import { kinds } from "../../../serve/kinds.js";
import { readModelsFile } from "../../../serve/models/models-file.js";
import { agree } from "../../../trust/trust.js";
import { checkedAddress, checkedProxies } from "../../../workspace/connection.js";
import { firstJob, makeStarter, providerEnvText } from "../../../workspace/starter.js";
import { configName } from "../../settings/config-file.js";
import { envFile, keyFromFile } from "../../settings/env.js";
import { namingFile } from "../../settings/file-trouble.js";
import { modelsValues } from "../../settings/own-service.js";
import { workspaceOf } from "../../settings/workspace.js";
import { exampleStarter, type ModelsStarter, modelsName, workflowStarter } from "./models-starter.js";
import { askProviderKey, askWorkflow, isProviderKey, type Terminal } from "./questions.js";
import { made, stepsText } from "./report.js";

/** A first workspace with models of its own, instead of those of a service. */

/** The vendors whose keys are asked for, and where each gives them out. `untried`: no request of theirs costs nothing. */
const vendors: Partial<Record<StarterName, { title: string; page: string; untried?: true }>> = {
  openai: { title: "OpenAI", page: "https://platform.openai.com/api-keys" },
  fal: { title: "fal", page: "https://fal.ai/dashboard/keys", untried: true },
  replicate: { title: "Replicate", page: "https://replicate.com/account/api-tokens" },
  gemini: { title: "Google Gemini", page: "https://aistudio.google.com/apikey" },
  elevenlabs: { title: "ElevenLabs", page: "https://elevenlabs.io/app/settings/api-keys" },
};

type Flags = Pick<InitFlags, "workflow" | "baseUrl" | "apiKeyFile">;

/** Makes the workspace. Throws EarlyExit, and nothing was made then. */
export async function initOwnModels(
  name: StarterName,
  folder: string,
  flags: Flags,
  machine: Machine,
): Promise<undefined> {
  const { stdin, stdout, stderr, cwd } = machine;
  const signal = machine.interrupt();
  const terminal = stdin.isTTY && stderr.isTTY ? { input: stdin, output: stderr, signal } : null;
  checkFlags(name, flags);
  const starter = await starterOf(name, flags, folder, { machine, terminal });
  const sheet = sheetName(name, folder);
  const key = await keyFor(name, flags, folder, { machine, terminal });
  if (key !== null && key.value !== null) await tryKey(starter, key.value, machine);
  const started = await namingFile(folder, () =>
    makeStarter({
      folder,
      settings: key === null ? null : providerEnvText(key.variable, key.title, key.page, key.toWrite),
      files: { ...renamed(starter.files, firstJob, sheet), [configName]: `models: ${modelsName}\n` },
    }),
  );
  const mistakes = started.made.includes(modelsName) ? await agreeToOwn(folder, machine) : [];
  const wasKept = (file: string) => started.kept.includes(file);
  const isMissing = key !== null && key.value === null;
  const notes = [
    ...starter.notes,
    ...(flags.baseUrl !== undefined && vendors[name] !== undefined
      ? [
          `${modelsName} names the models and prices of ${vendors[name].title}: write those of ${flags.baseUrl} in their place`,
        ]
      : []),
    ...mistakes,
    ...(vendors[name]?.untried && !isMissing
      ? [`the key was not tried, because each request to ${vendors[name].title} may cost something`]
      : []),
    ...(key?.toWrite != null && wasKept(".env")
      ? [`the key was not written because .env existed: add ${key.variable}=… to it yourself`]
      : []),
    ...(key?.from === "environment"
      ? [`${key.variable} of the environment is used; .env has no copy of it`]
      : []),
    ...(machine.env["BULKGEN_BASE_URL"]
      ? ["BULKGEN_BASE_URL of the environment goes before these models: unset it to use them"]
      : []),
    ...(wasKept(configName) ? [`${configName} existed: add "models: ${modelsName}" to it yourself`] : []),
    ...(wasKept(modelsName) ? [`${modelsName} existed, and has no model of ${name} unless you add it`] : []),
  ];
  const steps: [string, string][] = [
    ...(isMissing ? [[`bulkgen serve check`, `once .env has ${key.variable}=…`] as [string, string]] : []),
    ...(isMissing
      ? []
      : [["bulkgen serve check", "check key, programs and servers; costs nothing"] as [string, string]]),
    [`bulkgen plan ${sheet}`, "check the sheet and its price"],
    [`bulkgen run ${sheet}`, "make it"],
    ["bulkgen gallery", "look at it"],
  ];
  const lines = [
    ...made(started),
    ...notes.map((note) => `note   ${note}`),
    "",
    ...stepsText(relative(cwd, folder), steps),
  ];
  stdout.write(`${lines.join("\n")}\n`);
}

/** A sheet that was there is for other models; it is left alone. */
function sheetName(name: StarterName, folder: string): string {
  const isThere = (file: string) => existsSync(join(folder, file));
  const own = `jobs/${name}.csv`;
  return isThere(firstJob) && (isThere(own) || !isThere(modelsName)) ? own : firstJob;
}

function renamed(files: Readonly<Record<string, string>>, from: string, to: string): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [name === from ? to : name, text]));
}

function checkFlags(name: StarterName, { workflow, apiKeyFile, baseUrl }: Flags): void {
  if (workflow !== undefined && name !== "comfyui")
    throw new EarlyExit(
      "usage",
      `--workflow is for --provider comfyui, not for ${name}. Nothing was created.`,
    );
  const isLocal = name === "command" || name === "template";
  if (baseUrl !== undefined && isLocal)
    throw new EarlyExit("usage", `--base-url: ${name} has no address. Nothing was created.`);
  if (apiKeyFile !== undefined && vendors[name] === undefined)
    throw new EarlyExit("usage", `--api-key-file: ${name} needs no key. Nothing was created.`);
}

interface Asking {
  machine: Machine;
  /** Null if nobody can be asked. */
  terminal: Terminal | null;
}

async function starterOf(
  name: StarterName,
  { workflow, baseUrl }: Flags,
  folder: string,
  { machine, terminal }: Asking,
): Promise<ModelsStarter> {
  const address = baseUrl === undefined ? undefined : providerAddress(baseUrl);
  if (name !== "comfyui") return exampleStarter(name, address);
  const file = workflow ?? (terminal === null ? undefined : await askWorkflow(terminal));
  if (file === undefined)
    throw new EarlyExit(
      "usage",
      "a model of ComfyUI is a workflow. Save one with Workflow → Export (API), and give it with --workflow FILE. Nothing was created.",
    );
  return workflowStarter({ file, address }, folder, machine);
}

/** Unlike that of a service, it may have a path, such as /v1. */
function providerAddress(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, "");
  return checkedAddress(text).baseUrl;
}

interface ProviderKey {
  variable: string;
  title: string;
  page: string;
  /** Null for "later". */
  value: string | null;
  from: "environment" | "settings" | "here";
  /** What goes to `.env`. */
  toWrite: string | null;
}

/** The key of a vendor; null if the provider has none. Throws EarlyExit if there is no key, and nobody to ask. */
async function keyFor(
  name: StarterName,
  { apiKeyFile, baseUrl }: Flags,
  folder: string,
  { machine, terminal }: Asking,
): Promise<ProviderKey | null> {
  const { env, cwd } = machine;
  const vendor = vendors[name];
  const kind = kinds.find((each) => each.name === name);
  const variable = kind?.defaults.keyEnv;
  if (vendor === undefined || variable === undefined || variable === null) return null;
  const key = (value: string | null, from: ProviderKey["from"]): ProviderKey => ({
    ...vendor,
    variable,
    value,
    from,
    toWrite: from === "here" ? value : null,
  });
  if (apiKeyFile !== undefined) {
    const value = keyFromFile(apiKeyFile, cwd).value;
    if (value !== "" && isProviderKey(value)) return key(value, "here");
    throw new EarlyExit(
      "usage",
      `--api-key-file: expected one key alone in ${apiKeyFile}. Nothing was created.`,
    );
  }
  if (env[variable]) return key(env[variable], "environment");
  const path = envFile(folder);
  if (existsSync(path)) return key(parseEnv(readFileSync(path, "utf8"))[variable] || null, "settings");
  if (terminal !== null) return key(await askProviderKey(vendor.title, vendor.page, terminal), "here");
  // A server of one's own that speaks OpenAI's API may want no key.
  if (baseUrl !== undefined && kind?.needsKey === false) return key(null, "here");
  throw new EarlyExit(
    "usage",
    `there is no terminal to ask for the key of ${vendor.title} on. Set ${variable}, or save the key in a file and give it with --api-key-file FILE. Nothing was created.`,
  );
}

/** Throws EarlyExit if the vendor refuses the key, or does not answer. */
async function tryKey(
  { files }: ModelsStarter,
  key: string,
  { clock, random, interrupt, env }: Machine,
): Promise<void> {
  const { models } = await readModelsFile(files[modelsName] ?? "", { file: modelsName, folder: ".", kinds });
  const provider = models[0]?.provider;
  const kind = kinds.find(({ name }) => name === provider?.kind);
  if (provider === undefined || kind === undefined) return;
  const proxies = checkedProxies(env);
  const open = kind.open(provider, { clock, random, folder: ".", key: () => key, env: {}, proxies });
  const problem =
    (await open.check?.(
      interrupt(),
      models.map(({ settings }) => settings),
    )) ?? null;
  await open.close?.();
  if (problem !== null) throw new EarlyExit("usage", `${problem}. Nothing was created.`);
}

/**
 * The user has just named what the file does, so it is agreed to, wherever the key will be. Returns the mistakes of a file that
 * needs a person first.
 */
async function agreeToOwn(folder: string, machine: Machine): Promise<string[]> {
  const { sharedFolder, root } = workspaceOf({ workspace: folder }, machine);
  const file = join(root, modelsName);
  const variables = kinds.flatMap(({ defaults: { keyEnv } }) => keyEnv ?? []);
  const set = Object.fromEntries(variables.map((name) => [name, "set"]));
  const unset = Object.fromEntries(variables.map((name) => [name, undefined]));
  try {
    for (const env of [set, unset])
      agree(sharedFolder, root, await modelsValues(file, { env }), machine.clock.now());
    return [];
  } catch (error) {
    if (error instanceof EarlyExit) return error.message.split("\n").slice(0, -1);
    throw error;
  }
}
