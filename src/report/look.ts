/** How output may look where it goes. */
export interface Look {
  /** Columns of the terminal; null where there is none, and then lines are as long as they are. */
  width: number | null;
  colour: boolean;
}

/** For files, pipes and logs. */
export const plainLook: Look = { width: null, colour: false };

const narrowest = 40;

/** The look for a stream of this process: plain unless it is a terminal, without colour where NO_COLOR asks for none. */
export function lookFor(
  stream: { isTTY?: boolean; columns?: number },
  environment: Readonly<Record<string, string | undefined>>,
): Look {
  if (stream.isTTY !== true) return plainLook;
  const colour = !environment["NO_COLOR"] && environment["TERM"] !== "dumb";
  return { width: Math.max(narrowest, stream.columns ?? 80), colour };
}
