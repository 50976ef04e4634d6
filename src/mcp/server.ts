import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { AlarmClock } from "../clock.js";
import { exitCode, isRefusal } from "../core/exit.js";
import { type Launch, type LaunchedCommand, lineOf } from "../launch.js";
import { isOfFiles, manifestFolder } from "../manifest/folder.js";
import { leaves } from "../text/within.js";
import { type Tool, tools } from "./tools.js";

export interface AgentTools {
  /** The folder of the workspace. */
  root: string;
  sandbox: boolean;
  launch: Launch;
  clock: AlarmClock;
  version: string;
}

/** What every tool answers. */
const answer = z.object({
  command: z.string().describe("the command that was run, as it would be typed"),
  exit: z.number().nullable().describe("its exit code; null while it is still running"),
  document: z.unknown().describe("what the command prints with --json; null if it printed nothing"),
  message: z.string().describe("what else it said: progress, warnings, or why it was refused"),
});

type Answer = z.infer<typeof answer>;

/** Milliseconds after which a command that takes long is answered while it goes on. */
const patienceMs = 20_000;
const messageCharactersMax = 4_000;
/** A list may have an entry for each row of a sheet, and all of them would fill an agent's context. */
const entriesMax = 50;

/** The tools of a workspace. Commands keep running when the server ends, so that nothing that was paid for is lost. */
export function agentServer(options: AgentTools): McpServer {
  const { sandbox, version } = options;
  const server = new McpServer(
    { name: "bulkgen", version },
    {
      instructions: `bulkgen generates images, video and audio in bulk from sheets in ${options.root}, and pays for each item in credits${sandbox ? " (sandbox: nothing is really paid)" : ""}. Call plan before run. Every tool that spends credits needs a cap and never spends more. Messages name shell commands: call the tool of that name instead; if there is none, tell the user the command to type.`,
    },
  );
  for (const tool of tools)
    server.registerTool(
      tool.name,
      {
        title: tool.title,
        description: tool.describe,
        inputSchema: tool.input,
        outputSchema: answer,
        annotations: {
          readOnlyHint: tool.looks === true,
          destructiveHint: tool.looks !== true,
          openWorldHint: true,
        },
      },
      async (given) => {
        const { said, isError } = await done(options, tool, given as Readonly<Record<string, unknown>>);
        return { content: [{ type: "text", text: JSON.stringify(said) }], structuredContent: said, isError };
      },
    );
  return server;
}

interface Done {
  said: Answer;
  isError: boolean;
}

async function done(
  options: AgentTools,
  tool: Tool,
  given: Readonly<Record<string, unknown>>,
): Promise<Done> {
  let words: string[];
  try {
    const manifest = given["manifest"];
    words = tool.words(
      manifest === undefined ? given : { ...given, manifest: manifestIn(options.root, String(manifest)) },
    );
  } catch (error) {
    return {
      said: { command: "", exit: 2, document: null, message: (error as Error).message },
      isError: true,
    };
  }
  const own = [...words, "--json", ...(options.sandbox ? ["--sandbox"] : [])];
  const launched = options.launch(own);
  const over = new AbortController();
  const patience =
    tool.takesLong === true ? options.clock.sleep(patienceMs, over.signal).then(() => "long" as const) : null;
  const ended = launched.ended.then((exit) => ({ exit }));
  const first = await (patience === null ? ended : Promise.race([ended, patience]));
  over.abort("ended");
  if (first === "long") return goesOn(own, launched);
  const { said, isError } = saidBy(own, launched, first.exit);
  const { document, cuts } = shortened(without(said.document, tool.leavesOut), tool);
  const message = [said.message, ...cuts].filter((line) => line !== "").join("\n");
  return { said: { ...said, document, message }, isError };
}

/** The path of a manifest, as a word. Throws for one that is not in the workspace, or is neither a file nor of files. */
function manifestIn(root: string, given: string): string {
  const path = resolve(root, given);
  let real: string;
  try {
    real = realpathSync(isOfFiles(path) ? manifestFolder(path) : path);
  } catch {
    throw new Error(`there is no file ${JSON.stringify(given)} in the workspace ${root}`);
  }
  if (leaves(realpathSync(root), real) || !(isOfFiles(path) || statSync(real).isFile()))
    throw new Error(`expected a file in the workspace ${root}, got ${JSON.stringify(given)}`);
  return path;
}

function goesOn(words: readonly string[], { stderr }: LaunchedCommand): Done {
  const last = stderr().trim().split("\n").at(-1) ?? "";
  const message = `The command is still running; follow it with status. ${last}`.trim();
  return {
    said: {
      command: lineOf(words),
      exit: null,
      document: null,
      message: message.slice(0, messageCharactersMax),
    },
    isError: false,
  };
}

function saidBy(words: readonly string[], { stdout, stderr }: LaunchedCommand, code: number | null): Done {
  const exit = code ?? exitCode("crash");
  const document = documentOf(stdout());
  const message = stderr().trim().slice(-messageCharactersMax);
  // A run that ends with failed or held items has done what it could, and its document says so.
  return {
    said: { command: lineOf(words), exit, document, message },
    isError: exit !== 0 && (document === null || isRefusal(document)),
  };
}

function without(document: unknown, field: string | undefined): unknown {
  if (field === undefined || typeof document !== "object" || document === null) return document;
  return Object.fromEntries(Object.entries(document).filter(([name]) => name !== field));
}

/** A document whose long lists are cut, and what was cut. */
export function shortened(
  document: unknown,
  { whole, newestLast }: Pick<Tool, "whole" | "newestLast">,
): { document: unknown; cuts: string[] } {
  if (whole === true || typeof document !== "object" || document === null) return { document, cuts: [] };
  const cuts: string[] = [];
  const cut = (value: unknown, name: string): unknown => {
    if (!Array.isArray(value) || value.length <= entriesMax) return value;
    const which = newestLast === true ? "last" : "first";
    cuts.push(`document has only the ${which} ${entriesMax} of ${value.length} ${name}`);
    return newestLast === true ? value.slice(-entriesMax) : value.slice(0, entriesMax);
  };
  if (Array.isArray(document)) return { document: cut(document, "entries"), cuts };
  const fields = Object.entries(document).map(([name, value]) => [name, cut(value, name)]);
  return { document: Object.fromEntries(fields), cuts };
}

function documentOf(text: string): unknown {
  if (text.trim() === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
