import { reserveBytes } from "../archive/disk/room.js";
import type { ModelSize } from "../core/ports/archived.js";
import { fileSize } from "../report/amounts.js";
import type { Sum } from "./cost.js";
import type { ExpectedFiles, Finding } from "./plan.js";

/** What a run will leave on the disk, by what its models have made in this workspace, else their category. */
export function expectedFiles(made: readonly Sum[], sizes: readonly ModelSize[]): ExpectedFiles {
  const expected: ExpectedFiles = { files: 0, bytes: 0, unknown: [] };
  for (const { model, category, due } of made.filter((sum) => sum.due > 0)) {
    const own = each(sizes.filter((size) => size.model === model));
    const size = own ?? each(sizes.filter((other) => other.category === category));
    expected.files += Math.round(due * (size?.files ?? 1));
    expected.bytes += Math.round(due * (size?.bytes ?? 0));
    if (size === null && !expected.unknown.includes(model)) expected.unknown.push(model);
  }
  return expected;
}

/** What one item leaves on average; null where none was made. */
function each(sizes: readonly ModelSize[]): { files: number; bytes: number } | null {
  const sum = (of: "items" | "files" | "bytes") => sizes.reduce((total, size) => total + size[of], 0);
  const made = sum("items");
  return made === 0 ? null : { files: sum("files") / made, bytes: sum("bytes") / made };
}

/** A run waits when the disk is full; better to know before. */
export function diskWarning({ files, bytes, unknown }: ExpectedFiles, roomBytes: number | null): Finding[] {
  if (files === 0 || roomBytes === null || (roomBytes > 0 && bytes <= roomBytes)) return [];
  const room = roomBytes > 0 ? `there is room for ${fileSize(roomBytes)}` : "there is no room";
  const told =
    bytes === 0
      ? "There is no room where the files go"
      : `The files need ${unknown.length === 0 ? "about" : "more than"} ${fileSize(bytes)} and ${room} where they go`;
  const message = `${told}${roomBytes > 0 ? "" : keptFree(roomBytes)}: free some, or name another folder with --out.`;
  return [{ kind: "disk_space", message, bytes, roomBytes }];
}

/** Why there is no room, although the disk may not be full. */
function keptFree(roomBytes: number): string {
  const free = fileSize(roomBytes + reserveBytes);
  return ` (${free} free, and ${fileSize(reserveBytes)} stay free for the run's own records). Nothing is bought before there is`;
}
