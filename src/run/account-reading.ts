import type { Me } from "../api/records.js";
import type { Service } from "../client/service.js";
import type { Books } from "../core/books.js";
import type { Lane, Lanes } from "../core/lanes.js";
import { credits } from "../core/money.js";

export interface ReadingPorts {
  service: Pick<Service, "me">;
  books: Pick<Books, "read">;
  lanes: Pick<Lanes, "bracket">;
}

/**
 * GET me. While no POST of the key is under way in any process, what it tells goes into the books as well; `booked`
 * says whether it did. Throws ServiceError.
 */
export async function readAccount(ports: ReadingPorts): Promise<{ me: Me; booked: boolean }> {
  const bracket = ports.lanes.bracket();
  if (bracket !== null) return { me: await readWithin(bracket, ports), booked: true };
  const { me } = await ports.service.me();
  return { me, booked: false };
}

/**
 * GET me for the books alone: while a POST of the key is under way it would tell them nothing, so it is not asked for.
 * Returns whether it was. Throws ServiceError.
 */
export async function readCounters(ports: ReadingPorts): Promise<boolean> {
  const bracket = ports.lanes.bracket();
  if (bracket !== null) await readWithin(bracket, ports);
  return bracket !== null;
}

async function readWithin(bracket: Lane, { service, books }: ReadingPorts): Promise<Me> {
  try {
    const { me, over, servedAt } = await service.me();
    const used = credits(me.credits.used_this_key);
    await books.read({ used, requests: me.api_key.requests_count, over, servedAt });
    return me;
  } finally {
    bracket.release();
  }
}
