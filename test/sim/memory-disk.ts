import { dirname } from "node:path";
import type { ByteRange, Disk, NewFile } from "../../src/core/ports/disk.js";
import type { Chance } from "./chance.js";

/**
 * A disk in memory that forgets like a real one. What is written lives in the system's cache until it is synced: a
 * killed process loses nothing of it, a power cut may lose any of it, and of a file's content and its name each one
 * by itself. What a power cut takes is drawn by lot, because both outcomes happen.
 */
interface FileNode {
  pieces: Buffer[];
  bytes: number;
  /** How many of the bytes are on the device. */
  syncedBytes: number;
}

export class MemoryDisk implements Disk {
  private names = new Map<string, FileNode>();
  private syncedNames = new Map<string, FileNode>();
  private folders = new Set<string>(["/"]);
  private syncedFolders = new Set<string>(["/"]);
  /** Until then (in the simulation's time) every write finds the disk full. */
  fullUntil = Number.NEGATIVE_INFINITY;

  constructor(private readonly now: () => number) {}

  async makeFolder(path: string): Promise<void> {
    if (this.folders.has(path)) return;
    this.checkSpace();
    this.makeDurableFolder(path);
  }

  private makeDurableFolder(path: string): void {
    this.makeFolderInCache(path);
    for (let folder = path; folder !== "/"; folder = dirname(folder)) this.syncedFolders.add(folder);
  }

  /** As the system makes folders: nobody has synced the ones above. */
  makeFolderInCache(path: string): void {
    for (let folder = path; !this.folders.has(folder); folder = dirname(folder)) this.folders.add(folder);
  }

  async create(path: string): Promise<NewFile> {
    if (this.names.has(path)) throw systemError("EEXIST", path);
    this.checkFolder(path);
    this.checkSpace();
    const node: FileNode = { pieces: [], bytes: 0, syncedBytes: 0 };
    this.names.set(path, node);
    return {
      write: async (bytes) => {
        // A disk that fills up takes the first half.
        if (this.isFull()) {
          grow(node, bytes.subarray(0, bytes.length >> 1));
          throw systemError("ENOSPC", path);
        }
        grow(node, bytes);
      },
      empty: async () => {
        node.pieces = [];
        node.bytes = 0;
        node.syncedBytes = 0;
      },
      sync: async () => {
        node.syncedBytes = node.bytes;
      },
      close: async () => {},
    };
  }

  private checkFolder(path: string): void {
    if (!this.folders.has(dirname(path))) throw systemError("ENOENT", path);
  }

  async append(path: string, text: string): Promise<void> {
    this.checkFolder(path);
    const known = this.names.get(path);
    const node = known ?? { pieces: [], bytes: 0, syncedBytes: 0 };
    const bytes = bytesOf(text);
    if (known === undefined) this.names.set(path, node);
    if (this.isFull()) {
      grow(node, bytes.subarray(0, bytes.length >> 1));
      throw systemError("ENOSPC", path);
    }
    node.pieces.push(bytes);
    node.bytes += bytes.length;
    node.syncedBytes = node.bytes;
    this.syncedNames.set(path, node);
  }

  /** As the system appends: nothing of it is on the device. */
  appendInCache(path: string, text: string): void {
    const node = this.names.get(path) ?? { pieces: [], bytes: 0, syncedBytes: 0 };
    this.names.set(path, node);
    grow(node, Buffer.from(text));
  }

  /** The beginning of an append whose end a crash cut off. */
  tear(path: string, text: string): void {
    const node = this.names.get(path) ?? { pieces: [], bytes: 0, syncedBytes: 0 };
    this.names.set(path, node);
    grow(node, Buffer.from(text).subarray(0, text.length >> 1));
  }

  async link(from: string, to: string): Promise<void> {
    const node = this.names.get(from);
    if (node === undefined) throw systemError("ENOENT", from);
    if (this.names.has(to)) throw systemError("EEXIST", to);
    this.checkSpace();
    this.names.set(to, node);
  }

  async unlink(path: string): Promise<void> {
    if (!this.names.delete(path)) throw systemError("ENOENT", path);
  }

  async syncFolder(path: string): Promise<void> {
    for (const name of this.syncedNames.keys()) {
      if (dirname(name) === path && !this.names.has(name)) this.syncedNames.delete(name);
    }
    for (const [name, node] of this.names) if (dirname(name) === path) this.syncedNames.set(name, node);
  }

