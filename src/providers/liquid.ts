import { Liquid } from "liquidjs";

/** A text with Liquid in it, such as an argument of a program or a page. */
export interface LiquidText {
  /** The variables that it takes from outside, sorted. */
  names: readonly string[];
  /** The text with these values. Throws an error with a message for people. */
  filled(values: Readonly<Record<string, unknown>>): string;
}

/** Thrown if a text is not Liquid; the message is one sentence for people, with the line. */
export class LiquidMistake extends Error {
  override readonly name = "LiquidMistake";
}

export interface LiquidWays {
  /** Makes each value harmless where it is put. Without it values stay as they are. */
  escape?(value: unknown): string;
}

/** Bounds for what a client's values can do to a text of the operator (bytes, ms). */
const memoryMax = 50_000_000;
const msMax = 5_000;

/** Tags that read other files, of which a value may be the name. */
const reading = ["include", "render", "layout", "block"];

export function liquidText(text: string, ways: LiquidWays = {}): LiquidText {
  const engine = new Liquid({
    strictFilters: true,
    ownPropertyOnly: true,
    memoryLimit: memoryMax,
    renderLimit: msMax,
    ...(ways.escape ? { outputEscape: ways.escape } : {}),
  });
  for (const tag of reading) delete engine.tags[tag];
  try {
    const parsed = engine.parse(text);
    const names = engine.globalVariablesSync(parsed).toSorted();
    return { names, filled: (values) => String(engine.renderSync(parsed, values)) };
  } catch (error) {
    throw new LiquidMistake(plainMistake(error as Error));
  }
}

/** `tag "fi" not found, line:3, col:1` becomes `line 3: tag "fi" not found`. */
function plainMistake(error: Error): string {
  const { message } = error;
  const [, what, line] = /^(.*?), line:(\d+), col:\d+/s.exec(message) ?? [];
  return what === undefined ? message : `line ${line}: ${what}`;
}
