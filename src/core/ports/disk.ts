/**
 * The disk as the archive needs it: small steps, because their order is what makes a file durable, and a simulation
 * must be able to stop between any two of them. Paths are absolute. Errors are Node's own (`code` ENOSPC, EEXIST …).
 */
export interface Disk {
  /** Makes a folder and its parents, with durable names; does nothing if it exists. */
  makeFolder(path: string): Promise<void>;
  /** Opens a new file for writing. Fails with EEXIST if the name is taken. */
  create(path: string): Promise<NewFile>;
  /** Appends text to a file, which is made if needed, and returns when text and name are durable. */
  append(path: string, text: string, mode?: number): Promise<void>;
  /**
   * Gives a file a second name. Fails with EEXIST if that name is taken: nothing is ever replaced. On a file system
   * without hard links the first name is gone afterwards, so removing it may fail with ENOENT. `content` describes a
   * finished file of the archive; a disk that keeps such files in a bucket uploads it now.
   */
  link(from: string, to: string, content?: FileContent): Promise<void>;
  /** Removes a name. Fails with ENOENT when there is none. */
  unlink(path: string): Promise<void>;
  /** Makes the names in a folder durable. */
  syncFolder(path: string): Promise<void>;
  /** Bytes of a file, or null when there is none. */
  size(path: string): Promise<number | null>;
  /** The path with every symbolic link in it followed. Fails with ENOENT if it leads nowhere. */
  realPath(path: string): Promise<string>;
  /**
   * The names in a folder; names of folders end in `/` (a symbolic link is never a folder). Empty if the folder does
   * not exist.
   */
  list(path: string): Promise<string[]>;
  /** The content of a file, in pieces: all of it, or the bytes from `start` up to, but not including, `end`. */
  read(path: string, range?: ByteRange): AsyncIterable<Uint8Array>;
  /** What the bucket knows of a file that is in a bucket and not on this disk; null for any other file. */
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
  /** The hash that was uploaded with the file; null for a file of another program. */
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
