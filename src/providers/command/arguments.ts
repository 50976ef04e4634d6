import { posix, win32 } from "node:path";
import { nearest } from "../../text/nearest.js";
import { LiquidMistake, type LiquidText, liquidText } from "../liquid.js";
import { JobRefused, type Mistake } from "../provider.js";

/**
 * The words of a program. No shell reads them, so nothing in a prompt is special to a shell. Two things still can be: a word
 * that begins with `-` is an option to most programs, and `sh -c` or `python -c` run a word as code. The first is refused when
 * it comes from a client before any `--`; the second already in the models file.
 */

/** What every model can use besides its params. */
const ownNames = ["prompt", "image", "video", "audio", "out", "folder"] as const;

/** A word that is a value and nothing else is at a client's mercy, and so is one that begins with a value. */
const beginsWithValue = /^\s*\{[{%]/;

/** Of the values, the prompt may be anything for sure. */
const beginsWithPrompt = /^\s*\{\{-?\s*prompt\b/;

/** Programs that run a word, a file or their stdin as code. */
const interpreters =
  /^(sh|bash|dash|ash|zsh|ksh|fish|cmd|powershell|pwsh|python[\d.]*|node|deno|bun|perl|ruby|php|osascript)(\.exe)?$/i;
/** Programs that run the program among their words. */
const launchers = /^(env|nice|ionice|nohup|timeout|time|stdbuf|sudo|doas|setsid|busybox|xvfb-run)(\.exe)?$/i;

export interface ProgramWords {
  command: readonly string[];
  stdin?: string | undefined;
}

/** The words with these values. Throws `JobRefused` for a value that would be an option. */
export function filledWords(command: readonly string[], values: Readonly<Record<string, unknown>>): string[] {
  const words: string[] = [];
  let areOptionsOver = false;
  for (const written of command) {
    const word = liquidText(written).filled(values);
    if (!areOptionsOver && beginsWithValue.test(written) && word.startsWith("-"))
      throw new JobRefused(
        "parameter",
        `${JSON.stringify(word.slice(0, 40))} begins with a dash, which the program would take for an option`,
        false,
      );
    if (word.includes("\0"))
      throw new JobRefused("input", "a value has a NUL character, which no program takes", false);
    areOptionsOver ||= written === "--";
    // What `{% if %}` leaves out is no empty word.
    if (word === "" && written.includes("{%")) continue;
    words.push(word);
  }
  return words;
}

/** What is wrong with the words of a model. */
export function wordMistakes(
  { command, stdin }: ProgramWords,
  input: string,
  params: readonly string[],
): Mistake[] {
  const known = [...ownNames, ...params];
  const taken = params.filter((name) => (ownNames as readonly string[]).includes(name));
  const texts = [
    ...command.map((text, index) => ({ text, path: ["command", index] })),
    ...(stdin === undefined ? [] : [{ text: stdin, path: ["stdin"] }]),
  ];
  const read = texts.map(({ text, path }) => ({ path, ...readText(text, known) }));
  const used = new Set(read.flatMap(({ names }) => names));
  const isUsed = (name: string) => used.has(name);
  const needed = input === "text+image" ? ["prompt", "image"] : input === "text" ? ["prompt"] : [input];
  return [
    ...taken.map((name) => ({
      path: ["params", name],
      message: `${name} is a name that every command has: choose another`,
    })),
    ...read.flatMap(({ path, mistakes }) => mistakes.map((message) => ({ path, message }))),
    ...programMistakes(command),
    ...optionMistakes(command),
    ...codeMistakes({ command, stdin }),
    ...needed
      .filter((name) => !isUsed(name))
      .map((name) => ({
        path: ["command"],
        message: `does not use {{ ${name} }}, which the model takes as input`,
      })),
    ...params
      .filter((name) => !isUsed(name) && !taken.includes(name))
      .map((name) => ({
        path: ["params", name],
        message: `is not used: expected {{ ${name} }} in command or stdin`,
      })),
  ];
}

function readText(text: string, known: readonly string[]): { names: readonly string[]; mistakes: string[] } {
  let read: LiquidText;
  try {
    read = liquidText(text);
  } catch (error) {
    if (!(error instanceof LiquidMistake)) throw error;
    return { names: [], mistakes: [error.message] };
  }
  const mistakes = read.names
    .filter((name) => !known.includes(name))
    .map((name) => {
      const meant = nearest(name, known);
      return `{{ ${name} }} is no param of this model. ${meant === undefined ? `There are ${known.join(", ")}` : `Did you mean {{ ${meant} }}?`}`;
    });
  return { names: read.names, mistakes };
}

function programMistakes([program = ""]: readonly string[]): Mistake[] {
  if (!/\{[{%]/.test(program)) return [];
  return [
    {
      path: ["command", 0],
      message:
        "the program has to be named as it is, without {{ }}; a path such as ./draw.sh starts at the models file",
    },
  ];
}

/** A word at which a prompt would be an option. */
function optionMistakes(command: readonly string[]): Mistake[] {
  const end = command.indexOf("--");
  return command.flatMap((written, index) => {
    const isSafe = index === 0 || (end >= 0 && end < index) || !beginsWithPrompt.test(written);
    return isSafe
      ? []
      : [
          {
            path: ["command", index],
            message:
              'a prompt such as "-rf" would be an option here: put "--" before it, write it as --prompt={{ prompt }}, or use stdin: "{{ prompt }}"',
          },
        ];
  });
}

/** A word, or the stdin, that would be run as code although a client has a say in it. */
function codeMistakes({ command, stdin = "" }: ProgramWords): Mistake[] {
  const launches = launchers.test(programName(command[0] ?? ""));
  const index = command.findIndex(
    (word, at) => (at === 0 || launches) && interpreters.test(programName(word)),
  );
  if (index < 0) return [];
  // Code stands behind an option; a script is the first word that is no option.
  const after = command.slice(index + 1).findIndex((word) => !/^[-/]\w|^--/.test(word));
  const code = after < 0 ? -1 : index + 1 + after;
  const name = programName(command[index] ?? "");
  const message = `${name} would run what the values say as code: let the code take them as arguments, as in [sh, -c, 'draw "$1"', --, "{{ prompt }}"]`;
  if (code >= 0 && command[code] !== "-")
    return hasValues(command[code]) ? [{ path: ["command", code], message }] : [];
  return hasValues(stdin) ? [{ path: ["stdin"], message }] : [];
}

function programName(word: string): string {
  return (word.includes("\\") ? win32 : posix).basename(word);
}

/** Whether a client has a say in a text: only the folder is the operator's. */
function hasValues(text = ""): boolean {
  return /\{[{%]/.test(text.replace(/\{\{-?\s*folder\s*-?\}\}/g, ""));
}
