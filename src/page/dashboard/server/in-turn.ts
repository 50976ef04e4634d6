/**
 * Does the work one time after the other: however often it is asked for meanwhile, it is done to its end, and then once
 * more. The work never rejects.
 */
export function inTurn(work: () => Promise<void>): () => void {
  let isWanted = false;
  let isBusy = false;
  const goOn = async () => {
    isBusy = true;
    while (isWanted) {
      isWanted = false;
      await work();
    }
    isBusy = false;
  };
  return () => {
    isWanted = true;
    if (!isBusy) void goOn();
  };
}
