import { z } from "zod";

/**
 * The numbers among the settings. A program may compute them, and one that means nothing, such as NaN, must not turn into
 * no limit. The flags of the command have the same bounds.
 */
const amount = z.number().min(0);
const count = z.int().min(1);
const numbers = z.looseObject({
  maxCredits: amount.optional(),
  keepCredits: amount.optional(),
  maxCreditsPerModel: z.record(z.string(), amount).optional(),
  limits: z
    .strictObject({
      rpm: count.optional(),
      rpd: z.int().min(3).optional(),
      share: z.number().positive().max(100).optional(),
    })
    .optional(),
  first: count.optional(),
  maxItems: count.optional(),
  maxFailures: count.optional(),
  retries: z.int().min(0).optional(),
  lanes: count.optional(),
  unreachableMs: z.number().min(0).optional(),
});

/** Throws RangeError, which names the setting. */
export function checkNumbers(settings: object): void {
  const read = numbers.safeParse(settings);
  if (read.success) return;
  const [issue] = read.error.issues;
  throw new RangeError(`${issue?.path.join(".")}: ${issue?.message}`);
}
