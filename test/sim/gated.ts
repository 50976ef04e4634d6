import type { Disk, NewFile } from "../../src/core/ports/disk.js";
import type { Download, Send } from "../../src/core/ports/send.js";
import { type Database, never, type Process } from "./machine.js";

/** The ports of one process, each call an effect at which the process can die. */

type Method = (...values: unknown[]) => Promise<unknown>;

/** A port whose methods are transactions of that database. Those in `looks` change nothing. */
export function gatedPort<Port extends object>(
  process: Process,
  database: Database,
  name: string,
  port: Port,
  looks: readonly (keyof Port & string)[],
): Port {
  const gated = Object.entries(port).map(([method, act]: [string, Method]) => {
    const looksOnly = (looks as readonly string[]).includes(method);
    const call = (...values: unknown[]) =>
      looksOnly
        ? process.look(() => act(...values))
        : process.transaction(database, `${name}.${method}`, values, () => act(...values));
    return [method, call];
  });
  return Object.fromEntries(gated) as Port;
}

export function gatedSend(process: Process, send: Send): Send {
  return (request, signal) =>
    process.effect(`send.${request.endpoint}`, [request], () => send(request, signal));
}

export function gatedDownload(process: Process, download: Download): Download {
  return (url, options) => process.effect("download", [url], () => download(url, options));
}

export function gatedDisk(process: Process, disk: Disk): Disk {
  const effect = <Result>(name: string, values: unknown[], act: () => Promise<Result>) =>
    process.effect(`disk.${name}`, values, act);
  return {
    makeFolder: (path) => effect("makeFolder", [path], () => disk.makeFolder(path)),
    create: async (path) => gatedFile(process, path, await effect("create", [path], () => disk.create(path))),
    append: (path, text) => {
      const name = path.endsWith("receipts.jsonl") ? "receipts.append" : "disk.append";
      return process.effect(name, [path, text], () => disk.append(path, text));
    },
    link: (from, to) => effect("link", [from, to], () => disk.link(from, to)),
    unlink: (path) => effect("unlink", [path], () => disk.unlink(path)),
    syncFolder: (path) => effect("syncFolder", [path], () => disk.syncFolder(path)),
    realPath: (path) => process.look(() => disk.realPath(path)),
    size: (path) => process.look(() => disk.size(path)),
    list: (path) => process.look(() => disk.list(path)),
    async *read(path, range) {
      if (!process.isAlive()) await never();
      yield* disk.read(path, range);
    },
    freeBytes: (path) => process.look(() => disk.freeBytes(path)),
  };
}

function gatedFile(process: Process, path: string, file: NewFile): NewFile {
  return {
    write: (bytes) => process.effect("disk.write", [path], () => file.write(bytes)),
    empty: () => process.effect("disk.empty", [path], () => file.empty()),
    sync: () => process.effect("disk.sync", [path], () => file.sync()),
    close: () => process.look(() => file.close()),
  };
}
