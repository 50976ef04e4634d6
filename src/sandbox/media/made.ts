/**
 * Media by the job that made them. The same job always makes the same bytes, so a request that is sent again, for another
 * task or to the next sandbox of a program, costs nothing.
 */
export class MadeMedia {
  private readonly kept = new Map<string, Uint8Array>();
  private bytes = 0;

  /** Keeps so many bytes at most. */
  constructor(private readonly bytesMax: number) {}

  get(key: string): Uint8Array | undefined {
    const found = this.kept.get(key);
    if (found === undefined) return undefined;
    // Those that were wanted last are forgotten last.
    this.kept.delete(key);
    this.kept.set(key, found);
    return found;
  }

  keep(key: string, made: Uint8Array): void {
    this.bytes += made.byteLength - (this.kept.get(key)?.byteLength ?? 0);
    this.kept.set(key, made);
    for (const [oldest, old] of this.kept) {
      if (this.bytes <= this.bytesMax) return;
      this.kept.delete(oldest);
      this.bytes -= old.byteLength;
    }
  }
}

/** What the sandboxes of this process have made. */
export const madeHere = new MadeMedia(32 * 1024 * 1024);
