import { dirname, resolve } from "node:path";
import { hasKey } from "../api/key.js";
import { EarlyExit, exitCode } from "../core/exit.js";
import type { Machine, OutputStream } from "../machine.js";
import { type FlagSet, nameOf } from "../options/definition.js";
import { ownVersion } from "../package-file.js";
import type { Flag } from "../store/schedules.js";
import { fromHome } from "../text/home.js";
import { nearest } from "../text/nearest.js";
import { type CommandDefinition, commandList, leadingCommands } from "./command-list.js";
import { completions } from "./completion.js";
import { commandHelp, programHelp } from "./help.js";
import { reportError } from "./output/ending.js";
import { asksForDocument, asksForJsonLines, withJsonLines } from "./output/json-stream.js";
import type { CommandLine } from "./parse.js";
import { topics } from "./topics.js";

/**
 * The whole program as a function: runs the command line and returns the exit code. It keeps nothing between two calls,
 * so that several can run in one process. Each command's module is loaded only when the command is called, and help and
 * version load nothing else, so that they start fast.
 */
export async function runCommand(argv: readonly string[], machine: Machine): Promise<number> {
  const isJson = asksForJsonLines(argv, machine) && !machine.stderr.isTTY;
  const streams: Streams = { machine: isJson ? withJsonLines(machine) : machine, isJson, hasPrinted: false };
  const { stdout } = machine;
  const watched = asksForDocument(argv) ? noticing(stdout, () => (streams.hasPrinted = true)) : stdout;
  streams.machine = { ...streams.machine, stdout: watched };
  try {
    return await dispatch(argv, streams);
  } catch (error) {
    const json = asksForDocument(argv) && !streams.hasPrinted;
    return reportError(error, streams.machine, { json, jsonLines: streams.isJson });
  }
}

/** Where a command prints, once it is known in which format. */
interface Streams {
  machine: Machine;
  /** Standard error has only JSON. */
  isJson: boolean;
  hasPrinted: boolean;
}

