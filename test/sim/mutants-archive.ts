import { dirname, join } from "node:path";
import type { SaveRequest, SaveResult } from "../../src/archive/save.js";
import type { Disk } from "../../src/core/ports/disk.js";
import type { Download } from "../../src/core/ports/send.js";
import { sha256 } from "./files.js";
import type { Mutant } from "./mutants.js";
import type { Parts, Substitution } from "./runner.js";

/** Runners that are broken where files are kept. */
export const archiveMutants: readonly Mutant[] = [
  {
    name: "does not sync a file",
    make: () =>
      ofDisk((disk) => ({
        ...disk,
        create: async (path) => ({ ...(await disk.create(path)), sync: async () => {} }),
      })),
  },
  {
    name: "does not sync a folder",
    make: () => ofDisk((disk) => ({ ...disk, syncFolder: async () => {} })),
  },
  {
    name: "does not sync the folder that a folder is made in",
    make: () => ({
      parts: (parts, { machine }) => ({
        ...parts,
        disk: { ...parts.disk, makeFolder: async (path) => machine.disk.makeFolderInCache(path) },
      }),
    }),
  },
  {
    name: "does not sync the index",
    make: () => ({
      parts: (parts, { machine }) => ({
        ...parts,
        disk: {
          ...parts.disk,
          append: async (path, text) =>
            path.endsWith("index.jsonl")
              ? machine.disk.appendInCache(path, text)
              : parts.disk.append(path, text),
        },
      }),
    }),
  },
  { name: "writes the index before it syncs the folder", make: () => ({ parts: syncingLate }) },
  {
    name: "names a file that it did not look into",
    make: () => ({
      parts: (parts) => ({
        ...parts,
        inspect: async () => ({ kind: "media", extension: "png", mime: "image/png", check: "decoded" }),
      }),
    }),
  },
  {
    name: "renames over a file that is there",
    make: () =>
      ofDisk((disk) => ({
        ...disk,
        link: async (from, to) => {
          if ((await disk.size(to)) !== null) await disk.unlink(to);
          await disk.link(from, to);
        },
      })),
  },
  { name: "writes the row before the file", make: () => ({ parts: fileLate }) },
  {
    name: "writes no line into the index",
    make: () =>
      ofDisk((disk) => ({
        ...disk,
        append: async (path, text) => {
          if (!path.endsWith("index.jsonl")) await disk.append(path, text);
        },
      })),
  },
  { name: "trusts a download as it comes", make: trusting },
  { name: "splices two downloads", make: () => ({ parts: splicing }) },
  { name: "goes on with another version", make: () => ({ parts: joining }) },
  {
    name: "takes a full disk for an output that cannot be had",
    make: () => ({
      ports: (ports) => ({
        ...ports,
        save: async (request, signal) => {
          const result = await ports.save(request, signal);
          return result.kind === "disk" ? { kind: "saved", file: "lost.png", ...nothing } : result;
        },
      }),
    }),
  },
];

const nothing = { bytes: 0, sha256: "", mime: "", check: "" };

function ofDisk(change: (disk: Disk) => Disk): Substitution {
  return { parts: (parts) => ({ ...parts, disk: change(parts.disk) }) };
}

/** Folders are synced after the next line of the index. */
function syncingLate(parts: Parts): Parts {
  const late: string[] = [];
  const { disk } = parts;
  return {
    ...parts,
    disk: {
      ...disk,
      syncFolder: async (path) => void late.push(path),
      append: async (path, text) => {
        await disk.append(path, text);
        if (path.endsWith("index.jsonl")) for (const folder of late.splice(0)) await disk.syncFolder(folder);
      },
    },
  };
}

/** What makes a name is put off until the row is written. */
function fileLate(parts: Parts): Parts {
  const late: (() => Promise<void>)[] = [];
  const { disk, store } = parts;
  return {
    ...parts,
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
      return given;
    },
    ports: (ports, process) => ({ ...ports, save: (...given) => process.work(() => save(...given)) }),
  };
}

/** Asks for the rest of whatever lies there now, and believes that it is the same. */
function joining(parts: Parts): Parts {
  const download: Download = async (url, options) => {
    const { "if-range": tag, ...headers } = options.headers;
    const reply = await parts.download(url, { ...options, headers });
    return reply.status === 206 && tag !== undefined
      ? { ...reply, headers: { ...reply.headers, etag: tag } }
      : reply;
  };
  return { ...parts, download };
}

/** Goes on after a broken transfer with whatever the next one brings. */
function splicing(parts: Parts): Parts {
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
  return { ...parts, download };
}
