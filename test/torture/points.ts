/**
 * Named instants in a runner's life at which it can be made to kill itself. `phase` says what must be left to do for
 * the instant to come: something to submit, something to look at and to fetch, or a lost answer to settle.
 */
export const points = {
  "place-before-commit": "submit",
  "place-committed": "submit",
  "entry-before-commit": "submit",
  "entry-committed": "submit",
  "intent-before-commit": "submit",
  "intent-committed": "submit",
  "intent-line-written": "submit",
  "intent-line-synced": "submit",
  "request-made": "submit",
  "request-about-to-leave": "submit",
  "request-sent": "submit",
  "answer-begun": "submit",
  "answer-read": "submit",
  "answer-line-written": "submit",
  "answer-line-synced": "submit",
  "answer-before-commit": "submit",
  "answer-committed": "submit",
  "booked-before-commit": "submit",
  "booked-committed": "submit",
  "verdict-before-commit": "settle",
  "verdict-committed": "settle",
  "accounts-before-commit": "submit",
  "accounts-committed": "submit",
  "look-answered": "collect",
  "end-before-commit": "collect",
  "end-committed": "collect",
  "file-written": "collect",
  "file-synced": "collect",
  "file-linked": "collect",
  "temporary-removed": "collect",
  "index-line-written": "collect",
  "index-line-synced": "collect",
  "row-before-commit": "collect",
  "row-committed": "collect",
} as const;

export type Point = keyof typeof points;
export type Phase = (typeof points)[Point];

export const pointNames = Object.keys(points) as Point[];

/** The environment variable that names the point and which time it is fatal, such as `file-linked:3`. */
export const pointVariable = "TORTURE_POINT";

/** What a process writes to stderr before it kills itself. */
export const lastWords = "torture: ended at";