/** A stream that calls `noticed` before each write. */
function noticing(stream: OutputStream, noticed: () => void): OutputStream {
  return new Proxy(stream, {
    get(target, name) {
      if (name === "write") noticed();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function dispatch(argv: readonly string[], streams: Streams): Promise<number> {
  const { machine } = streams;
  const { stdout, stderr } = machine;
  if (argv[0] === "help") {
    const [, name = ""] = argv;
    const topic = topics.find((each) => each.name === name);
    if (topic) return print(stdout, topic.text());
    const near = nearest(
      name,
      [...commandList, ...topics].map((each) => each.name),
    );
    if (topics.some((each) => each.name === near))
      throw new EarlyExit("usage", `there is no help about ${JSON.stringify(name)}. Did you mean ${near}?`);
    return dispatch([...argv.slice(1), "--help"], streams);
  }
  const path = leadingCommands(commandList, argv);
  const [next] = argv.slice(path.length);
  if (next === "--help" || next === "-h" || argv.length === 0)
    return print(stdout, helpOf(path, stdout.columns));
  if (path.length === 0 && (next === "--version" || next === "-V")) return print(stdout, ownVersion());
  if (next === undefined && !path.at(-1)?.load) {
    print(stderr, helpOf(path, stderr.columns));
    return exitCode("usage");
  }
  if (path.length === 0 && next === "--get-completions")
    return print(stdout, completions(commandList, argv.slice(1)).join("\n"));
  const { parseLine } = await import("./parse.js");
  const line = withHome(parseLine(commandList, argv), machine);
  if (line.help) return print(stdout, helpOf(line.path, stdout.columns));
  return call(line, streams);
}

/** The line with paths from the home folder, which a shell leaves as they are behind a `=`. */
function withHome({ line, given, ...rest }: CommandLine, { env }: Machine): CommandLine {
  const flags: FlagSet = rest.path.at(-1)?.flags ?? {};
  const isPath = (attribute: string) => flags[attribute]?.isPath === true;
  const paths = Object.entries(line).map(([attribute, words]) => [
    attribute,
    isPath(attribute) ? words.map((word) => fromHome(word, env)) : words,
  ]);
  const names = new Set(
    Object.keys(flags)
      .filter(isPath)
      .map((attribute) => `--${nameOf(attribute)}`),
  );
  const expanded = given.map((flag): Flag => {
    const [name, value] = flag;
    return value !== undefined && names.has(name) ? [name, fromHome(value, env)] : flag;
  });
  return { ...rest, line: Object.fromEntries(paths), given: expanded };
}

function helpOf(path: readonly CommandDefinition[], columns: number | undefined): string {
  return path.length === 0 ? programHelp(commandList, columns) : commandHelp(path, columns);
}

function print(stream: Machine["stdout"], text: string): number {
  stream.write(`${text}\n`);
  return exitCode("done");
}

async function call({ path, line, given, args }: CommandLine, streams: Streams): Promise<number> {
  let { machine } = streams;
  const command = path.at(-1);
  if (!command?.load) {
    print(machine.stderr, helpOf(path, machine.stderr.columns));
    return exitCode("usage");
  }
  refuseKey(line, args);
  const [handler, flags] = await Promise.all([command.load(), flagsOf(command, line, args, machine)]);
  if (flags["logFormat"] === "json" && !streams.isJson && !machine.stderr.isTTY) {
    machine = withJsonLines(machine);
    Object.assign(streams, { machine, isJson: true });
  }
  try {
    if ("workspace" in (command.flags ?? {})) await agreeToFolder(command, line, args, flags, machine);
    const exit = await handler({ machine, flags, args, given } as never);
    return typeof exit === "number" ? exit : exitCode(exit ?? "done");
  } catch (error) {
    // "Nothing to resume": cron sends mail about whatever is printed.
    const isWell = error instanceof EarlyExit && error.exit === "done";
    if (isWell && flags["quiet"] && !flags["json"]) return exitCode("done");
    throw "workspace" in (command.flags ?? {}) ? await namingWorkspace(error, line, args, machine) : error;
  }
}

/**
 * Commands keep some of their words, and other programs see all of them. What is given in place of a key file has a message of
 * its own. Throws EarlyExit.
 */
function refuseKey(line: CommandLine["line"], args: CommandLine["args"]): void {
  const flags = Object.entries(line).filter(([attribute]) => attribute !== "apiKeyFile");
  const flag = flags.find(([, words]) => words.some(hasKey));
  if (
    flag === undefined &&
    !Object.values(args)
      .flat()
      .some((word) => hasKey(String(word)))
  )
    return;
  const where = flag === undefined ? "a word of this command" : `--${nameOf(flag[0])}`;
  throw new EarlyExit(
    "usage",
    `${where} has an API key in it. Other programs can read it there, and your shell has kept it. Nothing was sent. Revoke that key, and set BULKGEN_API_KEY to a new one, or save it in a file (--api-key-file).`,
  );
}

/** The values of a command's flags. Settings files and the environment apply to commands with a workspace. */
async function flagsOf(
  { flags = {} }: CommandDefinition,
  line: CommandLine["line"],
  args: CommandLine["args"],
  machine: Machine,
): Promise<Record<string, unknown>> {
  const { checkVariables, configFiles, flagValues } = await import("./settings/settings.js");
  if (!("workspace" in flags)) return flagValues(flags, line, [], {});
  checkVariables(machine.env);
  const { root } = await workspaceNamed(line, args, machine);
  return flagValues(flags, line, await configFiles(root, machine.env), machine.env);
}

/** Asks about what the folder's files set for this command. Throws EarlyExit for what this user does not agree to. */
async function agreeToFolder(
  { name, flags = {} }: CommandDefinition,
  line: CommandLine["line"],
  args: CommandLine["args"],
  values: Record<string, unknown>,
  machine: Machine,
): Promise<void> {
  const { configFiles, folderValues } = await import("./settings/settings.js");
  const workspace = await workspaceNamed(line, args, machine);
  const ofFolder = folderValues(flags, line, await configFiles(workspace.root, machine.env), machine.env);
  const sends = "trustAddress" in flags && name !== "doctor";
  const asksAddress = sends && machine.stdin.isTTY && !values["sandbox"] && !values["trustAddress"];
  const models = asksAddress && typeof values["models"] === "string" ? values["models"] : null;
  // It shows these itself.
  if (name === "trust" || (ofFolder.length === 0 && !asksAddress)) return;
  const { agreeToAddress, agreeToValues } = await import("./output/agreement.js");
  await agreeToValues(ofFolder, workspace, machine);
  if (models !== null) {
    const { modelsValues } = await import("./settings/own-service.js");
    const file = resolve(machine.cwd, models);
    const home = { ...workspace, root: dirname(file) };
    await agreeToValues(await modelsValues(file, machine), home, machine);
    return;
  }
  if (asksAddress) await agreeToAddress(values, workspace, machine);
}

async function workspaceNamed(line: CommandLine["line"], args: CommandLine["args"], machine: Machine) {
  const { workspaceOf } = await import("./settings/workspace.js");
  const workspace = line["workspace"]?.at(-1);
  const manifest = args["manifest"];
  return workspaceOf(
    workspace === undefined ? {} : { workspace },
    machine,
    typeof manifest === "string" ? manifest : undefined,
  );
}

/** Makes the commands in the message of an EarlyExit find its workspace when typed here. Other errors stay as they are. */
async function namingWorkspace(
  error: unknown,
  line: CommandLine["line"],
  args: CommandLine["args"],
  machine: Machine,
): Promise<unknown> {
  if (!(error instanceof EarlyExit)) return error;
  const { fromHere } = await import("./settings/workspace.js");
  try {
    const message = fromHere(
      error.message,
      await workspaceNamed(line, args, machine),
      line["sandbox"] !== undefined,
      machine,
    );
    return new EarlyExit(error.exit, message, error.problems, { cause: error });
  } catch {
    // What cannot be found out about the workspace is what the error says.
    return error;
  }
}
