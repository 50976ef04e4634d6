import type { Readable, Writable } from "node:stream";
import { isCancel, password, select, text } from "@clack/prompts";
import { isKeyForm } from "../../api/key.js";
import { EarlyExit } from "../../core/exit.js";
import { address, shapeOf } from "../settings/connect.js";

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

/** Asks which service the workspace is for; what was given as a flag is not asked. Throws EarlyExit when it is cut off. */
export async function askService(given: ServiceAnswers, terminal: Terminal): Promise<ServiceAnswers> {
  if (given.baseUrl === null && given.key === null) {
    const which = answered(
      await select({
        ...terminal,
        message: "What shall this workspace work with?",
        options: [
          { value: "sandbox", label: "The sandbox on this machine", hint: "no key, no cost" },
          { value: "service", label: "The service", hint: "needs its address and an API key" },
        ],
      }),
    );
    if (which === "sandbox") return given;
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
  return address(entered.trim()).baseUrl;
}

async function askKey(terminal: Terminal): Promise<string | null> {
  const entered = answered(
    await password({
      ...terminal,
      message: "The API key (hidden; Enter leaves it for later)",
      validate: (value) => {
        const key = (value ?? "").trim();
        if (key === "" || isKeyForm(key)) return undefined;
        return `expected svc_ and 32 letters or digits, got ${shapeOf(key)}`;
      },
    }),
  );
  return entered?.trim() || null;
}

function objection(value: string): string | undefined {
  try {
    address(value.trim());
    return undefined;
  } catch (error) {
    if (error instanceof EarlyExit) return error.message;
    throw error;
  }
}

function answered<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new EarlyExit("interrupted", "cut off; nothing was made");
  return answer as Exclude<Answer, symbol>;
}
