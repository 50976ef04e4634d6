/** The parser's words for the slips of people, and what to write instead. */
const slips: readonly [RegExp, string][] = [
  [/^Source contains multiple documents/, "several documents in one file, separated by ---"],
  [/^Nested mappings are not allowed/, 'a text with ": " in it, which needs quotes around it'],
  [
    /^Plain value cannot start with (?:reserved|directive indicator) character (\S)/,
    "a text that begins with $1, which needs quotes around it",
  ],
  [/^Unexpected block-seq-ind on same line/, "a text that begins with -, which needs quotes around it"],
  [
    /^Unexpected scalar at node end/,
    "text behind a value; put quotes around all of it, and a backslash before each quote inside",
  ],
  [
    /^Block scalar header includes|^Not a YAML token/,
    "text on the line of a | or >; begin it on the next line",
  ],
  [
    /^Implicit map keys need to be followed by map values/,
    "a line that is no field; the lines of a text are indented further than its field",
  ],
  [/^Sequence item without - indicator/, "a line that is indented less than the fields above it"],
  [/^Map keys must be unique/, "two fields of one name"],
  [/^Unexpected (?:double|single)-quoted-scalar token/, "a text where a comma should be"],
];

/** What is wrong with a YAML file, in plain words, from the parser's message and the offset of the place in the file. */
export function slipIn(message: string, file: string, offset: number): string {
  if (isIndentedWithTab(file, offset)) return "a tab at the beginning of a line; YAML indents with spaces";
  const text = message.replace(/ at line \d+, column \d+:[\s\S]*$/, "");
  for (const [slip, words] of slips) {
    const found = slip.exec(text);
    if (found) return words.replace("$1", () => found[1] ?? "");
  }
  return text
    .replace(/^Unresolved plain scalar/, "text without quotes:")
    .replace(/Flow sequence/, "the array")
    .replace(/Flow map/, "the object")
    .replace(/in block collection must be sufficiently indented and end with a/, "does not end with a");
}

/** The parser may notice a tab only by what comes after it, or before it. */
function isIndentedWithTab(file: string, offset: number): boolean {
  const begin = file.lastIndexOf("\n", offset - 1) + 1;
  const [line = "", next = ""] = file.slice(begin).split("\n", 2);
  return [line, next].some((each) => /^ *\t/.test(each));
}
