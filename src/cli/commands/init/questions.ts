import type { Readable, Writable } from "node:stream";
import { isCancel, password, select, text } from "@clack/prompts";
import { isKeyForm } from "../../../api/key.js";
import { EarlyExit } from "../../../core/exit.js";
import { type StarterName, starterNames } from "../../../options/setup.js";
import { checkedAddress, shapeOf } from "../../../workspace/connection.js";

/** What init asks on a terminal. Each question throws EarlyExit when it is interrupted. */

export interface Terminal {
  input: Readable;
  output: Writable;
  /** Ends the question as Ctrl-C does. */
  signal: AbortSignal;
}

export interface ServiceAnswers {
  baseUrl: string | null;
  key: string | null;
}

/** Asks which service the workspace is for, except for what flags gave; or which provider, for models of the user's own. */
export async function askService(
  given: ServiceAnswers,
  terminal: Terminal,
): Promise<ServiceAnswers | { provider: StarterName }> {
  if (given.baseUrl === null && given.key === null) {
    const which = answered(
      await select({
        ...terminal,
        message: "Which service is this workspace for?",
        options: [
          { value: "sandbox", label: "The sandbox on this machine", hint: "no key, no cost" },
          { value: "service", label: "The service", hint: "needs its address and an API key" },
          {
            value: "own",
            label: "Models of your own",
            hint: "a vendor's key, ComfyUI, programs or templates",
          },
        ],
      }),
    );
    if (which === "sandbox") return given;
    if (which === "own") return { provider: await askProvider(terminal) };
  }
  return {
    baseUrl: given.baseUrl ?? (await askBaseUrl(terminal)),
    key: given.key ?? (await askKey(terminal)),
  };
}

async function askBaseUrl(terminal: Terminal): Promise<string> {
  const entered = answered(
    await text({
      ...terminal,
      message: "The service's address",
      placeholder: "https://service.example",
      validate: (value) => objection(value ?? ""),
    }),
  );
  return checkedAddress(entered.trim()).baseUrl;
}

async function askKey(terminal: Terminal): Promise<string | null> {
  const entered = answered(
    await password({
      ...terminal,
      message: "The API key (hidden; press Enter to add it later)",
      validate: (value) => {
        const key = (value ?? "").trim();
        if (key === "" || isKeyForm(key)) return undefined;
        return `expected svc_ and 32 letters or digits, got ${shapeOf(key)}`;
      },
    }),
  );
  return entered?.trim() || null;
}

async function askProvider(terminal: Terminal): Promise<StarterName> {
  const options = starterNames.map((value) => ({ value, label: value }));
  return answered(await select({ ...terminal, message: "Which one first?", options }));
}

/** Null for "later". */
export async function askProviderKey(
  title: string,
  page: string,
  terminal: Terminal,
): Promise<string | null> {
  const entered = answered(
    await password({
      ...terminal,
      message: `Your key of ${title}, from ${page} (hidden; press Enter to add it later)`,
      validate: (value) =>
        isProviderKey(value ?? "") ? undefined : "a key has no blanks or quotes; paste it alone",
    }),
  );
  return entered?.trim() || null;
}

/** What can stand in `.env` as it is. */
export function isProviderKey(text: string): boolean {
  return /^[^\s"'`#]{0,4000}$/.test(text.trim());
}

export async function askWorkflow(terminal: Terminal): Promise<string> {
  const message = "The workflow's file, as ComfyUI saves it with Workflow → Export (API)";
  return answered(await text({ ...terminal, message, placeholder: "workflow_api.json" })).trim();
}

function objection(value: string): string | undefined {
  try {
    checkedAddress(value.trim());
    return undefined;
  } catch (error) {
    if (error instanceof EarlyExit) return error.message;
    throw error;
  }
}

function answered<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new EarlyExit("interrupted", "interrupted. Nothing was created.");
  return answer as Exclude<Answer, symbol>;
}
