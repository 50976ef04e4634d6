/**
 * Why an item failed, judged by the service's message. It decides what to do: a prompt refused by moderation fails every
 * time, a temporary provider failure does not.
 */
export const failureKinds = ["moderation", "input", "parameter", "provider", "unknown"] as const;
export type FailureKind = (typeof failureKinds)[number];

/** What may succeed when it is submitted again as it is. */
export function mayPass(kind: FailureKind): boolean {
  return kind === "provider" || kind === "unknown";
}

/** Tried in this order: "the provider rejected the prompt as unsafe" is moderation, although it names the provider. */
const signs: readonly [FailureKind, RegExp][] = [
  [
    "moderation",
    /moderat|content[ _-]policy|policy[ _-]violation|blocked by policy|unsafe|safety|nsfw|prohibited|flagged|sensitive/i,
  ],
  // What bulkgen's own service says of a program that failed, whose own words may be about anything.
  ["provider", /^The provider failed: /],
  [
    "parameter",
    /\bparam(s|eter|eters)?\b|aspect.ratio|unsupported (value|option)|not (one of|a valid option)|INVALID_MODEL/i,
  ],
  [
    "input",
    /\binput|_url\b|(fetch|download|read|decod|open)(e|ed|ing)? (the |an? )?(image|video|audio|media|file)|MISSING_|required|(prompt|text|file|image|video|audio)( is| was)? too (long|large)/i,
  ],
  [
    "provider",
    /provider|upstream|internal|timed? ?out|timeout|temporar|overload|unavailable|capacity|try again|server error|out of memory/i,
  ],
];

/** The kind of a failed task, from its message. */
export function taskFailureKind(message: string): FailureKind {
  return signs.find(([, sign]) => sign.test(message))?.[0] ?? "unknown";
}

/** The kind of a request that was refused as wrong, from its code and message. A refusal never is the provider's. */
export function rejectionKind(code: string | null, message: string | null): FailureKind {
  const kind = taskFailureKind(`${code ?? ""} ${message ?? ""}`);
  return kind === "provider" || kind === "unknown" ? "input" : kind;
}
