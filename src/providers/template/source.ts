import { readFileSync, statSync } from "node:fs";
import { extname, resolve } from "node:path";
import { type LiquidText, liquidText } from "../liquid.js";

/** A template as it lies on the disk. */
export interface TemplateSource {
  path: string;
  kind: "html" | "svg";
  text: string;
  liquid: LiquidText;
}

/** Thrown if a template cannot be used; the message is one sentence for people. */
export class TemplateMistake extends Error {
  override readonly name = "TemplateMistake";
}

const templateBytesMax = 8 * 1024 * 1024;

const kinds: Readonly<Record<string, TemplateSource["kind"]>> = {
  ".html": "html",
  ".htm": "html",
  ".svg": "svg",
};

/** Reads a template; `name` is relative to `folder` or absolute. Throws TemplateMistake, and LiquidMistake. */
export function readTemplate(folder: string, name: string): TemplateSource {
  const kind = kinds[extname(name).toLowerCase()];
  if (kind === undefined) throw new TemplateMistake(`${name} is no template: expected a file .html or .svg`);
  const path = resolve(folder, name);
  let text: string;
  try {
    const facts = statSync(path);
    if (!facts.isFile()) throw new TemplateMistake(`${name} is not a file`);
    if (facts.size > templateBytesMax) throw new TemplateMistake(`${name} is too large for a template`);
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof TemplateMistake) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new TemplateMistake(
      code === "ENOENT" ? `there is no file ${name}` : `${name} cannot be read (${code})`,
    );
  }
  return {
    path,
    kind,
    text,
    liquid: liquidText(text, { escape: kind === "svg" ? escapedXml : escapedText }),
  };
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

/** A value as text in HTML, also in an attribute. */
function escapedText(value: unknown): string {
  return String(value ?? "").replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** XML has no way to write most control characters. */
function escapedXml(value: unknown): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  return escapedText(value).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/gu, "");
}

/** A file that an SVG refers to, which nothing would load. */
export function fileInSvg(text: string): string | null {
  const found = /<(?:image|use|feImage)\b[^>]*?\bhref\s*=\s*["'](?!#|data:|\{\{)([^"']*)/i.exec(text);
  const style = /url\(\s*["']?(?!#|data:|\{\{)([^"')\s]+)/i.exec(text);
  return found?.[1] ?? style?.[1] ?? null;
}

/** An address that a page may not have: whatever is not in the template's folder is not there. */
export function awayInHtml(text: string): string | null {
  const found =
    /(?:<(?!a\b)\w[^>]*?\b(?:src|href|poster)\s*=\s*["']?|url\(\s*["']?|@import\s+["'])((?:file|https?):[^"')>\s]+)/i.exec(
      text,
    );
  return found?.[1] ?? null;
}
