import fs from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";

/**
 * The service's files are real, but each call is done when it returns: how many turns of the event loop a write takes is not in a
 * seed's hands. A service that is dead calls in vain.
 */
export class FilesAtOnce {
  private readonly before = { ...promises };
  /** No call comes back any more. */
  isHalted = false;

  constructor() {
    const done =
      <Values extends unknown[], Result>(act: (...values: Values) => Result) =>
      (...values: Values): Promise<Result> => {
        if (this.isHalted) return new Promise(() => {});
        try {
          return Promise.resolve(act(...values));
        } catch (error) {
          return Promise.reject(error);
        }
      };
    Object.assign(promises, {
      copyFile: done(fs.copyFileSync),
      mkdir: done(fs.mkdirSync),
      open: done((path: string, flags: string | number) => new OpenFile(fs.openSync(path, flags), done)),
      readdir: done(fs.readdirSync),
      readFile: done(fs.readFileSync),
      rename: done(fs.renameSync),
      rm: done(fs.rmSync),
      stat: done(fs.statSync),
      writeFile: done(fs.writeFileSync),
    });
    syncBuiltinESMExports();
  }

  close(): void {
    Object.assign(promises, this.before);
    syncBuiltinESMExports();
  }
}

type Done = <Values extends unknown[], Result>(
  act: (...values: Values) => Result,
) => (...values: Values) => Promise<Result>;

class OpenFile {
  readonly close: () => Promise<void>;
  readonly sync: () => Promise<void>;
  readonly stat: () => Promise<fs.Stats>;
  readonly writeFile: (bytes: Uint8Array) => Promise<void>;
  readonly read: (
    buffer: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ) => Promise<{ bytesRead: number; buffer: Uint8Array }>;

  constructor(file: number, done: Done) {
    this.close = done(() => fs.closeSync(file));
    this.sync = done(() => fs.fsyncSync(file));
    this.stat = done(() => fs.fstatSync(file));
    this.writeFile = done((bytes) => fs.writeFileSync(file, bytes));
    this.read = done((buffer, offset, length, position) => ({
      bytesRead: fs.readSync(file, buffer, offset, length, position),
      buffer,
    }));
  }
}
