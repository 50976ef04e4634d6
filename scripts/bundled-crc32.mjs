/** buffer-crc32 as far as the ZIP library calls it. Node's own checksum is native code, ten times as fast as JavaScript. */
import { crc32 } from "node:zlib";

export function unsigned(bytes, before) {
  return crc32(bytes, before);
}
