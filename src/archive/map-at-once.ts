/** Files in a bucket that are asked about at once: each question takes a round trip. */
export const bucketFilesAtOnce = 8;

/**
 * Does work for each item, for so many at once, and returns the results in the order of the items. Once it has failed for
 * one, it is begun for no other. Nothing is made for an item before its turn: there may be a million of them.
 */
export async function mapAtOnce<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const at = next++;
      try {
        results[at] = await work(items[at] as Item);
      } catch (error) {
        next = items.length;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
}
