import type { Me } from "../api/records.js";
import type { Service } from "../client/service.js";
import type { Books } from "../core/books.js";
import type { Lanes } from "../core/lanes.js";
import { credits } from "../core/money.js";

export interface ReadingPorts {
  service: Pick<Service, "me">;
  books: Pick<Books, "read" | "over">;
  lanes: Pick<Lanes, "bracket">;
}

/**
 * GET me. While no POST of the key is under way in any process, what it tells goes into the books as well; `booked`
 * says whether it did. Throws ServiceError.
 */
export async function readAccount({
  service,
  books,
  lanes,
}: ReadingPorts): Promise<{ me: Me; booked: boolean }> {
  const bracket = lanes.bracket();
  try {
    const over = await books.over();
    const { me, servedAt } = await service.me();
    if (bracket) {
      const used = credits(me.credits.used_this_key);
      await books.read({ used, requests: me.api_key.requests_count, over, servedAt });
    }
    return { me, booked: bracket !== null };
  } finally {
    bracket?.release();
  }
}
