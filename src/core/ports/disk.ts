/**
 * The disk as the archive needs it: small steps, because their order is what makes a file durable, and a simulation
 * must be able to stop between any two of them. Paths are absolute. Errors are Node's own (`code` ENOSPC, EEXIST …).
 */
export interface Disk {
  /** Makes a folder and those above it, with durable names; fine when it exists. */
  makeFolder(path: string): Promise<void>;
  /** Opens a new file for writing. Fails with EEXIST when the name is taken. */
  create(path: string): Promise<NewFile>;
  /** Appends text to a file (made when absent) and returns when text and name are durable. */
  append(path: string, text: string): Promise<void>;
  /**
   * Gives a file a second name. Fails with EEXIST when that name is taken: nothing is ever replaced. On a file system
   * without hard links the first name is gone afterwards, so removing it may fail with ENOENT. `content` is what a finished
   * file of the archive has: a disk that keeps these in a bucket uploads it then.
   */
  link(from: string, to: string, content?: FileContent): Promise<void>;
  /** Removes a name. Fails with ENOENT when there is none. */
  unlink(path: string): Promise<void>;
  /** Makes the names in a folder durable. */
  syncFolder(path: string): Promise<void>;
  /** Bytes of a file, or null when there is none. */
  size(path: string): Promise<number | null>;
  /** Where a path leads when every symbolic link in it is followed. Fails with ENOENT when it leads nowhere. */
  realPath(path: string): Promise<string>;
  /** Names in a folder, those of folders ending in `/` (a symbolic link is never a folder); empty when there is none. */
  list(path: string): Promise<string[]>;
  /** The content of a file, in pieces: all of it, or the bytes from `start` up to and without `end`. */
  read(path: string, range?: ByteRange): AsyncIterable<Uint8Array>;
  /** What the bucket has of a file that is in a bucket and not on this disk; null for any other. */
  inBucket?(path: string): Promise<BucketCopy | null>;
  /** Free bytes on the disk of `path`. */
  freeBytes(path: string): Promise<number>;
}

export interface FileContent {
  bytes: number;
  /** Hexadecimal. */
  sha256: string;
  mime: string;
}

interface BucketCopy {
  /** `s3://bucket/prefix`. */
  bucket: string;
  bytes: number;
  /** As it was uploaded with it; null for a file of another program. */
  sha256: string | null;
}

export interface ByteRange {
  start: number;
  end: number;
}

export interface NewFile {
  write(bytes: Uint8Array): Promise<void>;
  /** Discards what was written and starts again. */
  empty(): Promise<void>;
  /** Returns when the content is on the device. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** The errors of file systems that cannot sync a folder. Nothing more can be done on them. */
export const noFolderSync: ReadonlySet<string> = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP"]);
