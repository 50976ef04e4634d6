/** One limit as a request finds it: so many requests in a window, counted in some manner. */
export interface RequestLimit {
  limit: number;
  /** Milliseconds until one more request can pass; 0 or less when it can now. */
  waitMs: number;
  /** How many more could pass now, and when that number has fully recovered. For the headers only: it costs more. */
  standing(): { remaining: number; resetMs: number };
}

/** A window of time in which requests are counted. */
export interface Span {
  name: "minute" | "day";
  ms: number;
  /** Where windows begin that have a beginning, as milliseconds after a multiple of `ms` since 1970. */
  alignMs: number;
}

/** When the window that holds `now` began. */
export function windowStart(span: Span, now: number): number {
  return Math.floor((now - span.alignMs) / span.ms) * span.ms + span.alignMs;
}
