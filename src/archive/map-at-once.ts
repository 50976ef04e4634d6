import PQueue from "p-queue";

/** Files in a bucket that are asked about at once: each question takes a round trip. */
export const bucketFilesAtOnce = 8;

/**
 * Does work for each item, for so many at once, and returns the results in the order of the items. Once it has failed for
 * one, it is begun for no other.
 */
export async function mapAtOnce<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const queue = new PQueue({ concurrency: atOnce });
  try {
    return await queue.addAll(items.map((item) => () => work(item)));
  } finally {
    queue.clear();
  }
}