  async size(path: string): Promise<number | null> {
    return this.names.get(path)?.bytes ?? null;
  }

  async realPath(path: string): Promise<string> {
    return path;
  }

  async list(path: string): Promise<string[]> {
    const prefix = path.endsWith("/") ? path : `${path}/`;
    const below = (all: Iterable<string>) =>
      [...all].filter((name) => name.startsWith(prefix) && !name.slice(prefix.length).includes("/"));
    return [...below(this.names.keys()), ...below(this.folders).map((name) => `${name}/`)].map((name) =>
      name.slice(prefix.length),
    );
  }

  async *read(path: string, range?: ByteRange): AsyncGenerator<Uint8Array> {
    const content = this.content(path);
    if (content === null) throw systemError("ENOENT", path);
    const piece = range ? content.subarray(range.start, range.end) : content;
    if (piece.length > 0) yield piece;
  }

  async freeBytes(): Promise<number> {
    return this.isFull() ? 0 : 2 ** 40;
  }

  /** Content under a name as every process sees it; null when there is none. */
  content(path: string): Buffer | null {
    const node = this.names.get(path);
    return node === undefined ? null : whole(node);
  }

  /** All paths of files below a folder. */
  below(folder: string): string[] {
    return [...this.names.keys()].filter((name) => name.startsWith(`${folder}/`));
  }

  /** Whether a power cut now would leave this name, and all that it names. */
  isDurable(path: string): boolean {
    const node = this.names.get(path);
    const isNamed = node !== undefined && this.syncedNames.get(path) === node;
    return isNamed && this.isContentDurable(path) && this.isFolderDurable(dirname(path));
  }

  private isFolderDurable(path: string): boolean {
    return path === "/" || (this.syncedFolders.has(path) && this.isFolderDurable(dirname(path)));
  }

  isContentDurable(path: string): boolean {
    const node = this.names.get(path);
    return node !== undefined && node.syncedBytes === node.bytes;
  }

  /** Puts a file there as a person would, outside of every program that is simulated. */
  put(path: string, content: Buffer): void {
    this.makeDurableFolder(dirname(path));
    const node: FileNode = { pieces: [content], bytes: content.length, syncedBytes: content.length };
    this.names.set(path, node);
    this.syncedNames.set(path, node);
  }

  powerCut(lot: Chance): void {
    const left = new Map(this.syncedNames);
    for (const [name, node] of this.names) {
      if (left.get(name) !== node && lot.is(0.5)) left.set(name, node);
    }
    for (const name of [...left.keys()]) if (!this.names.has(name) && lot.is(0.5)) left.delete(name);
    for (const folder of [...this.folders].toSorted()) {
      const isLost = !this.syncedFolders.has(folder) && lot.is(0.5);
      if (isLost || !this.folders.has(dirname(folder))) this.folders.delete(folder);
    }
    for (const name of [...left.keys()]) if (!this.folders.has(dirname(name))) left.delete(name);
    this.syncedFolders = new Set(this.folders);
    for (const node of new Set(left.values())) {
      if (node.bytes === node.syncedBytes) continue;
      const kept = lot.is(0.5) ? node.syncedBytes : lot.whole(node.syncedBytes, node.bytes);
      node.pieces = [whole(node).subarray(0, kept)];
      node.bytes = kept;
      node.syncedBytes = kept;
    }
    this.names = left;
    this.syncedNames = new Map(left);
  }

  private isFull(): boolean {
    return this.now() < this.fullUntil;
  }

  private checkSpace(): void {
    if (this.isFull()) throw systemError("ENOSPC", "the disk");
  }
}

/** A text as large as this is the room for answers, which every process takes up with the same one. */
const largeLength = 65_536;
let large = { text: "", bytes: Buffer.alloc(0) };

function bytesOf(text: string): Buffer {
  if (text.length < largeLength) return Buffer.from(text);
  if (large.text !== text) large = { text, bytes: Buffer.from(text) };
  return large.bytes;
}

function grow(node: FileNode, bytes: Uint8Array): void {
  node.pieces.push(Buffer.from(bytes));
  node.bytes += bytes.length;
}

function whole(node: FileNode): Buffer {
  if (node.pieces.length > 1) node.pieces = [Buffer.concat(node.pieces)];
  return node.pieces[0] ?? Buffer.alloc(0);
}

/** An error as the system gives it. */
function systemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
