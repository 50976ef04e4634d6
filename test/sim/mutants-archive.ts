import { dirname, join } from "node:path";
import type { SaveRequest, SaveResult } from "../../src/archive/save.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Download } from "../../src/core/ports/send.js";
import { sha256 } from "./files.js";
import type { Process } from "./machine.js";
import type { Mutant } from "./mutants.js";
import type { Parts, Substitution, Swap } from "./runner.js";

/** Runners that are broken where files are kept. */
export const archiveMutants: readonly Mutant[] = [
  { name: "does not sync a file", disk: unsynced },
  { name: "does not sync a folder", disk: { syncFolder: async () => {} } },
  {
    name: "does not sync the folder that a folder is made in",
    disk: (_, { machine }) => ({ makeFolder: async (path) => machine.disk.makeFolderInCache(path) }),
  },
  {
    name: "does not sync the index",
    disk: ofIndex(
      ({ machine }) =>
        async (path, text) =>
          machine.disk.appendInCache(path, text),
    ),
  },
  { name: "writes the index before it syncs the folder", disk: syncingLate },
  {
    name: "names a file that it did not look into",
    parts: {
      inspect: async () => ({ kind: "media", extension: "png", mime: "image/png", check: "decoded" }),
    },
  },
  {
    name: "renames over a file that is there",
    disk: ({ size, unlink, link }) => ({
      link: async (from, to) => {
        if ((await size(to)) !== null) await unlink(to);
        await link(from, to);
      },
    }),
  },
  { name: "writes the row before the file", parts: fileLate },
  { name: "writes no line into the index", disk: ofIndex(() => async () => {}) },
  { name: "trusts a download as it comes", make: trusting },
  { name: "splices two downloads", parts: splicing },
  { name: "goes on with another version", parts: joining },
  {
    name: "takes a full disk for an output that cannot be had",
    ports: ({ save }) => ({
      save: async (...request) => {
        const result = await save(...request);
        return result.kind === "disk" ? { kind: "saved", file: "lost.png", ...nothing } : result;
      },
    }),
  },
];

const nothing = { bytes: 0, sha256: "", mime: "", check: "" };

export function unsynced({ create }: Disk): Partial<Disk> {
  return { create: async (path) => ({ ...(await create(path)), sync: async () => {} }) };
}

/** Lines of the index are appended otherwise. */
function ofIndex(other: (process: Process) => Disk["append"]): Swap<Disk> {
  return (disk, process) => ({
    append: (path, text) => (path.endsWith("index.jsonl") ? other(process) : disk.append)(path, text),
  });
}

/** Folders are synced after the next line of the index. */
function syncingLate({ append, syncFolder }: Disk): Partial<Disk> {
  const late: string[] = [];
  return {
    syncFolder: async (path) => void late.push(path),
    append: async (path, text) => {
      await append(path, text);
      if (path.endsWith("index.jsonl")) for (const folder of late.splice(0)) await syncFolder(folder);
    },
  };
}

/** What makes a name is put off until the row is written. */
function fileLate({ disk, store }: Parts): Partial<Parts> {
  const late: (() => Promise<void>)[] = [];
  return {
    disk: {
      ...disk,
      link: async (from, to) => void late.push(() => disk.link(from, to)),
      unlink: async (path) => void late.push(() => disk.unlink(path)),
      syncFolder: async (path) => void late.push(() => disk.syncFolder(path)),
    },
    store: {
      ...store,
      saved: async (item, number, file) => {
        await store.saved(item, number, file);
        for (const act of late.splice(0)) await act();
      },
    },
  };
}

/** Writes what comes under the wanted name, and looks at nothing. */
function trusting(): Substitution {
  let parts: Parts;
  const save = async (request: SaveRequest, signal: AbortSignal): Promise<SaveResult> => {
    const pieces: Uint8Array[] = [];
    try {
      const reply = await parts.download(request.url, { headers: {}, signal });
      for await (const piece of reply.body) pieces.push(piece);
    } catch {
      // It has what it has.
    }
    const bytes = Buffer.concat(pieces);
    const file = `${request.index.item}-${request.outputNumber}.png`;
    const path = join(request.jobFolder, file);
    const temporary = join(request.jobFolder, `.bulkgen-${request.index.item}.part`);
    await parts.disk.makeFolder(dirname(path));
    const handle = await parts.disk.create(temporary);
    await handle.write(bytes);
    await handle.sync();
    await parts.disk.link(temporary, path);
    await parts.disk.unlink(temporary);
    await parts.disk.syncFolder(dirname(path));
    return {
      kind: "saved",
      file,
      bytes: bytes.length,
      sha256: sha256(bytes),
      mime: "image/png",
      check: "type",
    };
  };
  return {
    parts: (given) => {
      parts = given;
      return {};
    },
    ports: (_, process) => ({ save: (...given) => process.work(() => save(...given)) }),
  };
}

/** Asks for the rest of whatever lies there now, and believes that it is the same. */
function joining(parts: Parts): Partial<Parts> {
  const download: Download = async (url, options) => {
    const { "if-range": tag, ...headers } = options.headers;
    const reply = await parts.download(url, { ...options, headers });
    return reply.status === 206 && tag !== undefined
      ? { ...reply, headers: { ...reply.headers, etag: tag } }
      : reply;
  };
  return { download };
}

/** Goes on after a broken transfer with whatever the next one brings. */
function splicing(parts: Parts): Partial<Parts> {
  const kept = new Map<string, Uint8Array[]>();
  const download: Download = async (url, options) => {
    const [address = ""] = url.split("?");
    const reply = await parts.download(url, options);
    if (reply.status !== 200) return reply;
    const before = kept.get(address) ?? [];
    const received: Uint8Array[] = [];
    kept.set(address, received);
    const { "content-length": _length, ...headers } = reply.headers;
    async function* body(): AsyncGenerator<Uint8Array> {
      yield* before;
      for await (const piece of reply.body) {
        received.push(piece);
        yield piece;
      }
      kept.delete(address);
    }
    return { ...reply, headers, body: body() };
  };
  return { download };
}
