import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { isOutside } from "../../text/inside.js";
import { decodedText } from "../formats/encoding.js";
import { TemplateFault, type TemplateProblem } from "./template.js";

/** `@prompts/winter.txt`; any other text that begins with `@` is an ordinary prompt. */
const named = /^@(\S(?:.*\S)?\.(?:txt|md|liquid))$/i;

/** The file that a prompt names, or null. */
export function promptFile(prompt: string): string | null {
  return prompt.includes("@") ? (named.exec(prompt.trim())?.[1] ?? null) : null;
}

const bytesMax = 1_000_000;

/** Reads the prompt files of a manifest, each once, and only from its folder. */
export class PromptFiles {
  private readonly read = new Map<string, string | TemplateProblem>();

  constructor(private readonly folder: string) {}

  /** The text of a file, without the line break at its end. Throws TemplateFault. */
  text(name: string): string {
    let found = this.read.get(name);
    if (found === undefined) {
      found = this.readOne(name);
      this.read.set(name, found);
    }
    if (typeof found === "string") return found;
    throw new TemplateFault(found);
  }

  private readOne(name: string): string | TemplateProblem {
    const wrong = (why: string) => ({
      message: `the prompt file cannot be used: ${why}`,
      expected: "a text file in the manifest's folder",
      got: name,
    });
    const path = resolve(this.folder, name);
    try {
      if (isOutside(this.folder, name)) return wrong("it lies outside the manifest's folder");
      const facts = statSync(path);
      if (!facts.isFile()) return wrong("it is not a file");
      if (facts.size > bytesMax) return wrong(`it has more than ${bytesMax} bytes`);
      const read = decodedText(path, readFileSync(path));
      return "problem" in read ? wrong(read.problem.message) : read.text.replace(/\r?\n$/, "");
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const missing = code === "ENOENT" || code === "ENOTDIR";
      return wrong(missing ? "there is no such file" : `it cannot be read (${code ?? message})`);
    }
  }
}
