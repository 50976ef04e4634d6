/**
 * Does work for many callers, one batch at a time: those who come while a batch is in progress share the next one, and
 * with it one append or one sync. Returns a function that puts an item into the next batch and settles as that batch does.
 */
export function inBatches<Item = void>(
  work: (batch: readonly Item[]) => Promise<void>,
): (item: Item) => Promise<void> {
  let waiting: Item[] = [];
  let next: Promise<void> | null = null;
  let last: Promise<unknown> = Promise.resolve();
  const workOnWaiting = () => {
    const batch = waiting;
    waiting = [];
    next = null;
    return work(batch);
  };
  return (item) => {
    waiting.push(item);
    if (next === null) {
      next = last.then(workOnWaiting);
      last = next.catch(() => undefined);
    }
    return next;
  };
}
