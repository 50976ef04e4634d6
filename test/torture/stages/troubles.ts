import { spawnSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";

/** What may become of a disk while a file is being saved, done to a real one. */
export interface Trouble {
  name: string;
  /** How it is done here: where this machine refuses the first way, another real one. */
  way: string;
  /** False where the system refuses it at this moment. */
  strike(): boolean;
  relieve(): void;
}

export interface Ground {
  /** The job's folder, on a file system of its own where one can be mounted. */
  folder: string;
  /** Beside the file system: nothing may be written here. */
  outside: string;
  /** The name that the file wants, relative to the folder. */
  file: string;
}

const diskBytes = 96 * 1024 * 1024;
const inodes = 64;

/** Mounts a small file system at `at`; null, or why it is refused. */
export function mountSmall(at: string): string | null {
  const options = `size=${diskBytes},nr_inodes=${inodes}`;
  return command("mount", "-t", "tmpfs", "-o", options, "tmpfs", at);
}

export function troublesOn(at: string, ground: Ground, refusal: string | null): Trouble[] {
  const isMounted = refusal === null;
  return [
    isMounted ? noBytes(at) : noBytesByLimit(refusal),
    isMounted ? noInodes(at) : noFilesByLimit(refusal),
    isMounted ? readOnlyMount(at) : readOnlyFolder(ground.folder, refusal),
    removed(ground.folder),
    link(ground, "its name", ground.file),
    link(ground, "the index", "index.jsonl"),
  ];
}

function noBytes(at: string): Trouble {
  const filler = join(at, "filler");
  const strike = () => {
    const handle = openSync(filler, "w");
    for (const piece of [1024 * 1024, 4096, 1]) while (writes(handle, Buffer.alloc(piece))) {}
    closeSync(handle);
    return true;
  };
  return { name: "no room for a byte", way: "tmpfs", strike, relieve: () => rmSync(filler, { force: true }) };
}

function noInodes(at: string): Trouble {
  const many = join(at, "many");
  const strike = () => {
    for (let made = 0; made < inodes + 1; made++) {
      try {
        if (made === 0) mkdirSync(many);
        else writeFileSync(join(many, String(made)), "");
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === "ENOSPC";
      }
    }
    return false;
  };
  const relieve = () => rmSync(many, { recursive: true, force: true });
  return { name: "no room for a name", way: "tmpfs", strike, relieve };
}

function readOnlyMount(at: string): Trouble {
  const remount = (mode: string) => command("mount", "-o", `remount,${mode}`, at) === null;
  return {
    name: "read-only",
    // Refused while a file is open for writing, as on any system.
    way: "tmpfs",
    strike: () => remount("ro"),
    relieve: () => void remount("rw"),
  };
}

/** Of a person without the right to mount, the modes of a folder are kept. */
function readOnlyFolder(folder: string, refusal: string): Trouble {
  const set = (mode: number) => existsSync(folder) && chmodSync(folder, mode);
  const strike = () => {
    set(0o555);
    try {
      writeFileSync(join(folder, "tried"), "");
      rmSync(join(folder, "tried"));
      return false;
    } catch {
      return true;
    }
  };
  const way = `modes of the folder; expected to mount a tmpfs, got ${refusal}`;
  return { name: "read-only", way, strike, relieve: () => void set(0o755) };
}

/** A limit of this process that the system itself keeps. */
function limited(what: "fsize" | "nofile", soft: string): boolean {
  return command("prlimit", "--pid", String(process.pid), `--${what}=${soft}:`) === null;
}

function noBytesByLimit(refusal: string): Trouble {
  return {
    name: "no room for a byte",
    way: `limit of a file's size; expected to mount a tmpfs, got ${refusal}`,
    strike: () => limited("fsize", "0"),
    relieve: () => void limited("fsize", "unlimited"),
  };
}

function noFilesByLimit(refusal: string): Trouble {
  const held: number[] = [];
  return {
    name: "no room for a name",
    way: `limit of open files; expected to mount a tmpfs, got ${refusal}`,
    strike() {
      limited("nofile", String(readdirSync("/proc/self/fd").length + 16));
      try {
        for (;;) held.push(openSync("/dev/null", "r"));
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === "EMFILE";
      }
    },
    relieve() {
      for (const handle of held.splice(0)) closeSync(handle);
      limited("nofile", "4096");
    },
  };
}

function removed(folder: string): Trouble {
  const strike = () => {
    rmSync(folder, { recursive: true, force: true });
    return true;
  };
  return { name: "folder removed", way: "rm -r", strike, relieve: () => undefined };
}

/** A link to the outside under a name that is about to be written. */
function link({ folder, outside }: Ground, what: string, name: string): Trouble {
  const path = join(folder, name);
  const found = () => lstatSync(path, { throwIfNoEntry: false });
  return {
    name: `a link under ${what}`,
    way: "ln -s",
    strike() {
      if (found() !== undefined) return false;
      mkdirSync(folder, { recursive: true });
      symlinkSync(join(outside, "secret"), path);
      return true;
    },
    relieve() {
      if (found()?.isSymbolicLink()) rmSync(path);
      if (
        readdirSync(outside).join() !== "secret" ||
        readFileSync(join(outside, "secret"), "utf8") !== "kept"
      )
        throw new Error(`P23: something was written outside, in ${outside}`);
    },
  };
}

function writes(handle: number, bytes: Uint8Array): boolean {
  try {
    return writeSync(handle, bytes) === bytes.length;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}

/** Null when it did what it was told, else what it said. */
function command(name: string, ...args: string[]): string | null {
  const { status, error, stderr } = spawnSync(name, args, { encoding: "utf8" });
  return status === 0 ? null : (error?.message ?? stderr).trim().replace(/\s+/g, " ");
}
